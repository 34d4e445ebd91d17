import jaxtyping
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.errors import DataError, UsageError
from crossgraft.metrics import decide
from crossgraft.tasks import BinaryTask, MultiClassTask, MultiLabelTask
from crossgraft.tune.measuring.thresholds import fit_thresholds, parse_threshold_rule, threshold_values


def fitted(probability, truth, rule, **options):
    probability = np.asarray(probability, dtype=float)
    both = np.column_stack([1 - probability, probability])
    (found,) = fit_thresholds(both, np.asarray(truth), task=BinaryTask(), class_names=["no", "yes"], rule=rule, **options)
    return found


def literal(probability, truth, threshold):
    """Sensitivity and specificity, image by image."""
    found = [p >= threshold for p, y in zip(probability, truth, strict=True) if y]
    spared = [p < threshold for p, y in zip(probability, truth, strict=True) if not y]
    return sum(found) / len(found), sum(spared) / len(spared)


cases = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 1)), min_size=4, max_size=30).filter(
    lambda rows: len({y for _, y in rows}) == 2 and len({p for p, _ in rows}) > 1
)


@given(cases)
def test_youden_is_the_best_of_every_cut(rows):
    probability, truth = np.array([p / 8 for p, _ in rows]), np.array([y for _, y in rows])
    found = fitted(probability, truth, "youden")
    best = max(sum(literal(probability, truth, t)) for t in np.unique(probability)[1:])
    if found.threshold is None:
        assert best <= 1 + 1e-12 and "better than chance" in found.reason
        return
    reached = literal(probability, truth, found.threshold)
    assert sum(reached) == pytest.approx(best)
    assert (found.sensitivity, found.specificity) == pytest.approx(reached)
    # Of equally good ones the lowest: no lower cut is as good.
    lower = [t for t in np.unique(probability)[1:] if t < found.threshold and literal(probability, truth, t) != reached]
    assert all(sum(literal(probability, truth, t)) < best - 1e-12 for t in lower)


@given(cases, st.sampled_from([0.5, 0.8, 0.95, 1.0]), st.sampled_from(["sensitivity", "specificity"]))
def test_a_target_is_reached_at_the_least_cost_of_the_other_side(rows, target, kind):
    probability, truth = np.array([p / 8 for p, _ in rows]), np.array([y for _, y in rows])
    found = fitted(probability, truth, f"{kind}:{target}")
    side = 0 if kind == "sensitivity" else 1
    cuts = [literal(probability, truth, t) for t in np.unique(probability)[1:]]
    reaching = [pair for pair in cuts if pair[side] >= target - 1e-9]
    if not reaching:
        assert found.threshold is None and f"A {kind} of {target:g} is reached only where" in found.reason
        return
    reached = literal(probability, truth, found.threshold)
    assert reached[side] >= target - 1e-9
    assert reached[1 - side] == pytest.approx(max(pair[1 - side] for pair in reaching))


def test_thresholds_lie_halfway_between_probabilities():
    assert fitted([0.1, 0.2, 0.6, 0.9], [0, 0, 1, 1], "youden").threshold == pytest.approx(0.4)
    assert fitted([0.1, 0.2, 0.6, 0.9], [0, 0, 1, 1], "specificity:0.5").threshold == pytest.approx(0.15)
    assert fitted([0.1, 0.2, 0.6, 0.9], [0, 0, 1, 1], "sensitivity:0.5").threshold == pytest.approx(0.75)


@pytest.mark.parametrize("low", [0.3, np.nextafter(0.3, 1)])
def test_neighbouring_floats_are_still_told_apart(low):
    # Halfway between two neighbours rounds to the even one: once down, once up.
    pair = [low, np.nextafter(low, 1)]
    found = fitted(pair, [0, 1], "youden")
    assert literal(pair, [0, 1], found.threshold) == (1.0, 1.0)


def test_order_of_the_images_does_not_matter():
    rng = np.random.default_rng(0)
    probability, truth = np.round(rng.random(80), 1), rng.integers(0, 2, 80)
    truth[probability > 0.7] = 1
    order = rng.permutation(80)
    for rule in ("youden", "sensitivity:0.9", "specificity:0.8"):
        assert fitted(probability, truth, rule).threshold == fitted(probability[order], truth[order], rule).threshold


def test_labels_have_thresholds_of_their_own_and_reasons_where_they_have_none():
    rng = np.random.default_rng(1)
    truth = np.column_stack([rng.integers(0, 2, 50), np.zeros(50, dtype=int), rng.integers(0, 2, 50)])
    p = np.column_stack([0.2 * rng.random(50) + 0.5 * truth[:, 0], rng.random(50), np.full(50, 0.25)])
    found = fit_thresholds(p, truth, task=MultiLabelTask(), class_names=["a", "b", "c"], rule="youden")
    assert [one.class_name for one in found] == ["a", "b", "c"]
    assert found[0].sensitivity == found[0].specificity == 1.0
    assert found[0].num_positive == truth[:, 0].sum()
    assert found[1].threshold is None and "0 of 50 have it" in found[1].reason
    assert found[2].threshold is None and "the same probability 0.25" in found[2].reason
    values = threshold_values(found)
    np.testing.assert_array_equal(values[1:], [0.5, 0.5])
    decided = decide(p, task="multi-label", thresholds=values)
    np.testing.assert_array_equal(decided[:, 0], truth[:, 0])


@pytest.mark.parametrize("text", ["jouden", "sensitivity", "sensitivity:0", "specificity:1.5", "sensitivity:much", "youden:1"])
def test_rules_that_cannot_be_read_are_named(text):
    with pytest.raises(UsageError, match="is no rule for thresholds"):
        parse_threshold_rule(text)


def test_rules_are_written_as_they_are_read():
    for text in ("youden", "sensitivity:0.95", "specificity:0.9"):
        assert str(parse_threshold_rule(text)) == text


def test_bad_input_is_named(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(UsageError, match="decided by the largest"):
        fit_thresholds(np.eye(3), np.arange(3), task=MultiClassTask(), class_names=list("abc"))
    with pytest.raises(DataError, match=r"shape \(2, 2\); got \(3, 3\)"):
        fit_thresholds(np.eye(3), np.arange(2), task=BinaryTask(), class_names=list("ab"))
    with pytest.raises(DataError, match=r"probabilities in \[0, 1\]"):
        fit_thresholds(np.full((2, 2), np.nan), np.arange(2), task=BinaryTask(), class_names=list("ab"))
