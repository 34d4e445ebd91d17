"""CCA and its kin, Procrustes, RSA and RBF CKA: literal versions, invariances, bounds, and what has no meaning."""

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.errors import DataError, NotApplicable, UsageError
from crossgraft.similarity import batch_rbf_cka, cca, linear_cka, minibatch_cka, procrustes, pwcca, rbf_cka, rsa, svcca

MEASURES = (cca, svcca, pwcca, procrustes, rsa, rbf_cka)


def features(n=60, d=6, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def pair(n, widths, seed):
    """Two sets that have something in common."""
    x = features(n, widths[0], seed)
    shared = x @ features(widths[0], widths[1], seed + 1)
    return x, shared + 2 * features(n, widths[1], seed + 2)


def whitened(x):
    """Columns of U in x = U S Vᵀ of centred x, and those that count."""
    u, s, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)
    return u[:, s > 1e-9 * s[0]]


def literal_cca(x, y):
    """ρ² are the eigenvalues of Cxx⁻¹ Cxy Cyy⁻¹ Cyx; the variates of x are X Cxx^(−1/2) times the eigenvectors."""
    x, y = x - x.mean(0), y - y.mean(0)
    values, vectors = np.linalg.eigh(x.T @ x)
    root = vectors / np.sqrt(values) @ vectors.T
    between = root @ x.T @ y @ np.linalg.inv(y.T @ y) @ y.T @ x @ root
    squares, directions = np.linalg.eigh(between)
    order = np.argsort(squares)[::-1][: min(x.shape[1], y.shape[1])]
    rho, variates = np.sqrt(np.clip(squares[order], 0, 1)), x @ root @ directions[:, order]
    weights = np.array([sum(abs(h @ column) for column in x.T) for h in variates.T])
    return rho.mean(), (weights * rho).sum() / weights.sum()


SIZES = {"n": st.integers(30, 60), "widths": st.tuples(st.integers(1, 8), st.integers(1, 8)), "seed": st.integers(0, 500)}


@settings(max_examples=25, deadline=None)
@given(**SIZES)
def test_cca_and_pwcca_are_the_equations(n, widths, seed):
    x, y = pair(n, widths, seed)
    mean, weighted = literal_cca(x, y)
    assert cca(x, y) == pytest.approx(mean, rel=1e-6)
    assert pwcca(x, y) == pytest.approx(weighted, rel=1e-6)


@settings(max_examples=25, deadline=None)
@given(**SIZES)
def test_svcca_keeps_the_components_of_the_variance(n, widths, seed):
    x, y = pair(n, widths, seed)
    kept = []
    for side in (x, y):
        u, s, _ = np.linalg.svd(side - side.mean(0), full_matrices=False)
        count = next(k for k in range(1, len(s) + 1) if (s[:k] ** 2).sum() >= 0.9 * (s**2).sum())
        kept.append(u[:, :count])
    expected = np.linalg.svd(kept[0].T @ kept[1], compute_uv=False).mean()
    assert svcca(x, y, variance=0.9) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(**SIZES)
def test_procrustes_is_what_the_best_rotation_leaves(n, widths, seed):
    x, y = pair(n, widths, seed)
    width = max(widths)
    a, b = (np.pad(side - side.mean(0), ((0, 0), (0, width - side.shape[1]))) for side in (x, y))
    one, other = a / np.linalg.norm(a), b / np.linalg.norm(b)
    left, _, right = np.linalg.svd(one.T @ other)
    assert procrustes(x, y) == pytest.approx(np.linalg.norm(one @ (left @ right) - other), rel=1e-6)
    rotated = np.linalg.norm(a @ (left @ right) - b)
    assert procrustes(x, y, kind="size and shape") == pytest.approx(rotated, rel=1e-6)
    assert np.cos(procrustes(x, y, kind="angular")) == pytest.approx(procrustes(x, y).parts["alignment"])
    wide = procrustes(x[:5], y[:5])  # fewer images than features: by triangular factors
    padded = procrustes(np.pad(x[:5], ((0, 0), (0, 20))), y[:5] @ np.eye(widths[1], 30))
    assert wide == pytest.approx(padded, abs=1e-7)


