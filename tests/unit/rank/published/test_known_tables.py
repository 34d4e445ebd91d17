"""The tables that ship as known results: shapes, names, and what is published of them elsewhere."""

import numpy as np
import pytest
import timm
from torchvision.models import list_models

from crossgraft.errors import DataError
from crossgraft.rank.ground_truth import noise_ceiling
from crossgraft.rank.published.contenders import held_out_prior
from crossgraft.rank.published.evaluate import agreement_by_target
from crossgraft.rank.published.tables import imagenet_results, printed_names, published_table, published_tables, weights_called
from crossgraft.rank.results_store import full_name, name_in_table
from crossgraft.statistics import weighted_kendall


def test_every_table_has_a_source_and_fractions():
    for table in published_tables():
        assert table.results.shape == (len(table.targets), len(table.models)) and len(table.groups) == len(table.targets)
        assert table.source and table.protocol and table.origin
        assert 0 <= np.nanmin(table.results) <= np.nanmax(table.results) <= 1
        for values in (
            table.validation,
            table.standard_deviations,
            table.seconds,
            *(each.values for each in table.columns.values()),
        ):
            assert values is None or values.shape == table.results.shape


def test_some_cells_are_those_of_the_publications():
    def cell(table, target, model):
        return published_table(table).results[
            published_table(table).targets.index(target), published_table(table).models.index(model)
        ]

    assert cell("sfda_cnn", "Aircraft", "resnet34") == pytest.approx(0.8406)
    assert cell("tmlr", "BreakHis", "vit_small_patch16_224") == pytest.approx(0.990927)
    assert cell("medmnistplus_auc", "Tissue", "VGG16") == pytest.approx(0.9405)
    assert cell("itm", "SUN", "DINO-B16") == pytest.approx(0.7702)
    assert np.isfinite(published_table("shift").results).all(axis=0).sum() == 73


def test_names_of_papers_mean_weights_that_exist():
    pretrained, torchvision = set(timm.list_pretrained()), set(list_models())
    for table, names in printed_names().items():
        assert names.why.endswith(".")
        for name in names.certain.values():
            known = name in pretrained or name in imagenet_results()
            assert known or name.removeprefix("torchvision:") in torchvision, (table, name)
        assert all(timm.is_model(architecture) for architecture in names.architecture.values())
        assert not {*names.certain} & {*names.architecture}


def test_an_ambiguous_name_is_refused_with_both_tables():
    with pytest.raises(DataError, match=r"medmnistplus means resnet18\.a1_in1k and itm means resnet18 with weights"):
        weights_called("ResNet-18")
    with pytest.raises(DataError, match="itm"):
        weights_called("MobileNetv2")
    assert weights_called("resnet50") == "resnet50.tv_in1k"


def test_weights_have_one_name_in_all_tables():
    assert full_name("torchvision:resnet18") == full_name("resnet18.tv_in1k") == name_in_table("thesis-architectures", "resnet")
    assert name_in_table("sfda_cnn", "densenet121") == name_in_table("tmlr", "densenet121") == "densenet121.tv_in1k"
    assert name_in_table("itm", "DINO-B16") == name_in_table("medmnistplus_auc", "DINO ViT-B/16")
    assert full_name("densenet121") != "densenet121.tv_in1k"  # timm's default weights are others


@pytest.mark.parametrize(
    ("name", "tau"), [("sfda_cnn", 0.837), ("tmlr", 0.733), ("medmnistplus_accuracy", 0.496), ("medmnistplus_auc", 0.459)]
)
def test_the_static_prior_is_what_was_found_before(name, tau):
    benchmark = published_table(name)
    assert agreement_by_target(held_out_prior(benchmark), benchmark.results).mean() == pytest.approx(tau, abs=0.0025)


@pytest.mark.parametrize(("metric", "tau"), [("accuracy", 0.646), ("auc", 0.718)])
def test_the_noise_ceiling_is_how_one_seed_ranks_like_another(metric, tau):
    table = published_table(f"medmnistplus_{metric}")
    pairs = list(zip(table.results, table.standard_deviations, strict=True))
    assert np.mean([noise_ceiling(mean, deviation) for mean, deviation in pairs]) == pytest.approx(tau, abs=0.015)


def test_the_noise_ceiling_literally():
    mean, deviation = np.array([0.1, 0.2, 0.3, np.nan]), np.array([0.05, 0.05, 0.2, 0.1])
    rng = np.random.default_rng(0)
    draws = mean[:3] + deviation[:3] * rng.normal(size=(4000, 2, 3))
    slow = np.mean([weighted_kendall(first, second) for first, second in draws[:2000]])
    assert noise_ceiling(mean, deviation) == pytest.approx(slow, abs=0.15)
    assert noise_ceiling(mean, np.zeros(4)) == pytest.approx(1)
    assert np.isnan(noise_ceiling(mean[:1], deviation[:1]))
    with pytest.raises(DataError, match="negative"):
        noise_ceiling(mean, -deviation)
