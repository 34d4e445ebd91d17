import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import brier_score_loss, log_loss

from crossgraft.errors import NotApplicable, UsageError
from crossgraft.metrics import brier_score, calibration_error, negative_log_likelihood

RNG = np.random.default_rng(0)
TRUTH = RNG.integers(0, 3, 120)
P = RNG.dirichlet(np.ones(3), 120)
MARKS = (RNG.random((120, 2)) < 0.3).astype(int)
Q = RNG.random((120, 2))


def literal_error(confidence, right, num_bins=15):
    total = 0.0
    for b in range(num_bins):
        low, high = b / num_bins, (b + 1) / num_bins
        rows = [i for i, c in enumerate(confidence) if low < c <= high or (b == 0 and c == 0)]
        if rows:
            total += abs(np.mean(confidence[rows]) - np.mean(right[rows])) * len(rows) / len(confidence)
    return total


def test_calibration_error_is_its_definition():
    assert calibration_error(P, TRUTH).value == pytest.approx(literal_error(P.max(axis=1), P.argmax(axis=1) == TRUTH))
    by_label = [literal_error(Q[:, column], MARKS[:, column]) for column in range(2)]
    assert calibration_error(Q, MARKS).value == pytest.approx(np.mean(by_label))
    assert calibration_error(P, TRUTH, num_bins=4).value == pytest.approx(
        literal_error(P.max(axis=1), P.argmax(axis=1) == TRUTH, 4)
    )


def test_edges_belong_to_the_lower_bin_and_the_ends_to_a_bin():
    labels = np.array([[1], [0], [1], [0]])
    # 0.2 = 3/15 ends a bin and 0.21 begins the next: |0.2 − 1| / 4 + |0.21 − 0| / 4, and nothing at 0 and 1.
    assert calibration_error(np.array([[0.2], [0.21], [1.0], [0.0]]), labels).value == pytest.approx((0.8 + 0.21) / 4)


def test_certain_and_right_has_no_error():
    found = calibration_error(np.eye(3)[TRUTH], TRUTH)
    assert found[:3] == (0.0, None, None)


def test_probabilities_that_hold_have_a_small_error_and_too_large_ones_a_large_one():
    rng = np.random.default_rng(1)
    confidence = rng.uniform(0.5, 1, 20_000)
    truth = (rng.random(20_000) > confidence).astype(int)
    p = np.column_stack([confidence, 1 - confidence])
    assert calibration_error(p, truth).value < 0.02
    sure = np.column_stack([np.full(20_000, 0.99), np.full(20_000, 0.01)])
    found = calibration_error(sure, truth)
    assert found.value == pytest.approx(0.24, abs=0.01)
    assert found.low is None and "too high by an amount that is not known" in found.note


def test_brier_score_and_likelihood_are_scikit_learns():
    assert brier_score(P, TRUTH).value == pytest.approx(brier_score_loss(TRUTH, P))
    two = np.column_stack([1 - Q[:, 0], Q[:, 0]])
    assert brier_score(two, MARKS[:, 0]).value == pytest.approx(brier_score_loss(MARKS[:, 0], Q[:, 0]))
    labels = [brier_score_loss(MARKS[:, c], Q[:, c]) for c in range(2)]
    assert brier_score(Q, MARKS).value == pytest.approx(np.mean(labels))
    assert negative_log_likelihood(P, TRUTH).value == pytest.approx(log_loss(TRUTH, P))
    by_label = [log_loss(MARKS[:, c], Q[:, c]) for c in range(2)]
    assert negative_log_likelihood(Q, MARKS).value == pytest.approx(np.mean(by_label))


def literal_ends(values, groups, largest):
    """The farthest of Student's end, Hall's, and Student's of the logarithm of the distance to the limit."""
    names = np.unique(groups)
    mean, n, g = values.mean(), len(values), len(names)
    totals = np.array([(values - mean)[groups == name].sum() for name in names])
    error = np.sqrt(g / (g - 1) * (totals**2).sum()) / n
    t = stats.t.ppf(0.975, g - 1)
    a = (totals**3).mean() / (totals**2).mean() ** 1.5 / np.sqrt(g)

    def h(x):
        return 3 / a * (np.cbrt(1 + a * (x - a / 6)) - 1)

    below = [t * error, h(t) * error]
    above = [t * error, -h(-t) * error, mean * (np.exp(t * error / mean) - 1)]
    if np.isfinite(largest):
        below.append((largest - mean) * (np.exp(t * error / (largest - mean)) - 1))
    return max(0.0, mean - max(below)), min(largest, mean + max(above))


@pytest.mark.parametrize("groups", [np.arange(120), np.arange(120) % 17, np.repeat(np.arange(20), 6)])
def test_interval_is_the_farthest_of_three(groups):
    given = None if len(np.unique(groups)) == 120 else groups
    found = negative_log_likelihood(P, TRUTH, given)
    assert (found.low, found.high) == pytest.approx(literal_ends(-np.log(P[np.arange(120), TRUTH]), groups, np.inf))
    found = brier_score(P, TRUTH, given)
    assert (found.low, found.high) == pytest.approx(literal_ends(np.square(P - np.eye(3)[TRUTH]).sum(axis=1), groups, 2.0))


ALTERNATING = np.arange(30) % 2
SURE = np.abs(1 - ALTERNATING[:, None] - [0, 1] - np.linspace(1e-4, 0.5, 30)[:, None])
"""All thirty are right; one more may not be, and is the larger part of the mean."""


def test_one_image_that_is_wrong_gives_losses_an_interval():
    wrong = np.r_[1 - ALTERNATING[:1], ALTERNATING[1:]]
    for metric in (brier_score, negative_log_likelihood):
        found = metric(SURE, wrong)
        assert found.low < found.value < found.high


def test_without_an_interval_there_is_a_reason():
    for found, reason in (
        (brier_score(P, TRUTH, np.zeros(120)), "1 groups do not show"),
        (brier_score(P[:14], np.arange(14) % 3), "14 images do not show"),
        (brier_score(P[:40, :2] / P[:40, :2].sum(axis=1, keepdims=True), (np.arange(40) < 2).astype(int)), "2 images"),
        (negative_log_likelihood(np.full((30, 2), 0.5), np.arange(30) % 2), "the loss of all images is the same"),
        (brier_score(SURE, ALTERNATING), "losses of mistakes were not seen"),
        (negative_log_likelihood(SURE, ALTERNATING), "losses of mistakes were not seen"),
        (negative_log_likelihood(SURE[:, 1:], ALTERNATING[:, None]), "losses of mistakes were not seen"),
    ):
        assert found.value > 0 and (found.low, found.high) == (None, None)
        assert found.note.startswith("No interval: ") and reason in found.note


def test_impossible_truth_is_refused():
    p = np.array([[1.0, 0.0], [0.5, 0.5]])
    with pytest.raises(NotApplicable, match="1 of 2 images had probability 0"):
        negative_log_likelihood(p, np.array([1, 0]))
    with pytest.raises(NotApplicable, match="1 of 2 images"):
        negative_log_likelihood(p, np.array([[0, 0], [1, 0]]))


def test_bins_are_needed():
    with pytest.raises(UsageError, match="at least one bin"):
        calibration_error(P, TRUTH, num_bins=0)
