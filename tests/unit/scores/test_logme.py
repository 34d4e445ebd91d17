from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.errors import UsageError
from crossgraft.scores import ScoreInputs, _statistics, logme

from .conftest import make_problem
from .test_evidence import literal_evidence
from .test_released_evidence import literal_fixed_point


def test_is_the_mean_evidence_of_the_classes(problem):
    features, labels = problem
    per_class = [literal_evidence(features, (labels == c).astype(float))[0] for c in range(3)]
    value = logme(features=features, labels=labels)
    assert value == pytest.approx(np.mean(per_class), rel=1e-9)
    assert value.parts["lowest_class"] == pytest.approx(min(per_class))
    assert value.parts["highest_class"] == pytest.approx(max(per_class))


@pytest.mark.parametrize(("num_features", "excess"), [(12, 0), (70, 30)])
def test_released_variant_is_what_the_published_code_computes(num_features, excess):
    features, labels = make_problem(40, num_features)
    fixed_points = [literal_fixed_point(features, (labels == c).astype(float)) for c in range(3)]
    expected = np.mean([evidence + excess / 80 * np.log(alpha) for evidence, alpha in fixed_points])
    released = logme(features=features, labels=labels, variant="released")
    assert released == pytest.approx(expected, rel=1e-9)
    assert ["depends on the number of features" in warning for warning in released.warnings] == [True] * (excess > 0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@settings(max_examples=40, deadline=None)
@given(
    exponent=st.floats(-6, 6),
    shape=st.sampled_from([(60, 10), (30, 30), (24, 50)]),
    rank=st.sampled_from([1, 4, 100]),
    decay=st.sampled_from([0.0, 3.0]),
    repeated=st.booleans(),
    seed=st.integers(0, 3),
)
def test_the_scale_of_the_features_changes_nothing(dtype, exponent, shape, rank, decay, repeated, seed):
    """Whatever the rank, with images there twice, and with eigenvalues that span many decades."""
    rng = np.random.default_rng(seed)
    num_samples, num_features = shape
    rank = min(rank, *shape)
    points = rng.standard_normal((num_samples, rank)) / (1 + np.arange(rank)) ** decay
    labels = np.arange(num_samples) % 3
    points[:, 0] += labels
    features = points @ rng.standard_normal((rank, num_features)) + 0.5
    if repeated:
        features[: num_samples // 3] = features[num_samples // 3 : 2 * (num_samples // 3)]
    features = features.astype(dtype)
    scaled = features * dtype(2.0) ** round(exponent * np.log2(10))
    assert logme(features=scaled, labels=labels) == pytest.approx(logme(features=features, labels=labels), rel=1e-9)
    rounded = features * dtype(10**exponent)  # not a power of 2, so every product is rounded anew
    tolerance = 1e-6 if dtype == np.float64 else 1e-3
    assert logme(features=rounded, labels=labels) == pytest.approx(logme(features=features, labels=labels), abs=tolerance)


def test_the_released_variant_depends_on_the_scale():
    features, labels = make_problem()
    small, large = (logme(features=c * features, labels=labels, variant="released") for c in (1, 1000))
    assert small - large > 0.01


def test_both_forms_agree_where_n_is_just_above_and_below_d():
    features, labels = make_problem(40, 41)
    dual = logme(features=features, labels=labels)
    wide = np.column_stack([features[:, :39], np.zeros((40, 1))])
    assert logme(features=wide, labels=labels) == pytest.approx(logme(features=np.pad(wide, ((0, 0), (0, 9))), labels=labels))
    assert np.isfinite(dual)


def test_label_permutations_do_not_repeat_the_eigendecomposition(monkeypatch):
    features, labels = make_problem()
    inputs = ScoreInputs(features=features, labels=labels)
    logme.evaluate(inputs)

    def refuse(self, matrix):
        raise AssertionError("a second eigendecomposition")

    monkeypatch.setattr(_statistics.Spectrum, "__init__", refuse)  # not the class: its name is read for checks of types
    shuffled = np.random.default_rng(0).permutation(labels)
    value = logme.evaluate(inputs.with_labels(shuffled))
    monkeypatch.undo()
    assert value == pytest.approx(logme(features=features, labels=shuffled), rel=1e-12)


def test_unknown_variant():
    with pytest.raises(UsageError, match=r"logme has no variant 'icml'\. Use evidence or released"):
        logme(*make_problem(), variant="icml")


def test_rounding_of_an_empty_direction_explains_nothing():
    """Large features with fewer images than features, a third of the images there twice: n×n products leave noise."""
    rng = np.random.default_rng(0)
    features = 1e7 * rng.standard_normal((75, 7)) @ rng.standard_normal((7, 77))
    features[:25] = features[25:50]
    labels = np.arange(75) % 3
    basis = np.linalg.svd(features, full_matrices=False)
    exact = basis.U[:, :7] * basis.S[:7]  # the same without the empty directions, n > d
    assert logme(features=features, labels=labels) == pytest.approx(logme(features=exact, labels=labels), rel=1e-9)


@pytest.mark.parametrize("num_features", [20, 200])
def test_float32_features_with_one_large_direction_are_multiplied_in_float64(num_features):
    """In float32 the products of that direction leave nothing of the others: the evidence would be off by up to 0.04."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 40)
    points = rng.normal(size=(120, num_features))
    points[:, 0] += labels
    points[:, 1] *= 1e4
    rotation = np.linalg.qr(rng.normal(size=(num_features, num_features)))[0]
    features = (points @ rotation).astype(np.float32)
    assert logme(features=features, labels=labels) == logme(features=features.astype(np.float64), labels=labels)


def highest_evidence(features, labels):
    """The highest evidence on a fine grid of α/β, mean over classes, from the singular values of the features themselves."""
    n, d = features.shape
    u, singular, _ = np.linalg.svd(features.astype(np.float64), full_matrices=False)
    sigma, tau = singular[:, None] ** 2, np.logspace(-14, 6, 4001)
    found = []
    for label in np.unique(labels):
        target = (labels == label).astype(float)
        explained = (u.T @ target)[:, None] ** 2
        outside = max(target @ target - explained.sum(), 0.0) if d < n else 0.0
        unexplained = outside + (explained * tau / (sigma + tau)).sum(axis=0)
        log_evidence = -np.log1p(sigma / tau).sum(axis=0) / 2 - n / 2 * (np.log(2 * np.pi * unexplained / n) + 1)
        found.append(log_evidence.max() / n)
    return np.mean(found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(47, 48), (33, 33), (40, 60), (50, 48)])
def test_rounding_of_an_ill_conditioned_gram_matrix_makes_no_evidence(n, d, dtype):
    """Where directions explain more than the whole target by rounding, the evidence had a pole: 8.75 instead of −0.5."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        k = min(n, d)
        u, v = (np.linalg.qr(rng.normal(size=(size, k)))[0] for size in (n, d))
        features = ((u * np.logspace(1.5, -3, k)) @ v.T).astype(dtype)
        labels = rng.permutation(np.arange(n) % 4)
        assert float(logme(features=features, labels=labels)) == pytest.approx(highest_evidence(features, labels), abs=1e-4)


def test_blocks_are_multiplied_in_float64_at_once_where_all_images_needed_it(monkeypatch):
    features, labels = make_problem(40, 70, offset=0.0)
    features = (features / 10.0 ** np.arange(0, 7, 0.1)).astype(np.float32)
    inputs = ScoreInputs(features=features, labels=labels)
    logme.evaluate(inputs)
    assert "in_float64" in inputs.feature_statistics.__dict__
    block, expected = (
        inputs.without([3, 4]),
        logme(features=np.delete(features, [3, 4], axis=0), labels=np.delete(labels, [3, 4])),
    )
    assert logme.evaluate(block) == pytest.approx(expected, rel=1e-9)
    assert "gram_spectrum" not in block.feature_statistics.__dict__
