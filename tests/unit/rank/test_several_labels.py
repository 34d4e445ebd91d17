"""With several labels an image: every label is scored as if it were alone, and the mean is ranked by."""

import math
from dataclasses import replace

import numpy as np
import pytest

from crossgraft.data import dataset_from_arrays
from crossgraft.errors import DataError, NotApplicable
from crossgraft.rank.advice import check_targets
from crossgraft.rank.assemble import build_cells
from crossgraft.rank.evaluate import ModelEvaluation, evaluate_scores, plan_resampling
from crossgraft.scores import (
    ScoreInputs,
    ScoreValue,
    knn_probe,
    leep,
    logme,
    regularized_h_score,
    scale_over_zoo,
    score,
    zoo_score,
)
from crossgraft.statistics import jackknife_interval
from support.model_records import model_record

NAMES = ("oedema", "effusion", "nodule", "rare")


class Silent:
    def advance(self, amount=1):
        pass

    def note(self, text):
        pass


@pytest.fixture
def problem():
    """60 images, three labels that features show more or less, and one that three images have."""
    rng = np.random.default_rng(0)
    targets = (rng.random((60, 4)) < [0.5, 0.4, 0.3, 0.0]).astype(np.int64)
    targets[:3, 3] = 1
    features = rng.normal(size=(60, 6)) + targets @ rng.normal(size=(4, 6))
    return features, targets


def evaluate(features, targets, scores, name="a", role="candidate", **inputs):
    resampling = plan_resampling(targets, inputs.get("groups"), seed=0, label_names=NAMES)
    bundle = ScoreInputs(features=features, **inputs)
    evaluations = evaluate_scores(scores, bundle, resampling, stage=Silent())
    return ModelEvaluation(key=name, model=model_record(name, role=role), evaluations=evaluations)


@pytest.mark.parametrize("one_score", [logme, regularized_h_score, knn_probe])
def test_value_interval_and_shuffled_values_are_means_of_a_literal_loop_over_the_labels(problem, one_score):
    features, targets = problem
    (cell,) = build_cells(one_score, [evaluate(features, targets, [one_score])])
    plan = plan_resampling(targets, None, seed=0, label_names=NAMES)

    def mean(features, labels):
        return np.mean([one_score(features=features, labels=labels[:, label]) for label in range(3)])

    assert cell.value == pytest.approx(mean(features, targets), rel=1e-9)
    assert list(cell.per_label) == ["oedema", "effusion", "nodule"]
    assert cell.per_label["nodule"] == pytest.approx(one_score(features=features, labels=targets[:, 2]), rel=1e-9)
    literal = [mean(np.delete(features, block, axis=0), np.delete(targets, block, axis=0)) for block in plan.blocks]
    np.testing.assert_allclose(cell.jackknife_values, literal, rtol=1e-9)
    assert cell.low == pytest.approx(jackknife_interval(cell.value, literal).low, rel=1e-9)
    np.testing.assert_allclose(cell.shuffled_values, [mean(features, s) for s in plan.shuffled_labels], rtol=1e-9)
    assert cell.seconds > 0


def test_whole_label_sets_move_together_when_labels_are_shuffled(problem):
    _, targets = problem
    before = sorted(map(tuple, targets[:, :3].tolist()))
    for shuffled in plan_resampling(targets, None, seed=0, label_names=NAMES).shuffled_labels:
        assert sorted(map(tuple, shuffled.tolist())) == before
        assert shuffled.tolist() != targets[:, :3].tolist()


def test_blocks_and_shuffled_labels_respect_groups(problem):
    _, targets = problem
    groups = np.arange(60) // 2
    targets = targets[groups * 2]
    plan = plan_resampling(targets, groups, seed=0, label_names=NAMES)
    for block in plan.blocks:
        assert not set(groups[block]) & set(np.delete(groups, block))
    for shuffled in plan.shuffled_labels:
        assert (shuffled[::2] == shuffled[1::2]).all()


def test_labels_that_can_not_be_scored_are_left_out_with_a_reason(problem):
    _, targets = problem
    targets = targets.copy()
    targets[:, 1] = 1
    targets[:4, 1] = 0
    groups = np.r_[np.arange(45), np.full(15, 99)]
    targets[:, 2] = groups == 99
    plan = plan_resampling(targets, groups, seed=0, label_names=NAMES)
    assert plan.label_names == ("oedema",)
    assert plan.labels_left_out == {
        "effusion": "4 images without it, where at least 10 are needed.",
        "nodule": "all 15 images with it are of groups that one jackknife block leaves out together.",
        "rare": "3 images with it, where at least 10 are needed.",
    }


def test_no_label_that_can_be_scored():
    with pytest.raises(DataError, match="None of the 2 labels can be scored; the first is label 0: 1 image with it"):
        plan_resampling(np.eye(30, 2, dtype=np.int64), None, seed=0)


