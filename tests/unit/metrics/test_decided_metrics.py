import jaxtyping
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import average_precision_score, balanced_accuracy_score, f1_score, recall_score

from crossgraft.errors import DataError, NotApplicable
from crossgraft.metrics import (
    accuracy,
    average_precision,
    balanced_accuracy,
    balanced_accuracy_combination,
    decide,
    f1,
    sensitivity,
    specificity,
)
from crossgraft.metrics._intervals import Units
from crossgraft.metrics.average_precision import _precision_part
from crossgraft.metrics.f1 import _f1_part

RNG = np.random.default_rng(0)
TRUTH = RNG.choice(4, p=[0.5, 0.3, 0.15, 0.05], size=200)
DECIDED = np.where(RNG.random(200) < 0.6, TRUTH, RNG.integers(0, 4, 200))
MARKS = (RNG.random((150, 3)) < [0.5, 0.3, 0.1]).astype(int)
CHOSEN = np.where(RNG.random((150, 3)) < 0.8, MARKS, 1 - MARKS)
SCORES = np.round(RNG.random((150, 3)) + 0.4 * MARKS, 1)


def test_values_are_scikit_learns():
    assert balanced_accuracy(DECIDED, TRUTH).value == pytest.approx(balanced_accuracy_score(TRUTH, DECIDED))
    assert f1(DECIDED, TRUTH).value == pytest.approx(f1_score(TRUTH, DECIDED, average="macro"))
    assert f1(CHOSEN, MARKS).value == pytest.approx(f1_score(MARKS, CHOSEN, average="macro"))
    assert average_precision(SCORES, MARKS).value == pytest.approx(average_precision_score(MARKS, SCORES))
    of_classes = average_precision(np.column_stack([SCORES, SCORES[:, 0]]), TRUTH[:150])
    expected = average_precision_score(np.eye(4, dtype=int)[TRUTH[:150]], np.column_stack([SCORES, SCORES[:, 0]]))
    assert of_classes.value == pytest.approx(expected)
    for column in range(3):
        assert sensitivity(CHOSEN[:, column], MARKS[:, column]).value == recall_score(MARKS[:, column], CHOSEN[:, column])
    both = [recall_score(MARKS[:, c], CHOSEN[:, c], pos_label=side) for c in range(3) for side in (0, 1)]
    assert balanced_accuracy(CHOSEN, MARKS).value == pytest.approx(np.mean(both))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1)), min_size=2, max_size=40))
def test_average_precision_with_ties_is_scikit_learns(pairs):
    scores, truth = np.array([float(s) for s, _ in pairs]), np.array([y for _, y in pairs])
    if truth.min() == truth.max():
        with pytest.raises(NotApplicable, match="needs images with and without a class"):
            average_precision(scores, truth)
        return
    found = average_precision(scores, truth)
    assert found.value == pytest.approx(average_precision_score(truth, scores), abs=1e-12)
    if min(truth.sum(), (1 - truth).sum()) < 2:
        assert found.low is None and "there is one image" in found.note
    else:
        assert 0 <= found.low <= found.value <= found.high <= 1 and found.low < found.high


@pytest.mark.parametrize("metric", ["average precision", "f1"])
def test_influence_is_the_derivative_with_respect_to_the_weight_of_an_image(metric):
    truth, scores, chosen = MARKS[:, 1], SCORES[:, 1], CHOSEN[:, 1]
    units = Units(None, 150)
    # The small-sample factors of positive and negative images are taken out again.
    factors = np.where(truth == 1, *(np.sqrt(n / (n - 1)) for n in (truth.sum(), 150 - truth.sum())))
    if metric == "f1":
        influence = _f1_part(chosen == 1, truth == 1, units, "").influence
    else:
        influence = _precision_part(scores, truth == 1, units, "").influence / factors
    for image in range(0, 150, 7):
        values = []
        for step in (1e-5, -1e-5):
            weight = np.ones(150)
            weight[image] += step
            if metric == "f1":
                values.append(f1_score(truth, chosen, sample_weight=weight))
            else:
                values.append(average_precision_score(truth, scores, sample_weight=weight))
        assert influence[image] == pytest.approx((values[0] - values[1]) / 2e-5, abs=1e-8)


