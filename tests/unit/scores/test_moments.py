from __future__ import annotations

import numpy as np
import pytest

from crossgraft.scores import _moments
from crossgraft.scores._moments import DualMoments, PrimalMoments, near_mean

from .conftest import make_problem


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Several blocks, a short last one, and a change of precision in between."""
    monkeypatch.setattr(_moments, "BLOCK_ROWS", 16)
    monkeypatch.setattr(_moments, "BLOCKS_A_SUM", 2)
    monkeypatch.setattr(_moments, "BLOCK_COLUMNS", 16)


def literal(features):
    centred = features - features.mean(axis=0)
    return centred.T @ centred, features.T @ features, centred @ centred.T, features @ features.T


def test_primal_equals_the_definition():
    features, _ = make_problem(75, 9)
    scatter, gram, *_ = literal(features)
    moments = PrimalMoments.of(features, near_mean(features))
    np.testing.assert_allclose(moments.scatter(), scatter, atol=1e-12)
    np.testing.assert_allclose(moments.gram(), gram, atol=1e-11)
    np.testing.assert_allclose(moments.mean(), features.mean(axis=0))
    np.testing.assert_allclose(moments.spread(), np.trace(scatter))
    norms = np.square(features - features.mean(axis=0)).sum(axis=1)
    np.testing.assert_allclose(moments.centred_norms(features), norms)


def test_dual_equals_the_definition():
    features, _ = make_problem(30, 50)
    *_, scatter, gram = literal(features)
    moments = DualMoments.of(features, near_mean(features))
    np.testing.assert_allclose(moments.scatter(), scatter, atol=1e-12)
    np.testing.assert_allclose(moments.gram(), gram, atol=1e-11)
    np.testing.assert_allclose(moments.spread(), np.trace(scatter))


def test_rows_can_be_taken_out():
    features, _ = make_problem(75, 9)
    rows = np.array([0, 3, 50, 74])
    rest = np.delete(features, rows, axis=0)
    moments = PrimalMoments.of(features, near_mean(features)).without(features, rows)
    scatter, gram, *_ = literal(rest)
    assert moments.num_samples == 71
    np.testing.assert_allclose(moments.scatter(), scatter, atol=1e-12)
    np.testing.assert_allclose(moments.gram(), gram, atol=1e-11)
    np.testing.assert_allclose(moments.centred_norms(rest), np.square(rest - rest.mean(axis=0)).sum(axis=1))


def test_rows_can_be_taken_out_of_the_dual():
    features, _ = make_problem(30, 50)
    kept = np.arange(5, 30)
    moments = DualMoments.of(features, near_mean(features)).without(kept)
    *_, scatter, gram = literal(features[kept])
    np.testing.assert_allclose(moments.scatter(), scatter, atol=1e-12)
    np.testing.assert_allclose(moments.gram(), gram, atol=1e-11)


@pytest.mark.parametrize(("kind", "shape"), [(PrimalMoments, (200, 20)), (DualMoments, (20, 200))])
def test_float32_keeps_the_spread_of_features_far_from_the_origin(kind, shape):
    features = make_problem(*shape, offset=300.0)[0].astype(np.float32)
    exact = kind.of(features.astype(np.float64), near_mean(features).astype(np.float64)).scatter()
    error = np.abs(kind.of(features, near_mean(features)).scatter() - exact).max() / np.abs(exact).max()
    naive = features.T @ features if kind is PrimalMoments else features @ features.T
    assert error < 1e-6
    # Without the shift the digits are gone, so the bound above is not met by luck.
    mean = features.mean(axis=0, dtype=np.float64)
    lost = naive.astype(np.float64) - len(features) * np.outer(mean, mean) if kind is PrimalMoments else None
    assert lost is None or np.abs(lost - exact).max() / np.abs(exact).max() > 1e-4
