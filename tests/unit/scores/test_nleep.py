from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from crossgraft.errors import UsageError
from crossgraft.scores import ScoreInputs, nleep

from .conftest import make_problem

nleep_module = sys.modules["crossgraft.scores.nleep"]  # the package exports the score under the name of its module


def field_nleep(features, labels, seed):
    """The score with scikit-learn's own parts, one component and class at a time."""
    reduced = PCA(n_components=0.8, svd_solver="full").fit_transform(features)
    num_classes = labels.max() + 1
    posterior = GaussianMixture(5 * num_classes, random_state=seed).fit(reduced).predict_proba(reduced)
    conditional = np.array([posterior[labels == c].sum(axis=0) for c in range(num_classes)]) / posterior.sum(axis=0)
    return np.mean([posterior[i] @ conditional[labels[i]] for i in range(len(labels))])


def test_lies_among_the_values_of_scikit_learns_mixture():
    features, labels = make_problem(300, 10)
    theirs = [field_nleep(features, labels, seed) for seed in range(5)]
    ours = [nleep(features=features, labels=labels, seed=seed) for seed in range(5)]
    assert np.mean(ours) == pytest.approx(np.mean(theirs), abs=0.02)
    assert len(set(ours)) > 1  # the seed reaches the fit


@pytest.mark.parametrize("covariance", ["full", "diag"])
def test_says_which_covariance(covariance):
    features, labels = make_problem()
    value = nleep(features=features, labels=labels, covariance=covariance)
    assert value.parts["full_covariance"] == (covariance == "full")
    assert value.parts["components"] == 15


def test_logarithm_of_the_paper():
    features, labels = make_problem()
    probability, logarithm = (nleep(features=features, labels=labels, log=log) for log in (False, True))
    assert 0 < probability < 1
    assert logarithm < 0 and np.exp(logarithm) <= probability  # Jensen


def test_few_rows_limit_the_components():
    features, labels = make_problem(6, 20, 2)
    assert nleep(features=features, labels=labels).parts["components"] == 6


def test_constant_features_give_the_chance_value():
    value = nleep(features=np.full((10, 4), 0.1), labels=[0] * 8 + [1] * 2)
    assert value == pytest.approx(0.8**2 + 0.2**2)
    assert "constant" in value.warnings[0]


def test_duplicate_rows_leave_components_empty_without_a_warning():
    features = np.repeat(np.eye(3), 8, axis=0)
    value = nleep(features=features, labels=np.repeat([0, 1, 2], 8))
    assert value == pytest.approx(1.0) and value.warnings == ()


def test_label_permutations_do_not_fit_the_mixture_again(monkeypatch):
    features, labels = make_problem()
    inputs = ScoreInputs(features=features, labels=labels)
    nleep.evaluate(inputs)
    shuffled = np.random.default_rng(0).permutation(labels)
    expected = nleep(features=features, labels=shuffled)
    monkeypatch.setattr(nleep_module, "fit_mixture", None)  # calling it would fail
    assert nleep.evaluate(inputs.with_labels(shuffled)) == expected


def test_rows_left_out_start_from_the_full_fit(monkeypatch):
    features, labels = make_problem(200, 10)
    inputs = ScoreInputs(features=features, labels=labels)
    full = nleep.evaluate(inputs)
    monkeypatch.setattr(nleep_module, "_clusters", None)
    smaller = nleep.evaluate(inputs.without(np.arange(10)))
    assert smaller == pytest.approx(full, abs=0.05) and smaller != full


def test_mixture_that_does_not_settle_is_said(monkeypatch):
    monkeypatch.setattr(sys.modules["crossgraft.scores.nleep"], "_MAX_ITERATIONS", 1)
    features, labels = make_problem(200, 4)
    assert "did not converge in 1 steps" in nleep(features=features, labels=labels).warnings[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"ratio": 0}, "`ratio`"), ({"covariance": "tied"}, "Use full or diag"), ({"variance_kept": 1.0}, "`variance_kept`")],
)
def test_settings_out_of_range(options, message):
    inputs = ScoreInputs(features=np.eye(4), labels=[0, 1, 0, 1])
    with pytest.raises(UsageError, match=message):
        nleep.evaluate(inputs, **options)
