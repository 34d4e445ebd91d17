"""An orthogonal matrix stays one, however long and however far it is moved."""

import pytest
import torch

from crossgraft.tune.regularizers._moment_terms import OrthogonalMap, nearest_orthogonal


def error(matrix):
    return (matrix.T @ matrix - torch.eye(len(matrix), dtype=matrix.dtype)).abs().max().item()


@pytest.mark.parametrize(("rate", "steps"), [(1e-3, 1500), (0.5, 300)])
def test_it_stays_orthogonal_in_single_precision(rate, steps):
    q = OrthogonalMap(8, torch.zeros(()))
    generator = torch.Generator().manual_seed(0)
    drawn = rate * torch.randn(steps, 8, 8, generator=generator)
    for step in drawn - drawn.mT:
        q.skew.data = step
        q.move()
    assert not q.skew.any()
    assert error(q.value) < 1e-6
    assert torch.linalg.det(q.value) > 0
    assert (q.value - torch.eye(8)).norm() > 0.1


def test_a_step_is_the_exponential_to_second_order():
    generator = torch.Generator().manual_seed(0)
    step = torch.randn(5, 5, generator=generator, dtype=torch.float64)
    step = (step - step.T) / (step - step.T).norm()
    before = torch.linalg.qr(torch.randn(5, 5, generator=generator, dtype=torch.float64)).Q
    for size, tolerance in ((0.01, 1e-6), (0.1, 1e-3), (3.0, 0.5)):
        q = OrthogonalMap(5, torch.zeros((), dtype=torch.float64))
        with torch.no_grad():
            q.value.copy_(before)
            q.skew.copy_(size * step)
        q.move()
        assert (q.value - before @ torch.linalg.matrix_exp(size * step)).norm() < tolerance
        assert error(q.value) < 1e-12


@pytest.mark.parametrize("size", [2, 9])
@pytest.mark.parametrize("norm", [1.5, 3.1, 12, 50, 1000])
def test_a_step_of_any_length_leads_to_an_orthogonal_matrix(size, norm):
    step = torch.randn(size, size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    q = OrthogonalMap(size, step)
    q.skew.data = norm * (step - step.T) / (step - step.T).norm()
    q.move()
    assert error(q.value) < 1e-12


def test_the_step_of_adamw_stays_skew_and_a_little_that_is_not_does_not_count():
    q = OrthogonalMap(6, torch.zeros(()))
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(q.parameters(), lr=0.01, weight_decay=0.0)
    for _ in range(20):
        gradient = torch.randn(6, 6, generator=generator)
        q.skew.grad = gradient - gradient.T
        optimizer.step()
        assert torch.equal(q.skew, -q.skew.T)
        q.move()
    before = q.value.clone()
    with torch.no_grad():
        q.skew.copy_(1e-3 * torch.ones(6, 6))  # several processes may round differently above and below the diagonal
    q.move()
    assert (q.value - before).abs().max() < 1e-6


def test_nothing_moves_nothing():
    q = OrthogonalMap(6, torch.zeros(()))
    q.move()
    assert torch.equal(q.value, torch.eye(6))


def test_an_orthogonal_matrix_with_errors_is_repaired():
    q = torch.linalg.qr(torch.randn(7, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)).Q
    assert error(nearest_orthogonal(1.2 * q)) < 1e-14
    assert (nearest_orthogonal(1.2 * q) - q).abs().max() < 1e-14
    for broken in (float("nan"), float("inf"), 1e200):  # the square of the last one is none
        with pytest.raises(FloatingPointError, match="no orthogonal matrix is near"):
            nearest_orthogonal(q * broken)


@pytest.mark.parametrize(
    ("number_type", "size"), [(torch.float32, 1e9), *((torch.float64, size) for size in (1e60, 1e250, float("nan")))]
)
def test_a_step_that_is_too_long_for_its_numbers_is_an_error_and_leaves_the_matrix(number_type, size):
    q = OrthogonalMap(4, torch.zeros((), dtype=number_type))
    drawn = torch.randn(4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    q.skew.data = (size * (drawn - drawn.T)).to(number_type)
    with pytest.raises(FloatingPointError, match="no orthogonal matrix is near"):
        q.move()
    assert torch.equal(q.value, torch.eye(4, dtype=number_type))