@settings(max_examples=15, deadline=None)
@given(n=st.integers(5, 12), d=st.integers(3, 6), seed=st.integers(0, 500))
def test_rsa_and_rbf_cka_are_the_equations(n, d, seed):
    x, y = pair(n, (d, d + 1), seed)

    def ranks(side, distance):
        far = [distance(side[i], side[j]) for i in range(n) for j in range(i + 1, n)]
        return np.array([sum(a > b for b in far) + (sum(a == b for b in far) - 1) / 2 for a in far])

    for name, distance in (
        ("correlation", lambda a, b: 1 - np.corrcoef(a, b)[0, 1]),
        ("euclidean", lambda a, b: np.linalg.norm(a - b)),
    ):
        expected = np.corrcoef(ranks(x, distance), ranks(y, distance))[0, 1]
        assert rsa(x, y, distance=name) == pytest.approx(expected, abs=1e-9)

    def centred(side):
        squared = np.array([[((a - b) ** 2).sum() for b in side] for a in side])
        middle = np.sort(squared[~np.eye(n, dtype=bool)])[(n * (n - 1) - 1) // 2]
        h = np.eye(n) - 1 / n
        return h @ np.exp(-squared / (2 * 0.5**2 * middle)) @ h

    k, m = centred(x), centred(y)
    expected = np.trace(k @ m) / np.sqrt(np.trace(k @ k) * np.trace(m @ m))
    assert rbf_cka(x, y, bandwidth=0.5) == pytest.approx(expected, rel=1e-9)
    assert rbf_cka(x, y, bandwidth=1e4) == pytest.approx(linear_cka(x, y), rel=1e-6)
    unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y)]
    assert float(batch_rbf_cka(*map(torch.from_numpy, unit))) == pytest.approx(rbf_cka(*unit), rel=1e-9)


@settings(max_examples=15, deadline=None)
@given(**SIZES)
def test_bounds_symmetry_rotation_and_scale(n, widths, seed):
    x, y = pair(n, (widths[0] + 2, widths[1] + 2), seed)
    rotation = np.linalg.qr(features(widths[0] + 2, widths[0] + 2, seed + 9))[0]
    for measure in (*MEASURES, minibatch_cka):
        value = measure(x, y)
        upper = np.sqrt(2) if measure is procrustes else 1.0
        assert (-1.0 if measure in (rsa, minibatch_cka) else 0.0) <= value <= upper
        if measure is not pwcca:
            assert measure(y, x) == pytest.approx(value, abs=1e-8)
        kinds = {"distance": "euclidean"} if measure is rsa else {}  # a correlation over features is not kept by a rotation
        turned = measure(1e-3 * x @ rotation + (0 if measure is rsa else 5), y, **kinds)
        if measure is pwcca:  # its weights Σ_j |⟨h, x_j⟩| depend on the axes; a single column has none
            turned = measure(-1e-3 * x + 5, y)
        assert turned == pytest.approx(measure(x, y, **kinds), abs=1e-7)
        same = measure(x, x)
        assert same == pytest.approx(0 if measure is procrustes else 1, abs=1e-6)
    mixed = x @ (rotation + np.diag(np.arange(1.0, widths[0] + 3)))
    if np.linalg.cond(mixed) < 1e6:
        assert cca(mixed, y) == pytest.approx(cca(x, y), abs=1e-6)


def test_the_order_matters_to_pwcca():
    x, y = pair(60, (6, 5), 0)
    assert abs(pwcca(x * np.arange(1, 7), y) - pwcca(y, x * np.arange(1, 7))) > 1e-3


def test_dependent_and_constant_columns_add_nothing():
    x, y = pair(50, (5, 4), 3)
    wide = np.hstack([x, x[:, :2] + x[:, 2:4], np.full((50, 2), 0.1)])  # by QR instead of Cholesky
    assert cca(wide, y) == pytest.approx(cca(x, y), rel=1e-9) and cca(wide, y).parts["rank_x"] == 5
    assert svcca(wide, y, variance=1) == pytest.approx(cca(x, y), rel=1e-9)
    nearly = np.hstack([x, x[:, :1] + 1e-9 * features(50, 1, 8)])
    direct = np.linalg.svd(whitened(x).T @ whitened(y), compute_uv=False)
    assert cca(nearly, y).parts["rank_x"] == 6 and cca(nearly, y) >= direct.mean() - 1e-6


