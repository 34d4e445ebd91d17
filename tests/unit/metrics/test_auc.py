import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from crossgraft.errors import DataError, NotApplicable
from crossgraft.metrics import auc
from crossgraft.metrics._intervals import Units
from crossgraft.metrics.auc import auc_part


def two_classes(num_samples=60, *, digits=1):
    """Scores with many ties."""
    rng = np.random.default_rng(0)
    truth = (np.arange(num_samples) % 3 == 0).astype(int)
    return np.round(rng.normal(size=num_samples) + truth, digits), truth


def several_classes(num_samples=120, num_classes=4):
    rng = np.random.default_rng(1)
    truth = rng.integers(0, num_classes, num_samples)
    logits = rng.normal(size=(num_samples, num_classes)) + 1.2 * np.eye(num_classes)[truth]
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), truth


def kernel(scores, truth):
    """[s_i > s_j] + ½ [s_i = s_j] of each positive i and negative j."""
    positive, negative = scores[truth == 1][:, None], scores[truth == 0]
    return (positive > negative) + 0.5 * (positive == negative)


def variance(scores, truth, groups=None):
    units = Units(groups, len(truth))
    return units.sum_of_squares(auc_part(scores, truth == 1, units, "").influence)


def test_counts_pairs_with_ties_as_halves():
    scores, truth = two_classes()
    assert len(np.unique(scores)) < 45
    assert auc(scores, truth).value == pytest.approx(kernel(scores, truth).mean(), abs=1e-15)


def test_agrees_with_scikit_learn():
    p, truth = several_classes()
    assert auc(p, truth).value == pytest.approx(roc_auc_score(truth, p, multi_class="ovr"), abs=1e-14)
    pairwise = auc(p, truth, average="pairwise").value
    assert pairwise == pytest.approx(roc_auc_score(truth, p, multi_class="ovo"), abs=1e-14)
    rng = np.random.default_rng(2)
    marks = (rng.random((80, 3)) < 0.4).astype(int)
    scores = np.round(rng.random((80, 3)), 1)
    assert auc(scores, marks).value == pytest.approx(roc_auc_score(marks, scores), abs=1e-14)


def test_variance_is_delongs():
    scores, truth = two_classes()
    psi = kernel(scores, truth)
    expected = psi.mean(axis=1).var(ddof=1) / psi.shape[0] + psi.mean(axis=0).var(ddof=1) / psi.shape[1]
    assert variance(scores, truth) == pytest.approx(expected, rel=1e-12)


def test_variance_of_groups_is_obuchowskis():
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 50, 400)
    truth = (rng.random(400) < np.where(groups < 25, 0.1, 0.8)).astype(int)
    scores = np.round(truth + rng.normal(size=50)[groups] + 0.5 * rng.normal(size=400), 1)
    psi = kernel(scores, truth)
    value, (m, n) = psi.mean(), psi.shape
    names = np.unique(groups)
    won = np.array([(psi.mean(axis=1) - value)[groups[truth == 1] == g].sum() for g in names])
    lost = np.array([(psi.mean(axis=0) - value)[groups[truth == 0] == g].sum() for g in names])
    held = [len(np.unique(groups[truth == side])) for side in (1, 0)]
    expected = (
        held[0] / (held[0] - 1) * won @ won / m**2
        + held[1] / (held[1] - 1) * lost @ lost / n**2
        + 2 * len(names) / (len(names) - 1) * won @ lost / (m * n)
    )
    assert variance(scores, truth, groups) == pytest.approx(expected, rel=1e-3)
    assert variance(scores, truth, groups) > 1.3 * variance(scores, truth)


def literal_newcombe(value, m, n, variance, quantile):
    """Both ends of method 5 by halving, with a variance that is at least the one the images show."""

    def shape(t):
        return t * (1 - t) * (1 + ((m + n) / 2 - 1) * ((1 - t) / (2 - t) + t / (1 + t))) / (m * n)

    factor = quantile**2 * max(1.0, variance / shape(value) if 0 < value < 1 else 1.0)
    ends = []
    for edge in (0.0, 1.0):
        inside, outside = value, edge
        for _ in range(200):
            middle = (inside + outside) / 2
            if (middle - value) ** 2 <= factor * shape(middle):
                inside = middle
            else:
                outside = middle
        ends.append(inside)
    return ends


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("shift", [0.0, 1.5, 4.0])
def test_interval_is_newcombes_with_at_least_delongs_variance(grouped, shift):
    scores, truth = two_classes()
    scores = scores + shift * truth
    groups = np.arange(60) % 15 if grouped else np.arange(60)
    found = auc(scores, truth, groups if grouped else None)
    psi = kernel(scores, truth)
    m, n = psi.shape
    total = variance(scores, truth, groups)
    plain = psi.mean(axis=1).var(ddof=1) / m + psi.mean(axis=0).var(ddof=1) / n
    units = [len(np.unique(groups[truth == side])) for side in (1, 0)]
    most = max(m / units[0], n / units[1])
    design = max(1.0, total / plain) if plain > 1e-24 else most
    f = min(units)
    design = design ** (f / (f + 2)) * max(most, design) ** (2 / (f + 2))
    worth = [min(max(number / design, least), number) for number, least in zip((m, n), units, strict=True)]
    expected = literal_newcombe(found.value, *worth, total, stats.t.ppf(0.975, sum(units) - 2))
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-8)
    assert found.low < found.value <= found.high