def test_interval_of_balanced_accuracy_combines_those_of_the_recalls():
    recalls = [accuracy(DECIDED[c == TRUTH] == c) for c in range(4)]
    found = balanced_accuracy(DECIDED, TRUTH)
    below = np.sqrt(sum((one.value - one.low) ** 2 for one in recalls)) / 4
    above = np.sqrt(sum((one.high - one.value) ** 2 for one in recalls)) / 4
    assert (found.value - found.low, found.high - found.value) == pytest.approx((below, above))


def test_patients_with_several_classes_bind_the_recalls_together():
    groups = np.repeat(np.arange(20), 10)
    truth = np.tile([0, 1], 100)
    decided = np.where(np.arange(20)[groups] < 14, truth, 1 - truth)  # a patient is all right or all wrong
    bound = balanced_accuracy(decided, truth, groups)
    recall = accuracy(decided[truth == 0] == 0, groups[truth == 0])
    assert (bound.low, bound.high) == pytest.approx((recall.low, recall.high))


def test_a_rare_class_that_is_all_right_still_widens():
    truth = np.repeat([0, 1], [200, 3])
    found = balanced_accuracy(truth, truth)
    assert found.value == found.high == 1
    assert found.low < 0.75


def test_sensitivity_and_specificity_are_accuracies_of_one_side():
    decided, truth, groups = CHOSEN[:, 0], MARKS[:, 0], np.arange(150) % 25
    for side, metric in ((1, sensitivity), (0, specificity)):
        rows = truth == side
        found, expected = metric(decided, truth, groups), accuracy(decided[rows] == side, groups[rows])
        assert found[:5] == pytest.approx(expected)
    assert sensitivity(decided, truth)[0] != specificity(decided, truth)[0]


def test_classes_without_images_are_left_out_by_name():
    found = balanced_accuracy(np.array([0, 1, 2]), np.array([0, 1, 1]), class_names=["a", "b", "c"])
    assert (found.value, found.left_out) == (0.75, ("c",))
    assert f1(np.array([0, 1, 2]), np.array([0, 1, 1]), class_names=["a", "b", "c"]).left_out == ("c",)


def test_f1_has_the_interval_of_a_share():
    """J = TP / (TP + FP + FN) is a share, and F1 = 2 J / (1 + J)."""
    chosen, truth = CHOSEN[:, 0] == 1, MARKS[:, 0] == 1
    share = accuracy((chosen & truth)[chosen | truth])
    found = f1(chosen[:, None].astype(int), truth[:, None].astype(int))
    assert (found.low, found.high) == pytest.approx(tuple(2 * j / (1 + j) for j in (share.low, share.high)))
    none = f1(np.zeros((9, 1), dtype=int), np.array([[1]] * 4 + [[0]] * 5))
    assert none.value == none.low == 0 and none.high == pytest.approx(2 * 0.6024 / 1.6024, abs=1e-4)


@pytest.mark.parametrize("grouped", [False, True])
def test_interval_of_average_precision_follows_the_equations_literally(grouped):
    scores, truth = SCORES[:, 1].copy(), MARKS[:, 1]
    scores[np.flatnonzero(truth)[0]] = 2.0  # no other image scores as high
    groups = np.arange(150) % 40 if grouped else np.arange(150)
    found = average_precision(scores, truth, groups if grouped else None)
    units = Units(groups, 150)
    influence = _precision_part(scores, truth == 1, units, "").influence
    sides, counts = [], []
    for side in (1, 0):
        own = [influence[(groups == each) & (truth == side)].sum() for each in np.unique(groups)]
        sides.append(np.square(own).sum())
        counts.append(len(np.unique(groups[truth == side])))
    total = sum(influence[groups == each].sum() ** 2 for each in np.unique(groups))
    welch = sum(sides) ** 2 / sum(square**2 / (number - 1) for square, number in zip(sides, counts, strict=True))
    quantile = stats.t.ppf(0.975, min(welch, len(np.unique(groups)) - 1, counts[0] - 1))
    among_others = []
    for image in np.flatnonzero(truth):
        rows = (scores >= scores[image]) & (groups != groups[image])
        among_others.append(truth[rows].mean() if rows.any() else 1.0)
    half = quantile * np.sqrt(total) / (found.value * (1 - found.value))
    low, high = np.mean(among_others), found.value
    expected = [1 / (1 + (1 - p) / p * np.exp(sign * half)) for p, sign in ((low, 1), (high, -1))]
    assert (found.low, found.high) == pytest.approx(expected)


