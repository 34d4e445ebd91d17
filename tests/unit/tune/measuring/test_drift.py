import numpy as np
import pytest
import torch

from crossgraft.data import dataset_from_arrays
from crossgraft.similarity import linear_cka
from crossgraft.tune.engine.cached_features import features_of
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.measuring.drift import Compared, similarity_to_source
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


def with_other_statistics():
    classifier = build_classifier()
    classifier.body.norm.running_mean[:3].add_(0.7)
    classifier.body.norm.running_var[3:].mul_(5)
    return classifier


def both(before, after):
    return pytest.approx([linear_cka(before, after), linear_cka(before, after, debiased=True)], abs=1e-6)


def measured(dataset, *compared):
    return similarity_to_source(compared, dataset, device="cpu", num_threads=1)


def test_all_rows_count_and_networks_stay_as_they_were(dataset):
    source, tuned = build_classifier(), moved().double().train()
    found = measured(dataset, Compared(tuned, ROWS, source))
    images = TrainingImages(dataset.take(ROWS), source.preprocessing)
    before, after = (features_of(each, images, batch_size=64, device="cpu") for each in (source, tuned))
    assert found.keys() == {"cka", "cka_debiased"}
    assert [found["cka"], found["cka_debiased"]] == both(before, after)
    assert found["cka"] < 0.995
    assert tuned.training
    assert tuned.head.weight.dtype == torch.float64


def test_with_other_statistics_of_batch_norm_three_pairs_are_compared(dataset):
    source, tuned, adapted = build_classifier(), moved(), with_other_statistics()
    found = measured(dataset, Compared(tuned, ROWS, source, adapted))
    images = TrainingImages(dataset.take(ROWS), source.preprocessing)
    before, after, untouched = (features_of(each, images, batch_size=64, device="cpu") for each in (source, tuned, adapted))
    pairs = {"": (before, after), "_adapted": (untouched, after), "_untouched": (before, untouched)}
    assert found.keys() == {f"{name}{ending}" for name in ("cka", "cka_debiased") for ending in pairs}
    for ending, pair in pairs.items():
        assert [found[f"cka{ending}"], found[f"cka_debiased{ending}"]] == both(*pair)
    assert len({round(found[f"cka{ending}"], 4) for ending in pairs}) == 3
    without_source = measured(dataset, Compared(tuned, ROWS, None, adapted))
    assert without_source == {name: found[name] for name in ("cka_adapted", "cka_debiased_adapted")}


def test_folds_give_the_mean(dataset):
    source, tuned = build_classifier(), moved()
    parts = [Compared(tuned, ROWS[:40], source), Compared(build_classifier(), ROWS[40:], source)]
    alone = [measured(dataset, part) for part in parts]
    together = measured(dataset, *parts)
    for name in ("cka", "cka_debiased"):
        assert together[name] == pytest.approx((alone[0][name] + alone[1][name]) / 2, rel=1e-12)
        assert alone[1][name] == pytest.approx(1, abs=1e-6)


def test_what_can_not_be_compared_is_left_out(dataset):
    assert measured(dataset, Compared(moved(), ROWS, None)) == {}
    assert measured(dataset, Compared(moved(), ROWS[:3], build_classifier())) == {}