def test_perfect_images_have_hanley_and_mcneils_variance():
    """Where all pairs are right DeLong's variance is 0, and the lower end is that of the model."""
    found = auc(np.repeat([0.2, 0.8], 10), np.repeat([0, 1], 10))
    low, _ = literal_newcombe(1.0, 10, 10, 0.0, stats.t.ppf(0.975, 18))
    assert (found.low, found.high) == pytest.approx((low, 1.0), abs=1e-8)


def test_images_as_their_own_groups_change_nothing():
    scores, truth = two_classes()
    apart, grouped = auc(scores, truth), auc(scores, truth, np.arange(60))
    assert grouped[:3] == pytest.approx(apart[:3], rel=1e-12)
    assert (apart.num_groups, grouped.num_groups) == (None, 60)


def test_perfect_separation_keeps_an_interval_that_narrows():
    lows = [auc(np.repeat([0.2, 0.8], n), np.repeat([0, 1], n)).low for n in (2, 5, 50)]
    assert 0 < lows[0] < lows[1] < 0.9 < lows[2] < 1


def test_two_columns_are_the_one_question():
    p, truth = several_classes(num_classes=2)
    both, one = auc(p, truth), auc(p[:, 1], truth)
    assert both[:3] == pytest.approx(one[:3], rel=1e-9)


def test_mean_over_equal_labels_has_the_interval_of_one():
    scores, truth = two_classes()
    repeated = auc(np.column_stack([scores] * 3), np.column_stack([truth] * 3))
    assert repeated[:3] == pytest.approx(auc(scores, truth)[:3], rel=1e-9)


def test_mean_over_independent_labels_is_more_certain():
    rng = np.random.default_rng(4)
    scores, truth = rng.normal(size=(200, 9)), rng.integers(0, 2, (200, 9))
    mean, one = auc(scores, truth), auc(scores[:, 0], truth[:, 0])
    assert mean.high - mean.low == pytest.approx((one.high - one.low) / 3, rel=0.25)


rows = st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 1)), min_size=4, max_size=40).filter(
    lambda pairs: 2 <= sum(y for _, y in pairs) <= len(pairs) - 2
)


@settings(max_examples=40, deadline=None)
@given(rows, st.randoms(use_true_random=False))
def test_properties(pairs, random):
    scores, truth = np.array([float(s) for s, _ in pairs]), np.array([y for _, y in pairs])
    found = auc(scores, truth)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert auc(np.exp(scores) + 3, truth) == found  # any increasing function
    flipped = auc(scores, 1 - truth)
    assert flipped[:3] == pytest.approx((1 - found.value, 1 - found.high, 1 - found.low), abs=1e-9)
    assert auc(-scores, truth).value == pytest.approx(1 - found.value)
    order = list(range(len(truth)))
    random.shuffle(order)
    assert auc(scores[order], truth[order])[:3] == pytest.approx(found[:3], abs=1e-9)


def test_a_class_without_images_is_left_out_by_name():
    p, truth = several_classes(num_classes=3)
    wider = np.column_stack([p, np.full(len(p), 0.1)])
    found = auc(wider, truth, class_names=["a", "b", "c", "d"])
    assert found.left_out == ("d",) and "Without d" in found.note
    assert found.value == pytest.approx(auc(p, truth).value)


def test_a_class_of_one_group_may_be_anything():
    p, truth = several_classes(90, 3)
    groups = np.where(truth == 2, 0, np.arange(90) % 15)
    found = auc(p, truth, groups, class_names=["a", "b", "c"])
    assert "One group holds all there is of c" in found.note
    assert found.low < auc(p, truth, np.arange(90) % 15).low
    alone = auc(p[:, 2], (truth == 2).astype(int), groups)
    assert (alone.low, alone.high) == (None, None) and "No interval: images belong to one group" in alone.note
    one_image = auc(np.arange(5.0), np.array([0, 0, 0, 1, 0]))
    assert one_image.low is None and "No interval: there is one image" in one_image.note


def test_one_class_only_is_refused_by_name():
    with pytest.raises(NotApplicable, match="AUC needs images with and without a class; all 5 are of yes"):
        auc(np.arange(5.0), np.ones(5, dtype=int), class_names=["no", "yes"])
    with pytest.raises(NotApplicable, match="none of 5 is"):
        auc(np.arange(5.0), np.zeros(5, dtype=int))


def test_bad_input_is_named(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(DataError, match="scores of 2 images and targets of 3"):
        auc(np.ones(2), np.array([0, 1, 1]))
    with pytest.raises(DataError, match="needs finite scores; 1 are not"):
        auc(np.array([np.nan, 1.0]), np.array([0, 1]))
    with pytest.raises(DataError, match="scores have 2 columns and the targets 3"):
        auc(np.ones((4, 2)), np.ones((4, 3), dtype=int))
    with pytest.raises(DataError, match="2 class names for 3 classes"):
        auc(np.ones((4, 3)), np.array([0, 1, 2, 1]), class_names=["a", "b"])
    with pytest.raises(DataError, match="Pairs of classes need one class per image"):
        auc(np.ones((4, 2)), np.array([[0, 1]] * 2 + [[1, 0]] * 2), average="pairwise")
    with pytest.raises(DataError, match="groups has 3 rows and there are 4 images"):
        auc(np.ones(4), np.array([0, 1, 0, 1]), np.arange(3))
