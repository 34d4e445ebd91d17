"""CKA of a batch: the same number as the measure, whatever the form, with the right gradient."""

import numpy as np
import pytest
import torch

from crossgraft.similarity.linear_cka import linear_cka
from crossgraft.tune.regularizers._batch_cka import batch_cka


def drawn(rows, columns, seed=0, dtype=torch.float64):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def literal_hsic(k, m, debiased):
    """Sums over images in plain loops, of Gram matrices of features that are not centred."""
    n = len(k)
    if not debiased:
        centring = np.eye(n) - np.full((n, n), 1 / n)
        return np.trace(k @ centring @ m @ centring)
    k, m = k - np.diag(np.diag(k)), m - np.diag(np.diag(m))
    pairs = sum(k[i, j] * m[j, i] for i in range(n) for j in range(n))
    triples = sum(k[i, j] * m[j, q] for i in range(n) for j in range(n) for q in range(n))
    return pairs + k.sum() * m.sum() / ((n - 1) * (n - 2)) - 2 * triples / (n - 2)


@pytest.mark.parametrize("debiased", [False, True])
@pytest.mark.parametrize(("width", "other"), [(3, 4), (20, 30), (3, 30)])
def test_both_forms_are_the_literal_formula_and_the_measure(width, other, debiased):
    first = drawn(9, width) + 3
    second = drawn(9, other, 1) + torch.cat([first, first[:, :1].expand(-1, other)], dim=1)[:, :other]
    k, m = (x.numpy() @ x.numpy().T for x in (first, second))
    hsic = [literal_hsic(*pair, debiased) for pair in ((k, m), (k, k), (m, m))]
    found = batch_cka(first, second, debiased=debiased)
    assert found.is_defined
    assert float(found.value) == pytest.approx(hsic[0] / np.sqrt(hsic[1] * hsic[2]), rel=1e-10)
    assert float(found.value) == pytest.approx(linear_cka(first.numpy(), second.numpy(), debiased=debiased), rel=1e-10)


@pytest.mark.parametrize("debiased", [False, True])
@pytest.mark.parametrize("width", [4, 12])
def test_the_gradient_is_that_of_finite_differences(width, debiased):
    first, second = drawn(7, width).requires_grad_(), drawn(7, width, 1)
    assert torch.autograd.gradcheck(lambda x: batch_cka(x, second, debiased=debiased).value, [first])


@pytest.mark.parametrize("debiased", [False, True])
@pytest.mark.parametrize("width", [4, 12])
def test_turning_scaling_and_shifting_the_reference_changes_nothing(width, debiased):
    first, second = drawn(7, width), drawn(7, width, 1) + 0.5 * drawn(7, width)
    turn, _ = torch.linalg.qr(drawn(width, width, 2))
    expected = batch_cka(first, second, debiased=debiased).value
    for other in (second @ turn, 1e-6 * second, 1e6 * second, second + 5):
        assert float(batch_cka(first, other, debiased=debiased).value) == pytest.approx(float(expected), rel=1e-8)
    assert float(batch_cka(first, -3 * first @ turn, debiased=debiased).value) == pytest.approx(1, rel=1e-12)
    assert abs(float(expected)) < 0.95


def test_large_features_do_not_overflow_float32():
    first, second = drawn(6, 9, dtype=torch.float32), drawn(6, 9, 1, dtype=torch.float32)
    large = batch_cka(1e15 * first, 1e15 * second).value
    assert float(large) == pytest.approx(float(batch_cka(first, second).value), rel=1e-5)


@pytest.mark.parametrize("width", [3, 20])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [0, 100, 1e9])
@pytest.mark.parametrize("constant", ["features", "reference"])
def test_without_variance_it_is_zero_without_a_gradient(constant, size, dtype, width):
    varied = drawn(7, width, dtype=dtype).requires_grad_()
    same = (drawn(1, width, 1, dtype=dtype) * size).expand(7, -1).clone().requires_grad_()
    pair = (same, varied) if constant == "features" else (varied, same)
    found = batch_cka(*pair)
    assert found.value == 0 and not found.is_defined
    found.value.backward()
    assert not pair[0].grad.any() and not pair[1].grad.any()


@pytest.mark.parametrize("width", [3, 20])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_image_that_differs_from_equal_others_has_no_debiased_cka(dtype, width):
    """The unbiased HSIC of such features is 0: what is computed is rounding, and its gradient would be huge."""
    first = drawn(2, width, dtype=dtype)[[0, 0, 0, 0, 0, 1]].requires_grad_(True)
    found = batch_cka(first, drawn(6, width, seed=1, dtype=dtype), debiased=True)
    assert not found.is_defined and found.value == 0
    assert not torch.autograd.grad(found.value, first)[0].any()


def test_too_few_images_for_the_debiased_form_are_not_defined():
    first, second = drawn(3, 5).requires_grad_(), drawn(3, 5, 1)
    assert batch_cka(first, second).is_defined
    found = batch_cka(first, second, debiased=True)
    assert found.value == 0 and not found.is_defined and found.value.requires_grad


@pytest.mark.parametrize("debiased", [False, True])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("where", [0, 1])
def test_what_is_no_number_stays_none(where, bad, debiased):
    pair = [drawn(6, 9), drawn(6, 9, 1)]
    pair[where][2, 3] = bad
    assert batch_cka(*pair, debiased=debiased).value.isnan()
    pair[where][:] = bad
    assert batch_cka(*pair, debiased=debiased).value.isnan()
    assert batch_cka(pair[0][:3], pair[1][:3], debiased=True).value.isnan() or not debiased


@pytest.mark.parametrize("width", [3, 8])
def test_a_large_mean_costs_single_precision_few_digits(width):
    """Of four images the debiased form is a difference of sums that nearly cancel."""
    for seed in range(20):
        first, second = (drawn(4, width, s, dtype=torch.float32) + 1e4 for s in (seed, seed + 100))
        exact = linear_cka(first.double().numpy(), second.double().numpy(), debiased=True)
        assert float(batch_cka(first, second, debiased=True).value) == pytest.approx(exact, abs=1e-3)
