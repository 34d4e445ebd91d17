from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crossgraft.data import dataset_from_arrays
from crossgraft.tune.record import BatchNormRecord
from crossgraft.variants.comparison import MeasuredImages
from crossgraft.variants.curves import MixedCurve, above_curve
from crossgraft.variants.record import ComparedTrainingRecord
from crossgraft.variants.study import DoneTraining
from crossgraft.variants.summary import Measured, summarise
from crossgraft.variants.variant import Variant
from support.comparison_records import comparison_record
from support.tuning_records import tuning_record

TARGETS = np.arange(80) % 2
IMAGES = MeasuredImages(dataset_from_arrays(np.zeros((80, 4, 4, 3), np.uint8), TARGETS), "balanced_accuracy")
HALF_RIGHT = np.zeros(80, dtype=np.int64)


def curve(seed, low, high, **fields):
    """From a network that always says the same to one that is right everywhere; ``high`` and ``low`` are their CKA."""
    record = comparison_record().interpolation[0]
    points = [
        record.points[0].model_copy(update={"similarity": {"cka": cka}, "alpha": alpha})
        for cka, alpha in ((high, fields.pop("start", 0.0)), (low, fields.pop("end", 0.1)))
    ]
    record = record.model_copy(update={"points": points, **fields})
    return MixedCurve(seed, record, [HALF_RIGHT, TARGETS], starts_at_linear=False)


def at(similarity, drawn):
    """The metric of the curve; None in a gap."""
    found = drawn.at(similarity, IMAGES)
    return None if found is None else found.value


def trained(seed, cka):
    variant = Variant("l2_sp", {"method": "full", "regularizer": ("l2_sp",)})
    row = ComparedTrainingRecord(variant="l2_sp", seed=seed, state="done", similarity={"cka": cka}, seconds=1.0)
    return DoneTraining(variant, seed, row, None, Path())


def test_a_variant_is_compared_with_the_place_of_the_curve_that_has_its_cka():
    right = IMAGES.measure(TARGETS)
    found = above_curve([trained(0, 0.75)], [right], [curve(0, 0.65, 0.85)], IMAGES)
    assert found.value == pytest.approx(1 - 0.75)  # in the middle of 1 and 0.5


def test_what_started_from_an_adapted_network_is_compared_by_the_similarity_to_that():
    """By the similarity to the network as it came it would be a place that is right everywhere, or none."""
    drawn, right = curve(0, 0.65, 0.85), IMAGES.measure(TARGETS)
    for point, adapted in zip(drawn.record.points, (1.0, 0.8), strict=True):
        point.similarity["cka_adapted"] = adapted
    training = trained(0, 0.65)
    training.row.similarity["cka_adapted"] = 0.9
    assert above_curve([training], [right], [drawn], IMAGES).value == pytest.approx(0)
    assert above_curve([training], [right], [drawn], IMAGES, adapted=True).value == pytest.approx(1 - 0.75)
    for mode, expected in (("train", 0), ("adapt", 1 - 0.75)):
        norms = BatchNormRecord(mode=mode, num_layers=2, num_moving=2)
        done = replace(training, record=tuning_record(batch_norm=norms))
        (row,) = summarise([Measured(done.variant, [done], [right], 0)], [drawn], IMAGES)
        assert row.above_curve.value == pytest.approx(expected)


def test_where_the_curve_folds_back_the_best_network_that_keeps_as_much_counts():
    """CKA falls to 0.7 and comes back to 0.85 with a better metric: what is worse than that at 0.75 is not above the curve."""
    record = curve(0, 0.7, 0.9).record
    last = record.points[0].model_copy(update={"similarity": {"cka": 0.85}, "alpha": 0.2})
    folded = record.model_copy(update={"points": [*record.points, last]})
    three_quarters = np.where(np.arange(80) < 40, TARGETS, HALF_RIGHT)
    drawn = MixedCurve(0, folded, [HALF_RIGHT, three_quarters, TARGETS], starts_at_linear=False)
    assert [at(each, drawn) for each in (0.88, 0.75, 0.7)] == pytest.approx([0.525, 1.0, 1.0])
    found = above_curve([trained(0, 0.75)], [IMAGES.measure(three_quarters)], [drawn], IMAGES)
    assert found.value == pytest.approx(-0.25)


def test_seeds_without_such_a_network_are_not_left_out_silently():
    right = IMAGES.measure(TARGETS)
    curves = [curve(0, 0.65, 0.85), curve(1, 0.5, 1.0)]  # the second jumps
    found = above_curve([trained(0, 0.75), trained(1, 0.75)], [right, right], curves, IMAGES)
    assert found.value is None
    assert "1 of 2 seeds" in found.reason


def test_where_the_similarity_jumps_only_the_measured_networks_count():
    jump = curve(0, 0.5, 1.0)
    assert [at(each, jump) for each in (1.0, 0.75, 0.5)] == [0.5, None, 1.0]
    assert at(0.4, jump) == 1.0  # every network of the curve keeps more
    found = above_curve([trained(0, 0.75)], [IMAGES.measure(TARGETS)], [jump], IMAGES)
    assert found.value is None
    assert "that was measured" in found.reason


@pytest.mark.parametrize(
    ("fields", "is_there"),
    [
        ({"num_batch_norms": 3}, False),
        ({"num_batch_norms": 3, "start": 0.9, "end": 1.0}, False),
        ({"num_batch_norms": 3, "start": 0.1, "end": 0.2}, True),
        ({"num_batch_norms": 3, "batch_norm": "mix"}, True),
        ({"num_batch_norms": 0}, True),
    ],
)
def test_an_end_with_statistics_of_its_own_is_joined_to_nothing(fields, is_there):
    drawn = curve(0, 0.9, 1.0, **fields)
    assert (at(0.95, drawn) is not None) == is_there
    assert at(1.0, drawn) == 0.5
    assert drawn.record.is_joined(0, "cka") == is_there
    assert not drawn.record.is_joined(0, "cka_debiased")  # was not measured