def test_perfect_order_has_an_interval():
    found = average_precision(np.repeat([0.2, 0.8], 10), np.repeat([0, 1], 10))
    assert (found.value, found.high) == (1, 1) and found.low == pytest.approx(0.025 ** (1 / 10))


@given(st.integers(0, 500))
def test_a_combination_of_balanced_accuracies_is_their_difference(seed):
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, p=[0.6, 0.3, 0.1], size=60)
    truth[:3] = 0, 1, 2
    one, other = (np.where(rng.random(60) < share, truth, rng.integers(0, 3, 60)) for share in (0.8, 0.6))
    found = balanced_accuracy_combination([(1.0, one), (-1.0, other)], truth, class_names="abc")
    assert found.value == pytest.approx(balanced_accuracy_score(truth, one) - balanced_accuracy_score(truth, other))
    assert found.low < found.value < found.high
    turned = balanced_accuracy_combination([(1.0, other), (-1.0, one)], truth, class_names="abc")
    assert turned[:3] == pytest.approx((-found.value, -found.high, -found.low))
    alone = balanced_accuracy_combination([(0.5, one), (0.5, one)], truth, class_names="abc")
    assert alone[:3] == pytest.approx(balanced_accuracy(one, truth, class_names="abc")[:3])
    same = balanced_accuracy_combination([(1.0, one), (-1.0, one)], truth, class_names="abc")
    assert same.value == 0 and same.low < 0 < same.high
    with pytest.raises(DataError, match="at least one term"):
        balanced_accuracy_combination([], truth)


def test_one_class_only_is_refused():
    ones = np.ones(4, dtype=int)
    with pytest.raises(NotApplicable, match="at least two classes; all 4 are of b"):
        balanced_accuracy(ones, ones, class_names=["a", "b"])
    with pytest.raises(NotApplicable, match="the only image is of b"):
        balanced_accuracy(ones[:1], ones[:1], class_names=["a", "b"])
    with pytest.raises(NotApplicable, match="Sensitivity needs positive images; none of 4 is"):
        sensitivity(ones, 0 * ones)
    with pytest.raises(NotApplicable, match="Specificity needs negative images"):
        specificity(ones, ones)
    with pytest.raises(NotApplicable, match="F1 needs images with and without a class"):
        f1(ones[:, None], ones[:, None])


def test_one_group_has_a_value_and_no_interval():
    found = sensitivity(CHOSEN[:, 0], MARKS[:, 0], np.zeros(150))
    assert (found.low, found.high, found.num_groups) == (None, None, 1)
    assert found.value == sensitivity(CHOSEN[:, 0], MARKS[:, 0]).value and "No interval" in found.note


def test_decisions():
    p = np.array([[0.5, 0.5], [0.7, 0.3], [0.4, 0.6]])
    np.testing.assert_array_equal(decide(p, task="multi-class"), [0, 0, 1])
    np.testing.assert_array_equal(decide(p, task="binary"), [1, 0, 1])
    np.testing.assert_array_equal(decide(p, task="binary", thresholds=0.3), [1, 1, 1])
    np.testing.assert_array_equal(decide(p, task="multi-label", thresholds=[0.5, 0.6]), [[1, 0], [1, 0], [0, 1]])
    np.testing.assert_array_equal(decide(p, task="multi-label"), [[1, 1], [1, 0], [0, 1]])
    with pytest.raises(DataError, match="leave the thresholds out"):
        decide(p, task="multi-class", thresholds=0.5)
    with pytest.raises(DataError, match="one for each of 2 labels"):
        decide(p, task="multi-label", thresholds=[0.1, 0.2, 0.3])
    with pytest.raises(DataError, match="one for each of 1 labels"):
        decide(p, task="binary", thresholds=[0.1, 0.2])


def test_bad_input_is_named(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(DataError, match=r"decisions have shape \(2,\) and the targets \(3,\)"):
        f1(np.array([0, 1]), np.array([0, 1, 1]))
    with pytest.raises(DataError, match="numbers from 0 to 1"):
        balanced_accuracy(np.array([0, 2]), np.array([0, 1]), class_names=["a", "b"])
    with pytest.raises(DataError, match="2 decisions and 3 targets"):
        sensitivity(np.array([0, 1]), np.array([0, 1, 1]))
