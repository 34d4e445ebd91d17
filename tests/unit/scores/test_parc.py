from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from crossgraft.scores import parc

from .conftest import make_problem

module = sys.modules["crossgraft.scores.parc"]


def literal(features, labels):
    """All pairs by scipy's Spearman; the label distances are 0 and 1 exactly."""
    distances = 1 - np.corrcoef(StandardScaler().fit_transform(features))
    pairs = np.triu_indices(len(features), k=1)
    different = (labels[:, None] != labels)[pairs].astype(float)
    return 100 * spearmanr(distances[pairs], different).statistic


@pytest.mark.parametrize("num_classes", [2, 3, 7])
def test_equals_the_definition(problem, num_classes):
    features, _ = problem
    labels = np.arange(len(features)) % num_classes
    value = parc(features=features, labels=labels)
    assert value == pytest.approx(literal(features, labels), rel=1e-9)


def test_principal_components_first(problem):
    features, labels = problem
    points = PCA(6, svd_solver="full").fit_transform(features)  # the largest loading of each is positive
    assert parc(features=features, labels=labels, n_dims=6) == pytest.approx(literal(points, labels), rel=1e-8)


@settings(max_examples=40, deadline=None)
@example(173, 38, 4)
@given(st.integers(0, 10_000), st.integers(6, 40), st.integers(2, 4))
def test_ties_get_midranks(seed, num_samples, num_values):
    """Features with few values make many equal distances."""
    rng = np.random.default_rng(seed)
    features = rng.integers(0, num_values, (num_samples, 3)).astype(float)
    labels = np.arange(num_samples) % 2
    rows = module._unit_rows(features)
    pairs = np.triu_indices(num_samples, k=1)
    rounded = np.round(1 - rows @ rows.T, 12)[pairs]  # distances that differ can be 5e-10 apart
    different = (labels[:, None] != labels)[pairs].astype(float)
    value = parc(features=features, labels=labels)
    if len(np.unique(rounded)) > 1:
        assert value == pytest.approx(100 * spearmanr(rounded, different).statistic, abs=1e-9)


def test_the_grid_gives_what_sorting_gives(monkeypatch):
    features, labels = make_problem(300, 12, 3)
    exact = parc(features=features, labels=labels)
    monkeypatch.setattr(module, "_SORTED_PAIRS", 0)
    counted = parc(features=features, labels=labels)
    assert counted == pytest.approx(exact, rel=1e-5)
    assert counted != exact


def test_more_images_than_can_be_paired_are_sampled(monkeypatch):
    features, labels = make_problem(300, 12, 3)
    monkeypatch.setattr(module, "MOST_IMAGES", 120)
    value = parc(features=features, labels=labels)
    assert value.parts["pairs"] == 120 * 119 / 2
    assert "sample of 120 of 300" in value.warnings[0]
    assert value == parc(features=features, labels=labels)
    assert value != parc(features=features, labels=labels, seed=1)
    assert value == pytest.approx(literal(features, labels), abs=6)


def test_a_row_without_spread_correlates_with_nothing():
    features, labels = make_problem(30, 6, 2)
    features = np.vstack([features, features.mean(axis=0)])  # standardised, this row is zero
    assert np.isfinite(parc(features=features, labels=[*labels, 0]))


def test_a_class_a_picture_has_no_pairs(problem):
    features, _ = problem
    value = parc(features=features[:5], labels=np.arange(5))
    assert np.isnan(value) and "one class" in value.warnings[0]
