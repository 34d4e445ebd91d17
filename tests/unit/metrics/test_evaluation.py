import jaxtyping
import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from crossgraft.errors import DataError
from crossgraft.metrics import METRICS, MetricRow, accuracy, auc, balanced_accuracy, evaluate_predictions

NAMES = ["a", "b", "c"]
OVERALL = [
    "accuracy",
    "balanced_accuracy",
    "auc",
    "average_precision",
    "f1",
    "calibration_error",
    "brier_score",
    "negative_log_likelihood",
]


def multi_class(num_samples=90, num_classes=3):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, num_classes, num_samples)
    logits = rng.normal(size=(num_samples, num_classes)) + 1.5 * np.eye(num_classes)[truth]
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), truth


def several_labels(num_samples=80):
    rng = np.random.default_rng(1)
    marks = (rng.random((num_samples, 3)) < 0.4).astype(int)
    return np.clip(0.3 * marks + 0.7 * rng.random((num_samples, 3)), 0, 1), marks


def find(rows, metric, *, class_name=None, subgroup=None):
    (row,) = [r for r in rows if (r.metric, r.class_name, r.subgroup) == (metric, class_name, subgroup)]
    return row


def test_several_classes_have_all_metrics_together_and_each():
    p, truth = multi_class()
    groups = np.arange(90) // 3
    rows = evaluate_predictions(p, truth, task="multi-class", class_names=NAMES, groups=groups)
    assert [row.metric for row in rows if row.class_name is None] == OVERALL
    each = ["auc", "average_precision", "f1", "sensitivity", "specificity"]
    assert [(row.class_name, row.metric) for row in rows if row.class_name] == [(n, m) for n in NAMES for m in each]
    assert find(rows, "accuracy")[1:6] == pytest.approx(accuracy(p.argmax(axis=1) == truth, groups))
    assert find(rows, "balanced_accuracy")[1:6] == balanced_accuracy(p.argmax(axis=1), truth, groups)[:5]
    assert find(rows, "auc").value == pytest.approx(roc_auc_score(truth, p, multi_class="ovr"))
    assert find(rows, "f1", class_name="b").value == pytest.approx(f1_score(truth, p.argmax(axis=1), average=None)[1])
    assert find(rows, "auc", class_name="c")[1:6] == auc(p[:, 2], (truth == 2).astype(int), groups)[:5]
    assert all(row.reason is None for row in rows)
    known = [row for row in rows if row.metric != "calibration_error"]
    assert all(row.low <= row.value <= row.high and row.low < row.high for row in known)


def test_two_classes_are_judged_by_the_last_and_at_the_threshold():
    p, truth = multi_class(num_classes=2)
    rows = evaluate_predictions(p, truth, task="binary", class_names=["no", "yes"], thresholds=0.3)
    decided = (p[:, 1] >= 0.3).astype(int)
    assert find(rows, "accuracy").value == np.mean(decided == truth)
    assert find(rows, "auc").value == pytest.approx(roc_auc_score(truth, p[:, 1]))
    assert find(rows, "average_precision").value == pytest.approx(average_precision_score(truth, p[:, 1]))
    assert find(rows, "f1").value == pytest.approx(f1_score(truth, decided))
    assert find(rows, "sensitivity", class_name="yes").value == decided[truth == 1].mean()
    assert find(rows, "specificity", class_name="yes").num_images == (truth == 0).sum()
    at_half = evaluate_predictions(p, truth, task="binary", class_names=["no", "yes"])
    assert find(at_half, "accuracy").value == np.mean(p.argmax(axis=1) == truth)


def test_labels_have_their_own_thresholds():
    p, marks = several_labels()
    rows = evaluate_predictions(p, marks, task="multi-label", class_names=NAMES, thresholds=[0.2, 0.5, 0.8])
    decided = (p >= [0.2, 0.5, 0.8]).astype(int)
    assert find(rows, "accuracy").value == pytest.approx((decided == marks).mean())
    assert find(rows, "f1").value == pytest.approx(f1_score(marks, decided, average="macro"))
    assert find(rows, "average_precision").value == pytest.approx(average_precision_score(marks, p))
    assert find(rows, "sensitivity", class_name="c").value == decided[marks[:, 2] == 1, 2].mean()


def test_a_label_that_nobody_has_is_named_and_the_rest_is_measured():
    p, marks = several_labels()
    marks[:, 1] = 0
    rows = evaluate_predictions(p, marks, task="multi-label", class_names=NAMES)
    assert "Without b" in find(rows, "auc").note and find(rows, "auc").value is not None
    alone = find(rows, "auc", class_name="b")
    assert alone.value is None and "AUC needs images with and without a class" in alone.reason
    assert alone.num_images == 80


def test_subgroups_are_the_same_metrics_of_some_images():
    p, truth = multi_class()
    sex, groups = np.array(["f", "m", "m"] * 30), np.arange(90) // 2
    rows = evaluate_predictions(p, truth, task="multi-class", class_names=NAMES, groups=groups, attributes={"sex": sex})
    for value in ("f", "m"):
        part = evaluate_predictions(
            p[sex == value], truth[sex == value], task="multi-class", class_names=NAMES, groups=groups[sex == value]
        )
        for metric in OVERALL:
            assert find(rows, metric, subgroup=f"sex={value}")[1:6] == find(part, metric)[1:6]


