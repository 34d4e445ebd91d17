"""Distances between tokens, beside their definitions; the released values are in tests/golden."""

import pytest
import torch

from crossgraft.tune.sim.distances import DISTANCES, OF_STANDARDISED, standardised


def tokens(seed, images=3, count=5, width=4):
    return torch.randn(images, count, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_hand(name, prediction, target):
    """The mean over images of what one image gives, token by token."""
    found = []
    for p, t in zip(prediction, target, strict=True):
        if name.startswith("norm"):
            p, t = ((x - x.mean(0)) / (x.std(0, unbiased=True) + 1e-6) for x in (p, t))
        pairs = list(zip(p, t, strict=True))
        if name.endswith("l2"):
            each = [((a - b) ** 2).sum().sqrt() for a, b in pairs]
        elif name.endswith("mse"):
            each = [((a - b) ** 2).mean() for a, b in pairs]
        elif name == "l1":
            each = [(a - b).abs().mean() for a, b in pairs]
        elif name == "smooth_l1":
            each = [torch.where((a - b).abs() < 1, (a - b) ** 2 / 2, (a - b).abs() - 0.5).mean() for a, b in pairs]
        elif name == "cosine":
            each = [2 - 2 * (a @ b) / (a @ a).sqrt() / (b @ b).sqrt() for a, b in pairs]
        elif name == "kl":
            each = [(b.softmax(0) * (b.softmax(0) / a.softmax(0)).log()).sum() for a, b in pairs]
        else:
            each = [(p[:, c].sort().values - t[:, c].sort().values).abs().mean() for c in range(p.shape[1])]
        found.append(torch.stack(each).mean())
    return torch.stack(found).mean()


@pytest.mark.parametrize("name", DISTANCES)
def test_a_distance_is_what_its_definition_says_and_a_mean_over_images(name):
    prediction, target = tokens(0), tokens(1)
    assert DISTANCES[name](prediction, target).item() == pytest.approx(by_hand(name, prediction, target).item(), rel=1e-9)


@pytest.mark.parametrize("name", DISTANCES)
def test_what_is_predicted_exactly_costs_nothing_and_has_a_finite_gradient(name):
    prediction = tokens(0).requires_grad_()
    found = DISTANCES[name](prediction, prediction.detach())
    assert found.item() == pytest.approx(0, abs=1e-12)
    found.backward()
    assert bool(prediction.grad.isfinite().all())


@pytest.mark.parametrize("name", DISTANCES)
def test_channels_that_never_vary_have_a_finite_gradient(name):
    prediction = torch.ones(2, 4, 3, requires_grad=True)
    DISTANCES[name](prediction, tokens(0, 2, 4, 3).float()).backward()
    assert bool(prediction.grad.isfinite().all())


def test_norm_losses_see_neither_scale_nor_shift_of_a_channel():
    prediction, target = tokens(0), tokens(1)
    other = 3 * prediction - 7
    for name in ("norm_l2", "norm_mse"):
        assert DISTANCES[name](other, target).item() == pytest.approx(DISTANCES[name](prediction, target).item(), rel=1e-4)
    assert DISTANCES["mse"](other, target) != pytest.approx(DISTANCES["mse"](prediction, target), rel=0.1)


def test_what_is_standardised_already_is_not_standardised_again():
    prediction, target = standardised(tokens(0)), tokens(1)
    assert OF_STANDARDISED["norm_mse"](prediction, target) == DISTANCES["mse"](prediction, target)
    assert OF_STANDARDISED["norm_l2"](prediction, target) != pytest.approx(
        DISTANCES["norm_l2"](prediction, target).item(), rel=1e-3
    )
