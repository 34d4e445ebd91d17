from pathlib import Path

import numpy as np
import pytest

from crossgraft.data import dataset_from_arrays
from crossgraft.records import ComparedTrainingRecord
from crossgraft.tune.variants.curves import MixedCurve, above_curve
from crossgraft.tune.variants.differences import MeasuredImages
from crossgraft.tune.variants.trainings import DoneTraining
from crossgraft.tune.variants.variant import Variant
from support.comparison_records import comparison_record

TARGETS = np.arange(80) % 2
IMAGES = MeasuredImages.of(dataset_from_arrays(np.zeros((80, 4, 4, 3), np.uint8), TARGETS), "balanced_accuracy")
HALF_RIGHT = np.zeros(80, dtype=np.int64)


def curve(seed, low, high):
    """From a network that is right everywhere to one that always says the same; ``high`` and ``low`` are their CKA."""
    record = comparison_record().interpolation[0]
    points = [record.points[0].model_copy(update={"similarity": {"cka": cka}}) for cka in (high, low)]
    return MixedCurve(seed, record.model_copy(update={"points": points}), [TARGETS, HALF_RIGHT], starts_at_linear=False)


def trained(seed, cka):
    variant = Variant("l2_sp", {"method": "full", "regularizer": ("l2_sp",)})
    row = ComparedTrainingRecord(variant="l2_sp", seed=seed, state="done", similarity={"cka": cka}, seconds=1.0)
    return DoneTraining(variant, seed, row, None, Path())


def test_a_variant_is_compared_with_the_place_of_the_curve_that_has_its_cka():
    right = IMAGES.measure(TARGETS)
    found = above_curve([trained(0, 0.75)], [right], [curve(0, 0.5, 1.0)], IMAGES)
    assert found.value == pytest.approx(1 - 0.75)  # in the middle of 1 and 0.5


def test_seeds_without_such_a_network_are_not_left_out_silently():
    right = IMAGES.measure(TARGETS)
    curves = [curve(0, 0.5, 1.0), curve(1, 0.8, 1.0)]
    found = above_curve([trained(0, 0.75), trained(1, 0.75)], [right, right], curves, IMAGES)
    assert found.value is None
    assert "1 of 2 seeds" in found.reason
