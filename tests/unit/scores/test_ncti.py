from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from crossgraft.scores import ncti

from .conftest import make_problem


def literal(features, labels, num_dims=64):
    """The same with scikit-learn's PCA and discriminants."""
    num_dims = min(num_dims, len(features) - 1, features.shape[1])
    pca = PCA(num_dims, svd_solver="full")
    points = pca.fit_transform(features)
    shrinkage = max(np.exp(-pca.explained_variance_[:32].sum()), 1e-10)
    if shrinkage == 1e-10:
        model = LinearDiscriminantAnalysis(solver="svd")
    else:
        model = LinearDiscriminantAnalysis(solver="eigen", shrinkage=shrinkage)
    projection = model.fit(points, labels).transform(points)
    posterior = model.predict_proba(points)
    nuclear = [np.linalg.norm(posterior[labels == label], "nuc") for label in np.unique(labels)]
    return {
        "seli": np.linalg.norm(projection - projection.mean(axis=0), "nuc"),
        "ncc": posterior[np.arange(len(labels)), labels].mean(),
        "vc": np.log(np.sum(nuclear)),
    }


@pytest.mark.parametrize("scale", [1.0, 10.0], ids=["shrunk", "not shrunk"])
@pytest.mark.parametrize("shape", [(90, 12, 3), (200, 80, 4), (40, 70, 2), (40, 70, 5)])
def test_equals_scikit_learns_discriminants(shape, scale):
    features, labels = make_problem(*shape)
    expected = literal(scale * features, labels)
    assert ncti.parts(features=scale * features, labels=labels) == pytest.approx(expected, rel=1e-6)


def test_dead_directions_without_shrinkage():
    features, labels = make_problem(90, 12, 3)
    padded = np.column_stack([10 * features, np.zeros((90, 4))])
    assert ncti.parts(features=padded, labels=labels) == pytest.approx(literal(padded, labels), rel=1e-6)


def test_the_last_part_is_subtracted_and_the_thesis_adds_it():
    parts = [{"seli": 0.0, "ncc": 0.5, "vc": 2.0}, {"seli": 10.0, "ncc": 1.0, "vc": 3.0}]
    assert ncti.combine(parts) == pytest.approx([0.0, 1.0])
    from crossgraft.scores.ncti import combine

    assert combine(parts, sign=1) == pytest.approx([0.0, 3.0])


def test_classes_of_one_point_have_no_value():
    features = np.repeat(np.eye(3), 4, axis=0)
    value = ncti(features=features, labels=np.repeat([0, 1, 2], 4))
    assert np.isnan(value) and "single point" in value.warnings[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(90, 40), (50, 60)])
def test_empty_principal_directions_do_not_count(shape, dtype):
    """Standardised, the rounding along them would be features like all others."""
    features, labels = make_problem(*shape)
    features = (10 * features).astype(dtype)
    features[:, ::3] = 0.1
    alive = np.delete(features, np.s_[::3], axis=1)
    assert ncti.parts(features=features, labels=labels) == pytest.approx(
        ncti.parts(features=alive, labels=labels), rel=1e-4 if dtype == np.float32 else 1e-8
    )