def test_the_gap_is_of_the_most_different_subgroups_and_all_pairs_hold_at_once():
    p, truth = multi_class()
    right = p.argmax(axis=1) == truth
    site = np.where(np.arange(90) < 30, "x", np.where(right, "y", "z"))
    site[-40:] = "z"
    rows = evaluate_predictions(p, truth, task="multi-class", class_names=NAMES, attributes={"site": site})
    values = {v: accuracy(right[site == v], confidence=1 - 0.05 / 3) for v in "xyz"}
    name, other = max(values, key=lambda v: values[v].value), min(values, key=lambda v: values[v].value)
    first, second = values[name], values[other]
    (gap,) = [row for row in rows if row.metric == "accuracy_gap"]
    assert gap.attribute_value == f"{name} − {other}"
    assert gap.value == first.value - second.value > 0
    below = np.hypot(first.value - first.low, second.high - second.value)
    highest = max(
        one.value - two.value + np.hypot(one.high - one.value, two.value - two.low)
        for one in values.values()
        for two in values.values()
        if one.value > two.value
    )
    assert (gap.low, gap.high) == pytest.approx((gap.value - below, highest))
    assert gap.facts.title == "Accuracy, largest gap" and not gap.facts.higher_is_better
    assert not [row for row in rows if row.metric == "calibration_error_gap"]


def test_columns_are_refused_cut_or_taken_by_their_values():
    p, truth = multi_class()
    age = np.arange(90) * 0.5
    attributes = {
        "name": np.array([f"n{i % 11}" for i in range(90)]),
        "one": np.array(["same"] * 90),
        "age": age,
        "grade": np.array([2.0, 10.0, np.nan] * 30),
        "rare": np.array(["yes"] * 9 + ["no"] * 81),
    }
    rows = evaluate_predictions(p, truth, task="multi-class", class_names=NAMES, attributes=attributes)
    by_column = {column: [row for row in rows if row.attribute == column] for column in attributes}
    assert ["11 distinct values; at most 10" in row.reason for row in by_column["name"]] == [True]
    assert ["subgroups need two" in row.reason for row in by_column["one"]] == [True]
    thirds = [r.num_images for r in by_column["age"] if r.metric == "accuracy"]
    assert thirds == [30, 30, 30]
    assert find(rows, "accuracy", subgroup="age=≤ 14.5").value == np.mean(p.argmax(axis=1)[:30] == truth[:30])
    assert [r.attribute_value for r in by_column["grade"] if r.metric == "accuracy"] == ["2", "10", "(missing)"]
    refused = find(rows, "accuracy", subgroup="rare=yes")
    assert refused.value is None and refused.reason == "9 images; a subgroup needs 10."
    assert not [row for row in by_column["rare"] if row.metric.endswith("_gap")]


def test_a_mean_over_other_classes_is_refused_in_a_subgroup():
    p, truth = multi_class()
    site = np.where((truth == 2) | (np.arange(90) < 40), "x", "y")
    rows = evaluate_predictions(p, truth, task="multi-class", class_names=NAMES, attributes={"site": site})
    assert find(rows, "accuracy", subgroup="site=y").value is not None
    for metric in ("balanced_accuracy", "auc", "average_precision", "f1"):
        row = find(rows, metric, subgroup="site=y")
        assert row.value is None and "the mean would be over other classes" in row.reason
        assert not [r for r in rows if r.metric == f"{metric}_gap"]


def test_order_of_the_images_does_not_matter():
    p, truth = multi_class()
    groups, age = np.arange(90) // 4, np.random.default_rng(5).normal(size=90)
    order = np.random.default_rng(6).permutation(90)
    one, other = (
        evaluate_predictions(p[o], truth[o], task="multi-class", class_names=NAMES, groups=groups[o], attributes={"age": age[o]})
        for o in (np.arange(90), order)
    )
    assert [row[5:] for row in one] == [row[5:] for row in other]
    ends = [np.array([row[1:4] for row in rows], dtype=np.float64) for rows in (one, other)]
    np.testing.assert_allclose(*ends, atol=1e-9)


def test_every_row_has_facts():
    p, marks = several_labels()
    rows = evaluate_predictions(p, marks, task="multi-label", class_names=NAMES)
    assert {row.metric for row in rows} == set(METRICS)
    for row in rows:
        assert row.facts.explanation.endswith(".") and row.facts.title
    assert MetricRow("brier_score", 0.1, None, None, 1, None).facts.higher_is_better is False


def test_bad_input_is_named(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    p, truth = multi_class()
    for change, message in [
        ({"probabilities": p * 3}, r"must be in \[0, 1\]; pass them after softmax"),
        ({"probabilities": np.full_like(p, np.nan)}, r"must be in \[0, 1\]"),
        ({"probabilities": p / 2}, "must sum to 1"),
        ({"class_names": ["a", "b"]}, r"are \(n, 2\) with n ≥ 1"),
        ({"targets": truth + 1}, "whole numbers from 0 to 2"),
        ({"targets": truth[:5]}, r"got \(90, 3\) and \(5,\)"),
        ({"task": "binary"}, "binary means two classes; there are 3"),
        ({"groups": np.arange(3)}, "groups has 3 rows"),
        ({"attributes": {"age": np.arange(4)}}, "age has 4 values"),
    ]:
        arguments = {"probabilities": p, "targets": truth, "task": "multi-class", "class_names": NAMES} | change
        with pytest.raises(DataError, match=message):
            evaluate_predictions(**arguments)


def test_each_row_may_have_a_threshold_of_its_own():
    p = np.array([0.3, 0.3, 0.7, 0.7] * 10)
    targets, limits = np.array([1, 0, 0, 1] * 10), np.array([[0.2], [0.5], [0.8], [0.5]] * 10)
    sites = {"site": np.array(["a", "a", "b", "b"] * 10)}
    rows = evaluate_predictions(
        np.column_stack([1 - p, p]), targets, task="binary", class_names=["no", "yes"], attributes=sites, thresholds=limits
    )
    found = {(row.metric, row.attribute_value): row.value for row in rows}
    assert [found["accuracy", site] for site in (None, "a", "b")] == [1.0, 1.0, 1.0]