def test_few_images_are_warned_of():
    x, y = features(9, 5), features(9, 4, seed=1)
    for measure in (cca, pwcca):
        assert measure(x, y).warnings[0].startswith("9 rows for 5 + 4 independent features: canonical correlations tend to 1")
    assert cca(x, y).warnings[0].endswith("Use more than 9 rows, or SVCCA.")
    (of_svcca,) = svcca(x, y, variance=1).warnings
    assert of_svcca.endswith("Use more than 9 rows.")  # not itself instead of itself
    assert cca(features(40, 5), features(40, 4)).warnings == ()
    assert cca(features(6, 20), features(6, 20, seed=1)) == pytest.approx(1)


@pytest.mark.parametrize("measure", [*MEASURES, minibatch_cka])
def test_what_has_no_meaning_is_named(measure):
    x = features(8, 3)
    with pytest.raises(DataError, match="same images"):
        measure(x, features(9, 3))
    with pytest.raises(DataError, match=r"NaN or infinite"):
        measure(x, np.where(x == x[3, 1], np.nan, x))
    with pytest.raises(NotApplicable, match=r"(same features|same value in every feature|nothing to compare)"):
        measure(x, np.ones((8, 3)))
    if measure is not procrustes:
        with pytest.raises(NotApplicable, match="at least 4 images"):
            measure(x[:3], x[:3])


def test_wrong_options_are_named():
    x = features(8, 3)
    for call in (
        lambda: cca(x, x, mean="some"),
        lambda: cca(features(32, 3).reshape(2, 3, 4, 4), features(32, 3).reshape(2, 3, 4, 4), preset="book"),
        lambda: svcca(x, x, variance=99),
        lambda: procrustes(x, x, kind="squared"),
        lambda: rsa(x, x, distance="cosine"),
        lambda: rsa(x, x, most_images=3),
        lambda: rbf_cka(x, x, bandwidth=0),
        lambda: minibatch_cka(x, x, batch_size=3),
    ):
        with pytest.raises(UsageError):
            call()
    with pytest.raises(NotApplicable, match="same value in every feature"):
        rsa(features(8, 1), x)  # one feature has no correlation between images
    assert rsa(x, x, most_images=5, seed=3).seed == 3 and rsa(x, x).seed is None


def test_huge_and_tiny_numbers_do_not_overflow():
    x, y = pair(40, (5, 4), 0)
    for measure in (cca, svcca, pwcca, procrustes, rbf_cka):
        assert measure(x * 1e200, y * 1e-200) == pytest.approx(measure(x, y), rel=1e-6)


def test_the_preset_draws_what_is_there():
    maps = features(30, 70 * 4).reshape(30, 70, 2, 2)
    found = cca(maps, maps + 3 * features(30, 280, seed=1).reshape(maps.shape), preset="thesis")
    assert found.parts["positions"] == 120 and found.parts["channels"] == 64 and found.seed == 0
    assert found.warnings[0].startswith("120 of 20000 positions") and len(found.warnings) == 2
    assert cca(maps, maps + 3, preset="thesis", seed=1) == pytest.approx(1)
    assert found != cca(maps, maps + 3 * features(30, 280, seed=1).reshape(maps.shape), preset="thesis", seed=1)
    stem = features(3, 8 * 100 * 100).reshape(3, 8, 100, 100)
    assert cca(stem, stem, preset="thesis").parts["positions"] == 20_000  # of two images of three
    assert cca(stem, stem, preset="released").parts["positions"] == 10_000
    with pytest.raises(NotApplicable, match="position by position"):
        cca(maps, maps[:, :, :1], preset="thesis")
    with pytest.raises(DataError, match="feature maps"):
        cca(maps, maps[0], preset="thesis")


def test_a_value_is_a_float_that_can_be_copied():
    value = cca(*pair(9, (5, 4), 0))
    for again in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert again == value and again.warnings == value.warnings and again.n == 9
