from __future__ import annotations

import numpy as np
import pytest

from crossgraft.scores import FeatureStatistics, ScoreInputs, Statistics, _moments

from .conftest import make_problem


def test_class_statistics(problem):
    features, labels = problem
    statistics = Statistics(FeatureStatistics(features), labels)
    means = np.array([features[labels == c].mean(axis=0) for c in range(3)])
    assert statistics.class_counts.tolist() == np.bincount(labels).tolist()
    np.testing.assert_allclose(statistics.mean_offsets, means - features.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(statistics.class_sums(features), means * statistics.class_counts[:, None])


def test_spectra_reproduce_the_matrices(problem):
    features, _ = problem
    statistics = FeatureStatistics(features)
    singular = np.sort(np.linalg.svd(features, compute_uv=False))
    centred = np.sort(np.linalg.svd(features - features.mean(axis=0), compute_uv=False))
    np.testing.assert_allclose(np.sqrt(statistics.gram_spectrum.values[-5:]), singular[-5:])
    np.testing.assert_allclose(np.sqrt(statistics.scatter_spectrum.values[-5:]), centred[-5:])


def test_principal_scores_equal_scikit_learn(problem):
    from sklearn.decomposition import PCA

    features, _ = problem
    ours = FeatureStatistics(features).principal_scores(0.8)
    theirs = PCA(n_components=0.8, svd_solver="full").fit_transform(features)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-9)


def test_principal_scores_of_rotated_features_are_the_same_up_to_sign():
    features, _ = make_problem()
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((12, 12)))[0]
    before, after = (FeatureStatistics(X).principal_scores(0.8) for X in (features, features @ rotation))
    np.testing.assert_allclose(np.abs(before), np.abs(after), atol=1e-9)


@pytest.mark.parametrize("shape", [(50, 4), (4, 50)])
@pytest.mark.parametrize("value", [0.0, 0.1, -7.3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_features_are_recognised(shape, value, dtype):
    statistics = FeatureStatistics(np.full(shape, value, dtype=dtype))
    assert statistics.is_constant
    assert statistics.principal_scores(0.8).shape == (shape[0], 0)


def test_nearly_constant_features_are_not_constant():
    features = np.full((50, 4), 0.1)
    features[::2, 0] += 1e-9
    assert not FeatureStatistics(features).is_constant


def test_leaving_rows_out_downdates(problem, monkeypatch):
    features, labels = problem
    inputs = ScoreInputs(features=features, labels=labels)
    _ = inputs.feature_statistics.moments
    sizes = []
    for kind in (_moments.PrimalMoments, _moments.DualMoments):
        form = kind.of.__func__
        monkeypatch.setattr(kind, "of", classmethod(lambda cls, X, *at, form=form: sizes.append(len(X)) or form(cls, X, *at)))
    smaller = inputs.without(np.arange(5))
    kept = features[5:]
    np.testing.assert_allclose(smaller.feature_statistics.mean, kept.mean(axis=0))
    spectrum = np.linalg.svd(kept, compute_uv=False) ** 2
    np.testing.assert_allclose(smaller.feature_statistics.gram_spectrum.values[-5:], spectrum[:5][::-1])
    norms = np.square(kept - kept.mean(axis=0)).sum(axis=1)
    np.testing.assert_allclose(smaller.feature_statistics.squared_norms, norms)
    assert sizes == ([5] if len(features) > features.shape[1] else [])  # only the removed rows, or none in the dual


def test_leaving_rows_out_twice(problem):
    features, labels = problem
    twice = ScoreInputs(features=features, labels=labels).without([0, 1]).without([0, 1])
    np.testing.assert_allclose(
        twice.feature_statistics.moments.scatter(), FeatureStatistics(features[4:]).moments.scatter(), atol=1e-10
    )


def test_remember_computes_once_for_each_key():
    statistics = FeatureStatistics(np.eye(3))
    calls = []
    values = [statistics.remember(key, lambda key=key: calls.append(key) or key) for key in ("a", "b", "a")]
    assert values == ["a", "b", "a"] and calls == ["a", "b"]


def test_rows_left_out_are_taken_out_of_the_float64_products_too(problem):
    features, _ = problem
    whole = FeatureStatistics(features.astype(np.float32))
    removed = np.array([3, 8, 21])
    left = whole.without(removed).in_float64
    assert left.origin is not None and left.origin.parent is whole.in_float64
    direct = FeatureStatistics(np.delete(features.astype(np.float32), removed, axis=0).astype(np.float64))
    np.testing.assert_allclose(left.scatter_spectrum.values, direct.scatter_spectrum.values, atol=1e-10)
