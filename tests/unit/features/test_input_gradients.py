"""Gradients by the images against one backward pass per image, and what they leave as it was."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from crossgraft.features.passes import input_gradients

IMAGES = torch.rand(7, 3, 6, 6, generator=torch.Generator().manual_seed(0))
TARGETS = torch.tensor([0, 1, 2, 0, 1, 2, 0])


@pytest.fixture
def network():
    """Its modes and the flags of its parameters are mixed; in train mode its output would be random and of the whole batch."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Tanh(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(64, 3))
    layers.train()[1].eval()
    layers[0].weight.requires_grad_(False)
    return layers


def summed_loss(network):
    def objective(images, before):
        return cross_entropy(network(images), TARGETS[before : before + len(images)], reduction="sum")

    return objective


def state(network):
    parts = [part.training for part in network.modules()]
    return parts, [(each.requires_grad, each.grad) for each in network.parameters()], torch.is_grad_enabled()


def found(network, batches):
    return torch.cat(list(input_gradients(network, batches, summed_loss(network))))


@pytest.mark.parametrize("batch_size", [1, 3, 7])
def test_each_row_is_the_gradient_of_its_image(network, batch_size):
    batches = IMAGES.split(batch_size)
    gradients = found(network, batches)
    assert not any(images.requires_grad for images in batches)
    network.eval()
    for image, target, gradient in zip(IMAGES, TARGETS, gradients, strict=True):
        alone = image[None].clone().requires_grad_(True)
        cross_entropy(network(alone), target[None]).backward()
        torch.testing.assert_close(gradient, alone.grad[0], rtol=1e-4, atol=1e-7)


def test_everything_is_as_before_whenever_a_gradient_is_there(network):
    before, statistics = state(network), network[1].running_mean.clone()
    for _ in input_gradients(network, IMAGES.split(3), summed_loss(network)):
        assert state(network) == before
    assert state(network) == before and torch.equal(network[1].running_mean, statistics)


def test_everything_is_as_before_after_an_error(network):
    before = state(network)

    def fail(images, _before):
        assert not any(each.requires_grad for each in network.parameters())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(input_gradients(network, IMAGES.split(3), fail))
    assert state(network) == before


@pytest.mark.parametrize("around", [torch.no_grad, torch.inference_mode])
def test_it_does_not_matter_in_which_mode_it_is_asked(network, around):
    expected = found(network, IMAGES.split(3))
    with around():
        gradients = found(network, [images * 1 for images in IMAGES.split(3)])  # made in that mode
        assert not torch.is_grad_enabled() and torch.is_inference_mode_enabled() == (around is torch.inference_mode)
    assert torch.equal(gradients, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_computes_in_the_precision_of_the_weights(network, dtype):
    plain, autocast = (_within(around, network.to(dtype)) for around in (nullcontext(), torch.autocast("cpu", torch.bfloat16)))
    assert plain.dtype == dtype and torch.equal(plain, autocast)


def _within(around, network):
    with around:
        return found(network, IMAGES.split(3))
