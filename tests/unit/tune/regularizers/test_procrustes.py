"""The distance up to rotation and scale, on both sides of the choice of what is decomposed."""

import pytest
import torch

from crossgraft.tune.regularizers.repsim import procrustes_distance

WIDE, TALL = (5, 9), (20, 6)


def features(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def literal(first, second):
    a, b = first - first.mean(0), second - second.mean(0)
    return 1 - torch.linalg.matrix_norm(a.T @ b, "nuc") / (a.norm() * b.norm())


@pytest.mark.parametrize("shape", [WIDE, TALL])
def test_value_and_gradient(shape):
    ours, reference = features(shape, 0).requires_grad_(True), features(shape, 1)
    found = procrustes_distance(ours, reference)
    assert found.item() == pytest.approx(literal(ours, reference).item(), rel=1e-12)
    (gradient,) = torch.autograd.grad(found, [ours])
    for place in ((0, 0), (4, 3)):
        step = torch.zeros_like(reference)
        step[place] = 1e-6
        above, below = (literal(ours.detach() + sign * step, reference) for sign in (1, -1))
        assert gradient[place].item() == pytest.approx((above - below).item() / 2e-6, rel=1e-5)


@pytest.mark.parametrize("shape", [WIDE, TALL])
def test_rotation_scale_and_shift_are_free_and_order_is_not(shape):
    reference = features(shape, 0)
    turn = torch.linalg.qr(features((shape[1], shape[1]), 1)).Q
    assert abs(procrustes_distance(3 * reference @ turn + 2, reference).item()) < 1e-12
    assert procrustes_distance(reference.roll(1, 0), reference).item() > 0.1


@pytest.mark.parametrize("shape", [WIDE, TALL])
def test_features_of_low_rank_are_pulled_in_no_direction_that_they_do_not_have(shape):
    ours = features(shape, 0).clone()
    ours[:, 2:] = 0
    ours.requires_grad_(True)
    found = procrustes_distance(ours, features(shape, 1))
    (gradient,) = torch.autograd.grad(found, [ours])
    assert gradient.isfinite().all() and gradient[:, :2].abs().max() > 1e-3
    assert gradient[:, 2:].abs().max() < 1e-12
    assert 0 < found.item() < 1


@pytest.mark.parametrize("shape", [WIDE, TALL, (3, 1), (7, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [0, 1, 0.1, 7.7])  # 0.1 + 0.1 + 0.1 is not 0.3: the mean is rounded
def test_features_that_do_not_vary_are_as_far_as_can_be_and_pull_nowhere(shape, dtype, size):
    equal, varied = torch.full(shape, size, dtype=dtype), features(shape, 1).to(dtype)
    for ours, reference in ((equal, varied), (varied, equal)):
        ours = ours.clone().requires_grad_(True)
        found = procrustes_distance(ours, reference)
        (gradient,) = torch.autograd.grad(found, [ours])
        assert found.item() == 1 and not gradient.any()


def test_what_is_no_number_is_told_and_not_decomposed():
    ours = features(TALL, 0).clone()
    ours[3, 2] = float("nan")
    assert procrustes_distance(ours, features(TALL, 1)).isnan()
