"""Whatever the images are, an interval has a width and holds its value, or there is none and the reason is said."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.errors import NotApplicable, UsageError
from crossgraft.metrics import (
    MetricValue,
    accuracy,
    accuracy_difference,
    auc,
    auc_difference,
    average_precision,
    balanced_accuracy,
    balanced_accuracy_combination,
    brier_score,
    f1,
    negative_log_likelihood,
    sensitivity,
    share_of_images,
    specificity,
)

images = st.lists(
    st.tuples(st.integers(0, 1), st.integers(-3, 3), st.integers(-3, 3), st.integers(0, 4)), min_size=1, max_size=30
)
"""Class, score of one model, score of another, patient."""


def every_metric(truth, one, other, groups):
    """Names, and what gives the value."""
    p = np.column_stack([1 - (one + 4) / 8, (one + 4) / 8])
    decided, others = (one > 0).astype(np.int64), (other > 0).astype(np.int64)
    names = ["no", "yes"]
    yield "accuracy", lambda: share_of_images(decided == truth, groups)
    yield "balanced accuracy", lambda: balanced_accuracy(decided, truth, groups, class_names=names)
    yield "f1", lambda: f1(decided[:, None], truth[:, None], groups)
    yield "sensitivity", lambda: sensitivity(decided, truth, groups)
    yield "specificity", lambda: specificity(decided, truth, groups)
    yield "auc", lambda: auc(one.astype(float), truth, groups)
    yield "average precision", lambda: average_precision(one.astype(float), truth, groups)
    yield "brier", lambda: brier_score(p, truth, groups)
    yield "likelihood", lambda: negative_log_likelihood(p, truth, groups)
    yield "auc difference", lambda: auc_difference(one.astype(float), other.astype(float), truth, groups)
    both = [(1.0, decided), (-1.0, others)]
    yield "balanced difference", lambda: balanced_accuracy_combination(both, truth, groups, class_names=names)


@settings(max_examples=150, deadline=None)
@given(images, st.sampled_from(["none", "some", "one"]))
def test_an_interval_has_a_width_or_a_reason(rows, patients):
    truth, one, other, patient = (np.array(column) for column in zip(*rows, strict=True))
    groups = {"none": None, "some": patient, "one": np.zeros(len(truth), dtype=np.int64)}[patients]
    for name, metric in every_metric(truth, one, other, groups):
        try:
            found: MetricValue = metric()
        except NotApplicable:  # which always has a reason
            continue
        assert np.isfinite(found.value), name
        if found.low is None:
            assert found.high is None and "No interval" in found.note, name
        else:
            assert found.high - found.low > 1e-9, name
            assert found.low - 1e-9 <= found.value <= found.high + 1e-9, name
    if patients == "one":
        assert all(metric().low is None for name, metric in every_metric(truth, one, other, groups) if name == "accuracy")


@settings(max_examples=50, deadline=None)
@given(images)
def test_a_difference_has_a_width(rows):
    truth, one, other, patient = (np.array(column) for column in zip(*rows, strict=True))
    for groups in (None, patient):
        units = len(truth) if groups is None else len(np.unique(groups))
        if units < 2:
            with pytest.raises(NotApplicable):
                accuracy_difference(one == truth, other == truth, groups)
            continue
        found = accuracy_difference(one == truth, other == truth, groups)
        assert -1 <= found.low < found.high <= 1 and found.low <= found.value <= found.high


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0, -0.1, float("nan")])
def test_confidence_is_a_share(confidence):
    with pytest.raises(UsageError, match="between 0 and 1"):
        accuracy(np.array([True, False]), confidence=confidence)


@given(st.floats(0.5, 0.94), st.integers(0, 20))
def test_more_confidence_is_a_wider_interval(confidence, seed):
    rng = np.random.default_rng(seed)
    truth = np.arange(40) % 2
    scores = rng.normal(size=40) + truth
    for metric in (auc, average_precision):
        wide, narrow = metric(scores, truth), metric(scores, truth, confidence=confidence)
        assert wide.low < narrow.low and narrow.high < wide.high
