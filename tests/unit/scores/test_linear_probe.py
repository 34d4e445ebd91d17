from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crossgraft import seeding
from crossgraft.errors import NotApplicable, UsageError
from crossgraft.scores import linear_probe

from .conftest import make_problem

probe_module = sys.modules["crossgraft.scores.linear_probe"]


@pytest.mark.parametrize("grouped", [False, True])
def test_equals_scikit_learns_pipeline_on_the_same_folds(problem, grouped):
    features, labels = problem
    groups = np.arange(len(labels)) // 6 if grouped else None
    kind = StratifiedGroupKFold if grouped else StratifiedKFold
    folds = kind(5, shuffle=True, random_state=seeding.derive_seed(0, "linear probe folds"))
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1, max_iter=1000))
    accuracies = cross_val_score(model, features, labels, groups=groups, cv=folds)
    value = linear_probe(features=features, labels=labels, groups=groups)
    assert value == pytest.approx(accuracies.mean())
    assert value.parts["folds"] == 5 and not value.warnings


@pytest.mark.parametrize("seed", range(3))
def test_more_features_than_images_decide_each_image_alike(seed):
    features, labels = make_problem(40, 70, separation=0, seed=seed)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1, max_iter=1000)).fit(features[:30], labels[:30])
    predicted, converged = probe_module._fit_predict(features[:30], labels[:30], features[30:], 1.0)
    assert converged
    np.testing.assert_array_equal(predicted, model.predict(features[30:]))


def test_groups_never_cross_folds(monkeypatch):
    features, labels = make_problem(60, 4, 2)
    groups = np.arange(60) // 4
    seen = []
    splits = probe_module._splits
    monkeypatch.setattr(probe_module, "_splits", lambda *arguments: seen.extend(splits(*arguments)) or splits(*arguments))
    linear_probe(features=features, labels=labels, groups=groups)
    assert len(seen) == 5
    assert all(not set(groups[train]) & set(groups[test]) for train, test in seen)
    assert sorted(np.concatenate([test for _, test in seen])) == list(range(60))


def test_a_rare_class_is_missing_in_some_folds_and_does_not_lower_their_number():
    features, _ = make_problem(40, 4, 2)
    value = linear_probe(features=features, labels=[0] * 37 + [1] * 3)
    assert value.parts["folds"] == 5
    note = "The rarest class has 3 independent images or groups, so it is missing in some of 5 folds."
    assert value.warnings == (note,)


def test_few_images_of_every_class_mean_fewer_folds():
    features, _ = make_problem(9, 4, 3)
    value = linear_probe(features=features, labels=np.arange(9) % 3)
    assert value.parts["folds"] == 3
    assert value.warnings[0] == "3 folds instead of 5: there are not enough independent images or groups."


def test_few_groups_mean_fewer_folds():
    features, labels = make_problem(40, 4, 2)
    assert linear_probe(features=features, labels=labels, groups=np.arange(40) // 20).parts["folds"] == 2


def test_a_class_with_one_image_is_never_recognised():
    features, _ = make_problem(20, 4, 2, separation=0)
    features[-1] += 50
    value = linear_probe(features=features, labels=[0] * 19 + [1])
    assert value == 0.95 and "never recognised" in value.warnings[1]


def test_two_images():
    assert linear_probe(features=np.eye(2), labels=[0, 1]) == 0.0


def test_a_fit_that_does_not_settle_is_said(monkeypatch):
    monkeypatch.setattr(probe_module, "_MAX_ITERATIONS", 2)
    value = linear_probe(*make_problem())
    assert value.warnings == ("Logistic regression did not converge in 2 steps in 5 of 5 folds.",)


def test_constant_features_give_the_largest_class():
    assert linear_probe(features=np.full((30, 3), 0.1), labels=[0] * 20 + [1] * 10) == pytest.approx(2 / 3)


@pytest.mark.parametrize("options", [{"num_folds": 1}, {"inverse_penalty": 0.0}])
def test_settings_out_of_range(options):
    with pytest.raises(UsageError, match="`num_folds` must be ≥ 2"):
        linear_probe(*make_problem(), **options)


def test_a_single_group_cannot_be_split():
    with pytest.raises(NotApplicable, match="at least two groups"):
        linear_probe(features=np.eye(4), labels=[0, 1, 0, 1], groups=["p"] * 4)
