from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.errors import DataError, NotApplicable
from crossgraft.similarity import both_linear_cka, linear_cka


def features(n=40, d=6, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def literal(x, y, *, debiased):
    """The definition with n × n matrices, in the longest floats there are."""
    n = len(x)
    k, m = ((f - f.mean(0)) @ (f - f.mean(0)).T for f in (x.astype(np.longdouble), y.astype(np.longdouble)))
    if debiased:
        k, m = k - np.diag(np.diag(k)), m - np.diag(np.diag(m))

    def hsic(a, b):
        if not debiased:
            return (a * b).sum()
        return (a * b).sum() + a.sum() * b.sum() / ((n - 1) * (n - 2)) - 2 * (a.sum(0) @ b.sum(0)) / (n - 2)

    return float(hsic(k, m) / np.sqrt(hsic(k, k) * hsic(m, m)))


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(5, 40),
    widths=st.tuples(st.integers(1, 45), st.integers(1, 45)),
    seed=st.integers(0, 1000),
    offset=st.sampled_from([0.0, 3.0, -100.0]),
    exponent=st.integers(-60, 60),
)
def test_both_forms_are_the_definition(n, widths, seed, offset, exponent):
    """More and fewer images than features: the Gram form and the feature form."""
    x, y = features(n, widths[0], seed) + offset, features(n, widths[1], seed + 1)
    for debiased in (False, True):
        expected = literal(x, y, debiased=debiased)
        assert linear_cka(x * 10.0**exponent, y, debiased=debiased) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        # constant columns change nothing but the number of features, and with it the form
        wider = np.hstack([x, np.full((n, 50), 0.1)])
        assert linear_cka(wider, y, debiased=debiased) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_unbiased_estimate_is_the_mean_over_different_images():
    """HSIC of Song et al., eq. 4: means over pairs, triples and quadruples of images that are all different."""
    x, y = features(6, 3), features(6, 2, seed=1)

    def hsic(k, m):
        n = len(k)
        pairs = np.mean([k[i, j] * m[i, j] for i, j in permutations(range(n), 2)])
        triples = np.mean([k[i, j] * m[i, q] for i, j, q in permutations(range(n), 3)])
        four = np.mean([k[i, j] * m[q, r] for i, j, q, r in permutations(range(n), 4)])
        return pairs + four - 2 * triples

    k, m = x @ x.T, y @ y.T
    expected = hsic(k, m) / np.sqrt(hsic(k, k) * hsic(m, m))
    assert linear_cka(x, y, debiased=True) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("debiased", [False, True])
def test_rotation_and_scale_change_nothing(debiased):
    x, y = features(), features(d=5, seed=1)
    rotation = np.linalg.qr(features(6, 6, seed=2))[0]
    assert linear_cka(x, x, debiased=debiased) == pytest.approx(1)
    assert linear_cka(100 * x @ rotation, y, debiased=debiased) == pytest.approx(linear_cka(x, y, debiased=debiased))
    stretched = x * np.array([9, 1, 1, 1, 1, 1])
    assert linear_cka(stretched, y, debiased=debiased) != pytest.approx(linear_cka(x, y, debiased=debiased), rel=1e-3)


def test_only_the_debiased_form_is_near_zero_for_independent_features():
    pairs = [(features(60, 100, seed=s), features(60, 100, seed=s + 50)) for s in range(5)]
    biased, debiased = zip(*(both_linear_cka(x, y) for x, y in pairs), strict=True)
    assert np.mean(biased) == pytest.approx(100 / 160, abs=0.02)  # d / (n + d)
    assert abs(np.mean(debiased)) < 0.05


@pytest.mark.parametrize("n", [10, 30])
def test_both_at_once_are_the_two(n):
    x, y = features(n, 20), features(n, 12, seed=1)
    assert both_linear_cka(x, y) == (linear_cka(x, y), linear_cka(x, y, debiased=True))


@pytest.mark.parametrize("d", [4, 70])
def test_single_precision_costs_no_digits(d):
    x, y = (features(60, d, seed=s).astype(np.float32) + 1000 for s in (0, 1))
    for debiased in (False, True):
        exact = literal(x, y, debiased=debiased)
        assert linear_cka(x, y, debiased=debiased) == pytest.approx(exact, rel=1e-10)
        tensors = torch.from_numpy(x).requires_grad_(), torch.from_numpy(y)
        assert linear_cka(*tensors, debiased=debiased) == pytest.approx(exact, rel=1e-10)
    half = torch.from_numpy(features(60, d)).to(torch.bfloat16)
    assert linear_cka(half, half.double()) == pytest.approx(1)


def test_huge_and_tiny_numbers_do_not_overflow():
    for d in (6, 60):
        x = features(40, d)
        assert linear_cka(x * 1e200, x * 1e-200) == pytest.approx(1)
        single = (x * 1e30).astype(np.float32)
        assert linear_cka(single, (x * 1e-30).astype(np.float32), debiased=True) == pytest.approx(1)


@pytest.mark.parametrize("d", [2, 9])
def test_what_has_no_meaning_is_named(d):
    x, constant = features(5, d), np.full((5, d), 0.1)
    with pytest.raises(DataError, match="same images"):
        linear_cka(x, features(6, d))
    with pytest.raises(DataError, match="one row per image"):
        linear_cka(x, np.zeros((5, d, 2)))
    for bad in (np.nan, np.inf):
        with pytest.raises(DataError, match="some of y are NaN or infinite"):
            linear_cka(x, np.where(x == x[3, 1], bad, x))
    with pytest.raises(NotApplicable, match="at least 2 images, found 1"):
        linear_cka(x[:1], x[:1])
    with pytest.raises(NotApplicable, match="at least 4 images, found 3"):
        linear_cka(x[:3], x[:3], debiased=True)
    for debiased in (False, True):
        with pytest.raises(NotApplicable, match="same features in x"):
            linear_cka(constant, x, debiased=debiased)
        with pytest.raises(NotApplicable, match="same features in y"):
            linear_cka(x, constant, debiased=debiased)


@pytest.mark.parametrize("d", [2, 40])
def test_rounding_never_leads_above_1(d):
    turned = [(x, x @ np.linalg.qr(features(d, d, s))[0]) for s in range(12) for x in [features(12, d, s)]]
    assert all(value <= 1 for pair in turned for value in both_linear_cka(*pair))


@pytest.mark.parametrize("d", [2, 9])
def test_a_mean_far_from_zero_costs_no_digits(d):
    """Of four images the debiased form is a difference of sums that nearly cancel."""
    for seed in range(5):
        x, y = features(4, d, seed) + 1e9, features(4, d, seed + 50) - 1e9
        for debiased in (False, True):
            assert linear_cka(x, y, debiased=debiased) == pytest.approx(literal(x, y, debiased=debiased), abs=1e-10)
