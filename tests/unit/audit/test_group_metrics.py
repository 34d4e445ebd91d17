"""The four cells of class and artefact: shares counted by hand, gaps, and cells without images."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.audit import group_metrics
from crossgraft.errors import DataError


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 999), st.integers(4, 60), st.floats(0.05, 0.95))
def test_every_cell_is_a_share(seed, number, threshold):
    rng = np.random.default_rng(seed)
    scores, labels, artefact = rng.random(number), rng.integers(0, 2, number), rng.integers(0, 2, number)
    found = group_metrics(scores, labels, artefact, threshold=threshold)
    decided = scores >= threshold
    assert sum(cell.num_images for cell in found.cells) == number and len(found.cells) + len(found.empty) == 4
    for cell in found.cells:
        rows = (labels == cell.positive) & (artefact == cell.artefact)
        assert cell.num_images == rows.sum() and cell.is_small == (rows.sum() < 10)
        assert cell.accuracy.value == pytest.approx((decided[rows] == labels[rows]).mean())
    assert found.worst.accuracy.value == min(cell.accuracy.value for cell in found.cells)

    def gap(among):
        sides = [decided[among & (artefact == each)] for each in (1, 0)]
        return sides[0].mean() - sides[1].mean() if all(len(each) for each in sides) else None

    assert found.true_positive_gap == pytest.approx(gap(labels == 1))
    assert found.false_positive_gap == pytest.approx(gap(labels == 0))
    assert found.positive_gap == pytest.approx(gap(labels < 2))


def test_a_model_that_sees_the_artefact_alone():
    labels, artefact = np.repeat([0, 0, 1, 1], 20), np.tile(np.repeat([0, 1], 20), 2)
    found = group_metrics(0.1 + 0.8 * artefact, labels, artefact)
    assert found.worst.accuracy.value == 0 and found.worst.positive != found.worst.artefact
    assert (found.true_positive_gap, found.false_positive_gap, found.positive_gap) == (1, 1, 1)
    assert found.auc_with.value == found.auc_without.value == 0.5


def test_empty_cells_are_named_and_take_no_part():
    labels, artefact = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])
    found = group_metrics(np.array([0.1, 0.2, 0.8, 0.9]), labels, artefact)
    assert found.empty == ("negative with the artefact", "positive without the artefact")
    assert found.auc_with is None and found.true_positive_gap is None and found.positive_gap == 1
    one = group_metrics(np.array([0.9, 0.8]), np.array([1, 1]), np.array([0, 0]), groups=np.array(["a", "a"]))
    assert one.cells[0].accuracy.low is None and one.cells[0].accuracy.value == 1


def test_patients_widen_intervals():
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(20), 6)
    right = np.repeat(rng.random(20) < 0.7, 6)
    labels = np.ones(120, dtype=np.int64)
    scores = np.where(right, 0.9, 0.1)
    (alone,), (grouped,) = (group_metrics(scores, labels, 0 * labels, groups=groups).cells for groups in (None, patients))
    assert grouped.accuracy.high - grouped.accuracy.low > 1.5 * (alone.accuracy.high - alone.accuracy.low)


@pytest.mark.parametrize(
    ("scores", "labels", "artefact", "said"),
    [
        ([0.5, 0.5], [0, 2], [0, 1], "labels must be 0 or 1"),
        ([0.5, 0.5], [0, 1], [0, 7], "artefact must be 0 or 1"),
        ([0.5, 1.5], [0, 1], [0, 1], "Probabilities"),
        ([0.5, np.nan], [0, 1], [0, 1], "Probabilities"),
    ],
)
def test_bad_input(scores, labels, artefact, said):
    with pytest.raises(DataError, match=said):
        group_metrics(np.array(scores), np.array(labels), np.array(artefact))