def test_a_model_without_a_head_does_not_take_labels_from_the_others(problem):
    features, targets = problem
    logits = np.random.default_rng(1).normal(size=(60, 5))
    zoo = [evaluate(features, targets, [leep], "headless"), evaluate(features, targets, [leep], "headed", source_logits=logits)]
    headless, headed = build_cells(leep, zoo)
    assert headless.value is None
    assert "no classification head" in headless.reason
    assert headed.value == pytest.approx(np.mean([leep(source_logits=logits, labels=t) for t in targets.T[:3]]))
    assert headed.warnings == []


@score(title="Partly", reference="made up")
def partly(features, labels):
    """Not defined for labels of a third of the images, infinite for other features."""
    if labels.mean() < 0.35:
        raise NotApplicable("Too few.")
    return math.inf if features.mean() > 5 and labels.mean() > 0.45 else 1.0 + labels.mean()


def test_all_models_are_compared_by_the_same_labels(problem):
    features, targets = problem
    means = targets.mean(axis=0)
    assert means[2] < 0.35 < means[1] < 0.45 < means[0]
    zoo = [
        evaluate(features, targets, [partly], "plain"),
        evaluate(features + 50, targets, [partly], "shifted"),
        evaluate(features + 90, targets, [partly], "control", "random weights"),
    ]
    plain, shifted, control = build_cells(partly, zoo)
    assert plain.value == shifted.value == control.value == 1 + means[1]
    assert list(plain.per_label) == ["effusion"]
    note = "Mean of 1 of 3 labels. Left out: oedema: no finite value for shifted. nodule: Too few."
    assert plain.warnings == shifted.warnings == [note]


def test_a_control_without_a_finite_value_does_not_move_the_candidates(problem):
    features, targets = problem
    plain, control = build_cells(
        partly, [evaluate(features, targets, [partly]), evaluate(features + 90, targets, [partly], "c", "random weights")]
    )
    assert list(plain.per_label) == ["oedema", "effusion"]
    assert control.value is None
    assert control.reason


@score(title="Never", reference="made up")
def never(features, labels):
    """Has no value for any label."""
    raise NotApplicable("Never defined.")


def test_a_score_that_is_defined_for_no_label_has_its_reason(problem):
    (cell,) = build_cells(never, [evaluate(*problem, [never])])
    assert (cell.value, cell.reason) == (None, "Never defined.")


def combine_scaled(parts):
    return scale_over_zoo([part["spread"] for part in parts])


@zoo_score(title="Scaled", reference="made up", combine=combine_scaled)
def scaled_spread(features, labels):
    return {"spread": float(np.var(features[labels == 1]))}


def test_zoo_level_scores_are_combined_for_each_label(problem):
    features, targets = problem
    rng = np.random.default_rng(2)
    members = {name: features * rng.uniform(0.5, 2, size=(60, 1)) for name in ("a", "b", "c")}
    cells = build_cells(scaled_spread, [evaluate(values, targets, [scaled_spread], n) for n, values in members.items()])
    spreads = np.array([[np.var(x[targets[:, label] == 1]) for label in range(3)] for x in members.values()])
    literal = ((spreads - spreads.min(axis=0)) / np.ptp(spreads, axis=0)).mean(axis=1)
    assert [cell.value for cell in cells] == pytest.approx(literal.tolist())
    assert len(cells[0].jackknife_values) == 20


def test_warnings_name_their_labels_once(problem):
    @score(title="T", reference="r")
    def talkative(labels):
        often = ["Often."] if labels.mean() > 0.45 else []
        return ScoreValue(1.0, parts={"share": labels.mean()}, warnings=["Always.", *often])

    (cell,) = build_cells(talkative, [evaluate(*problem, [talkative])])
    assert cell.warnings == ["Every label: Always.", "Label oedema: Often."]
    assert cell.parts["effusion: share"] == pytest.approx(problem[1][:, 1].mean())


def test_the_checks_list_labels_left_out_and_say_that_order_is_not_used():
    images = np.zeros((6, 4, 4), dtype=np.uint8)
    several = dataset_from_arrays(images, np.tile([[1, 0], [0, 1]], (3, 1)), class_names=["a", "b"])
    (check,) = check_targets(several, {"b": "3 images with it, where at least 10 are needed."})
    assert check.severity == "notice"
    assert check.text.endswith("over 1 of 2 labels. Not scored: b: 3 images with it, where at least 10 are needed.")
    assert check_targets(several, {})[0].severity == "passed"
    plain = dataset_from_arrays(images, [0, 1] * 3)
    assert check_targets(plain, {}) == []
    (order,) = check_targets(replace(plain, ordinal=True), {})
    assert "do not use it" in order.text
