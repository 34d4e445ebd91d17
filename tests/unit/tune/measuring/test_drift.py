import numpy as np
import pytest
import torch

from crossgraft.data import dataset_from_arrays
from crossgraft.similarity import linear_cka
from crossgraft.tune.engine.cached_features import features_of
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.measuring.drift import similarity_to_source
from support.training import SIZE, build_classifier

ROWS = np.arange(3, 97)


@pytest.fixture(scope="module")
def dataset():
    pixels = np.random.default_rng(0).integers(0, 255, (100, SIZE, SIZE, 3), dtype=np.uint8)
    return dataset_from_arrays(pixels, [0, 1] * 50)


def moved():
    classifier = build_classifier()
    with torch.no_grad():
        classifier.body.block.weight[:3].mul_(-0.5)
    return classifier


def both(before, after):
    return pytest.approx([linear_cka(before, after), linear_cka(before, after, debiased=True)], abs=1e-6)


def test_all_rows_count_and_networks_stay_as_they_were(dataset):
    source, tuned = build_classifier(), moved().double().train()
    found = similarity_to_source(source, [(tuned, ROWS)], dataset, device="cpu", num_threads=1)
    images = TrainingImages(dataset.take(ROWS), source.preprocessing)
    before, after = (features_of(each, images, batch_size=64, device="cpu") for each in (source, tuned))
    assert [found["cka"], found["cka_debiased"]] == both(before, after)
    assert found["cka"] < 0.995
    assert tuned.training
    assert tuned.head.weight.dtype == torch.float64


def test_folds_give_the_mean(dataset):
    source, tuned = build_classifier(), moved()
    parts = [(tuned, ROWS[:40]), (build_classifier(), ROWS[40:])]
    alone = [similarity_to_source(source, [part], dataset, device="cpu", num_threads=1) for part in parts]
    together = similarity_to_source(source, parts, dataset, device="cpu", num_threads=1)
    for name in ("cka", "cka_debiased"):
        assert together[name] == pytest.approx((alone[0][name] + alone[1][name]) / 2, rel=1e-12)
        assert alone[1][name] == pytest.approx(1, abs=1e-6)


def test_what_can_not_be_compared_is_left_out(dataset):
    assert similarity_to_source(None, [(moved(), ROWS)], dataset, device="cpu", num_threads=1) == {}
    few = similarity_to_source(build_classifier(), [(moved(), ROWS[:3])], dataset, device="cpu", num_threads=1)
    assert few == {}
