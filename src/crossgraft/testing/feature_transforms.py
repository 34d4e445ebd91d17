"""What every feature transform promises; one that needs another network gets it by ``classifier=``."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from crossgraft.models.classifier import Classifier
from crossgraft.seeding import torch_generator
from crossgraft.testing.example_networks import NUM_IMAGES, example_classifier, example_step, surroundings
from crossgraft.testing.promises import (
    Contract,
    declares_its_facts,
    is_written_and_read_again,
    keep_all,
    leaves_the_global_random_state,
    promise,
    require,
)
from crossgraft.tune.feature_transforms import FeatureTransform, TransformStart

_SEEDS = range(8)
"""What happens with some probability should happen with one of them."""
_MOST_EXCHANGES = 8
_CLOSE = 1e-9


@promise
def keeps_logits_finite(transform: FeatureTransform, *, classifier: Classifier | None = None) -> None:
    """In a step the network gives finite logits of the same shape and number type, with a finite gradient."""
    ours, network = _attached(transform, classifier)
    plain = network(_images(network))
    for seed in _SEEDS:
        logits = _in_a_step(ours, network, seed)
        facts = f"{plain.dtype} {tuple(plain.shape)} become {logits.dtype} {tuple(logits.shape)}"
        require(logits.shape == plain.shape and logits.dtype == plain.dtype, transform, f"logits {facts}")
        require(bool(logits.isfinite().all()), transform, "logits are not finite")
        weights = [parameter for parameter in network.parameters() if parameter.requires_grad]
        gradients = torch.autograd.grad(logits.sum(), weights, materialize_grads=True)
        require(all(bool(each.isfinite().all()) for each in gradients), transform, "a gradient is not finite")


@promise
def acts_in_a_step_alone(transform: FeatureTransform, *, classifier: Classifier | None = None) -> None:
    """It changes something in the forward pass of a step, and nothing in any other, to the last bit."""
    network = copy.deepcopy(classifier or example_classifier()).double().eval()
    plain = network(_images(network))
    ours = copy.deepcopy(transform)
    ours.attach(network)
    require(torch.equal(network(_images(network)), plain), transform, "it changes a forward pass before the first step")
    changed = [not torch.equal(_in_a_step(ours, network, seed), plain) for seed in _SEEDS]
    require(any(changed), transform, "it changes nothing in a step")
    require(torch.equal(network(_images(network)), plain), transform, "it changes a forward pass after a step")
    ours.detach()
    require(torch.equal(_in_a_step(ours, network, 0), plain), transform, "it changes a forward pass after detach")


@promise
def draws_from_its_generator_alone(transform: FeatureTransform, *, classifier: Classifier | None = None) -> None:
    """The same generator gives the same logits, to the last bit."""
    ours, network = _attached(transform, classifier)
    for seed in _SEEDS:
        first, second = (_in_a_step(ours, network, seed) for _ in range(2))
        require(torch.equal(first, second), transform, "the same generator gives other logits")
        leaves_the_global_random_state(transform, lambda seed=seed: _in_a_step(ours, network, seed))


@promise
def is_the_same_for_any_number_of_processes(transform: FeatureTransform, *, classifier: Classifier | None = None) -> None:
    """Two processes with uneven shares of the batch give the logits that one with all of it gives."""
    ours, network = _attached(transform, classifier)
    for seed in _SEEDS:
        whole, parts = _in_a_step(ours, network, seed), _in_two_processes(ours, network, seed)
        apart = (whole - parts).abs().max().item()
        require(apart < _CLOSE, transform, f"logits of two processes are {apart:.1g} from those of one")


@promise
def leaves_nothing_behind(transform: FeatureTransform, *, classifier: Classifier | None = None) -> None:
    """After ``detach`` the network is as it was: weights, flags, hooks and attributes."""
    network = copy.deepcopy(classifier or example_classifier())
    weights, before = copy.deepcopy(network.state_dict()), surroundings(network)
    ours = copy.deepcopy(transform)
    ours.attach(network)
    _in_a_step(ours, network, 0)
    ours.detach()
    moved = [name for name, value in weights.items() if not torch.equal(network.state_dict()[name], value)]
    require(not moved, transform, f"it changes {', '.join(moved)}")
    after = surroundings(network)
    changed = [name for name in after if after[name] != before.get(name)]
    require(not changed, transform, f"after detach it has left something on {', '.join(map(repr, changed))}")


FEATURE_TRANSFORM_CONTRACTS: tuple[Contract, ...] = (
    declares_its_facts,
    is_written_and_read_again,
    keeps_logits_finite,
    acts_in_a_step_alone,
    draws_from_its_generator_alone,
    is_the_same_for_any_number_of_processes,
    leaves_nothing_behind,
)
"""All promises of a feature transform."""


def check_feature_transform(transform: FeatureTransform, *, classifier: Classifier | None = None) -> None:
    """Check all promises of one feature transform.

    Args:
        transform: Transform with its options, not attached; stays as it is.
        classifier: Classifier in place of the small example; stays as it is.

    Raises:
        ContractError: The first promise that is broken, or the kind of plug-in that it is not.
    """
    keep_all(FEATURE_TRANSFORM_CONTRACTS, transform, FeatureTransform, classifier=classifier)


def _attached(transform: FeatureTransform, classifier: Classifier | None) -> tuple[FeatureTransform, Classifier]:
    """Copies of both in float64, the one attached to the other; statistics of BatchNorm stay."""
    network = copy.deepcopy(classifier or example_classifier()).double().eval()
    ours = copy.deepcopy(transform)
    ours.attach(network)
    return ours, network


def _images(network: Classifier) -> Tensor:
    return example_step(network).images


def _in_a_step(
    transform: FeatureTransform,
    network: Classifier,
    seed: int,
    share: slice = slice(None),
    exchange: Callable[[Tensor], Tensor] = lambda tensor: tensor,
) -> Tensor:
    """Logits of the images of one process in a step."""
    images, places = _images(network)[share], torch.arange(NUM_IMAGES)[share]
    drawn = torch_generator(seed, "example forward")
    transform.before_forward(TransformStart(drawn, places, NUM_IMAGES, len(places), exchange))
    logits = network(images)
    transform.after_forward()
    return logits


@dataclass
class _Exchange:
    """What a process sends to the other, and what it was sent by it."""

    received: list[Tensor]
    sent: list[Tensor] = field(default_factory=list[Tensor])

    def __call__(self, tensor: Tensor) -> Tensor:
        self.sent.append(tensor)
        number = len(self.sent)
        return tensor + self.received[number - 1] if number <= len(self.received) else tensor


def _in_two_processes(transform: FeatureTransform, network: Classifier, seed: int) -> Tensor:
    """Logits of both: each is run again until it has been given what the other sends."""
    shares = (slice(0, 4), slice(4, None))
    logits: list[Tensor] = []
    exchanges = [_Exchange([]), _Exchange([])]
    for _ in range(_MOST_EXCHANGES):
        before = exchanges
        exchanges = [_Exchange(before[1].sent), _Exchange(before[0].sent)]
        logits = [_in_a_step(transform, network, seed, *each) for each in zip(shares, exchanges, strict=True)]
        if all(_equal(one.sent, other.sent) for one, other in zip(before, exchanges, strict=True)):
            break
    return torch.cat(logits)


def _equal(first: list[Tensor], second: list[Tensor]) -> bool:
    return len(first) == len(second) and all(torch.equal(*pair) for pair in zip(first, second, strict=True))
