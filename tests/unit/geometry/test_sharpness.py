"""Sharpness against the literal ascent on a flat vector of weights, and weights that come back bit for bit."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from crossgraft.errors import DataError, UsageError
from crossgraft.geometry import sharpness
from support.small_classifiers import SIZE, small_classifier

IMAGES = torch.randn(18, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
CLASSES = np.arange(18) % 3


def is_still(before, network):
    """Whether every tensor has the bits that it had."""
    return all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def loss_of(network, images=IMAGES, classes=CLASSES):
    return functional.cross_entropy(network(images), torch.from_numpy(classes))


def literal(network, *, rho, steps):
    """All images at once, one long vector, float64."""
    network = copy.deepcopy(network).double().eval().requires_grad_()
    images = IMAGES.double()
    home = parameters_to_vector(network.parameters()).detach()
    start = float(loss_of(network, images).detach())
    shift, best = torch.zeros_like(home), start
    for _ in range(steps):
        vector_to_parameters(home + shift, network.parameters())
        gradient = parameters_to_vector(torch.autograd.grad(loss_of(network, images), list(network.parameters())))
        shift = shift + 2.5 * rho / steps * gradient / gradient.norm()
        shift = shift * min(1.0, rho / float(shift.norm()))
        vector_to_parameters(home + shift, network.parameters())
        best = max(best, float(loss_of(network, images).detach()))
    return best - start


@pytest.mark.parametrize(("name", "rho", "steps"), [("vit", 0.05, 1), ("cnn", 0.3, 4)])
def test_it_is_the_literal_ascent_whatever_the_batches(name, rho, steps):
    network = small_classifier(name).train()
    for weight in list(network.parameters())[::2]:
        weight.requires_grad_(False)  # every weight counts, trained or not
    before = copy.deepcopy(network.state_dict())
    asks = [weight.requires_grad for weight in network.parameters()]
    found = sharpness(network, IMAGES, CLASSES, rho=rho, steps=steps, batch_size=7)
    assert found.value == pytest.approx(literal(network, rho=rho, steps=steps), rel=2e-4)
    assert found.loss == pytest.approx(float(loss_of(network.eval()).detach()), rel=1e-6)
    assert is_still(before, network)
    assert [weight.requires_grad for weight in network.parameters()] == asks
    assert all(weight.grad is None for weight in network.parameters())


def test_a_small_step_rises_by_the_length_of_the_gradient_and_many_find_no_less():
    network = small_classifier("vit")
    one = sharpness(network, IMAGES, CLASSES, rho=1e-3)
    assert one.value == pytest.approx(one.first_order, rel=0.02)
    assert one.first_order == pytest.approx(1e-3 * one.gradient_norm)
    wide, ten = (sharpness(network, IMAGES, CLASSES, rho=0.3, steps=steps).value for steps in (1, 10))
    assert ten >= wide
    whole, parts = (sharpness(network, IMAGES, CLASSES, per_batch=each, batch_size=6) for each in (False, True))
    assert parts.value > whole.value and parts.loss == pytest.approx(whole.loss)


def test_the_best_point_of_the_climb_counts_not_the_last():
    """Of sin w from w = 0 with steps of 1.875: there, back, there, back."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(1, 1, bias=False))
    network[1].weight.data.zero_()
    images = torch.ones(4, 1, 1, 1)
    found = sharpness(network, images, np.zeros(4, int), rho=3.0, steps=4, loss=lambda logits, _: logits.sin()[:, 0])
    assert found.value == pytest.approx(np.sin(1.875), rel=1e-5)
    assert not network[1].weight.detach().any()
    flat = sharpness(network, images, np.zeros(4, int), loss=lambda logits, _: 0 * logits[:, 0])
    assert (flat.value, flat.gradient_norm) == (0, 0)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_weights_come_back_bit_for_bit_when_the_climb_is_broken_off(error):
    network = small_classifier("cnn")
    before = copy.deepcopy(network.state_dict())
    calls = []

    def loss(logits, classes):
        calls.append(1)
        if len(calls) == 5:  # weights are away from home by then
            assert not torch.equal(network.head.weight, before["head.weight"])
            raise error
        return functional.cross_entropy(logits, classes, reduction="none")

    with pytest.raises(error):
        sharpness(network, IMAGES, CLASSES, steps=3, loss=loss, batch_size=6)
    assert is_still(before, network)


def test_losses_of_several_labels_are_summed_over_labels():
    network = small_classifier("vit")
    labels = np.stack([each == CLASSES for each in range(3)], axis=1).astype(int)
    expected = functional.binary_cross_entropy_with_logits(network(IMAGES), torch.from_numpy(labels).float()) * 3
    assert sharpness(network, IMAGES, labels).loss == pytest.approx(float(expected.detach()), rel=1e-6)


def test_what_cannot_be_measured_is_refused():
    network = small_classifier("vit")
    with pytest.raises(DataError, match="3 images: too few, at least 4"):
        sharpness(network, IMAGES[:3], CLASSES[:3])
    with pytest.raises(DataError, match="18 images and 17 targets"):
        sharpness(network, IMAGES, CLASSES[:17])
    with pytest.raises(DataError, match="Images hold NaN"):
        sharpness(network, torch.full_like(IMAGES, torch.nan), CLASSES)
    with pytest.raises(UsageError, match="the class of each image"):
        sharpness(network, IMAGES)
    with pytest.raises(UsageError, match="radius above 0"):
        sharpness(network, IMAGES, CLASSES, rho=0.0)
    with torch.no_grad():
        network.head.bias[0] = torch.nan
    with pytest.raises(DataError, match="NaN or infinite"):
        sharpness(network, IMAGES, CLASSES)
