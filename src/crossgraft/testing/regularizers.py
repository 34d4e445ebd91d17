"""What every regulariser promises; one that needs another network gets it by ``classifier=``."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor

from crossgraft.models.classifier import Classifier
from crossgraft.seeding import torch_generator
from crossgraft.testing.example_networks import (
    NUM_IMAGES,
    ExampleTrainingSet,
    example_classifier,
    example_step,
    move_weights,
    surroundings,
)
from crossgraft.testing.promises import (
    Contract,
    declares_its_facts,
    is_written_and_read_again,
    keep_all,
    leaves_the_global_random_state,
    promise,
    require,
)
from crossgraft.tune.protocols import LooksInside, attach
from crossgraft.tune.regularizers import ForwardStart, Regularizer, StepUpdate


@promise
def gives_finite_terms(regularizer: Regularizer, *, classifier: Classifier | None = None) -> None:
    """The terms are finite scalars, and the weight of the task is a finite number of at least 0."""
    ours, network = _attached(regularizer, classifier)
    terms = _loss(ours, network)
    require(bool(terms), regularizer, "it gives no term")
    for name, term in terms.items():
        require(term.shape == (), regularizer, f"its term {name} has the shape {tuple(term.shape)}, not that of a scalar")
        require(bool(term.isfinite()), regularizer, f"its term {name} is {term.item()}")
    weight = ours.task_weight
    require(math.isfinite(weight) and weight >= 0, regularizer, f"its task_weight is {weight}")


@promise
def has_a_gradient(regularizer: Regularizer, *, classifier: Classifier | None = None) -> None:
    """On weights that have moved, the terms pull at some weight, and by a finite amount."""
    ours, network = _attached(regularizer, classifier)
    move_weights(network)
    terms = _loss(ours, network)
    total = torch.stack(list(terms.values())).sum()
    require(total.requires_grad, regularizer, "its terms are not part of the graph")
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    gradients = torch.autograd.grad(total, trained, materialize_grads=True)
    finite = all(bool(gradient.isfinite().all()) for gradient in gradients)
    require(finite, regularizer, "its gradient is not finite")
    require(any(bool(gradient.any()) for gradient in gradients), regularizer, "its gradient is zero for every weight")


@promise
def is_repeatable(regularizer: Regularizer, *, classifier: Classifier | None = None) -> None:
    """The same step gives the same terms, to the last bit."""
    terms = [_terms(*_attached(regularizer, classifier)) for _ in range(2)]
    require(_same(*terms), regularizer, f"the same step gives {terms[0]}, then {terms[1]}")


@promise
def goes_on_after_a_checkpoint(regularizer: Regularizer, *, classifier: Classifier | None = None) -> None:
    """Attached to the starting weights and loaded from ``state_dict``, it gives the terms that it gave before.

    Its own parameters have moved by then, as a step of an optimiser moves them.
    """
    ours, network = _attached(regularizer, classifier)
    move_weights(network)
    _move_own(ours, network)
    before = _terms(ours, network)
    state = {name: tensor.clone() for name, tensor in ours.state_dict().items()}
    resumed, again = _attached(regularizer, classifier)
    again.load_state_dict(network.state_dict())
    resumed.load_state_dict(state)
    after = _terms(resumed, again)
    require(_same(before, after), regularizer, f"a checkpoint turns the terms {before} into {after}")


@promise
def leaves_nothing_behind(regularizer: Regularizer, *, classifier: Classifier | None = None) -> None:
    """After ``detach`` the network is as it was: weights, flags, hooks and attributes."""
    network = copy.deepcopy(classifier or example_classifier())
    weights = copy.deepcopy(network.state_dict())
    before = surroundings(network)
    ours = copy.deepcopy(regularizer)
    attach(ours, network, ExampleTrainingSet(network))
    _loss(ours, network)
    ours.detach()
    moved = [name for name, value in weights.items() if not torch.equal(network.state_dict()[name], value)]
    require(not moved, regularizer, f"it changes {', '.join(moved)}")
    after = surroundings(network)
    changed = [name for name in after if after[name] != before.get(name)]
    require(not changed, regularizer, f"after detach it has left something on {', '.join(map(repr, changed))}")


@promise
def names_its_own_parameters(regularizer: Regularizer, *, classifier: Classifier | None = None) -> None:
    """What ``parameter_groups`` trains is exactly what ``modules`` holds, and nothing of it is the network's."""
    ours, network = _attached(regularizer, classifier)
    grouped = [id(parameter) for group in ours.parameter_groups() for parameter in group["params"]]
    held = [id(parameter) for module in ours.modules() for parameter in module.parameters()]
    require(sorted(grouped) == sorted(held), regularizer, "parameter_groups and modules differ in their parameters")
    shared = {id(parameter) for parameter in network.parameters()} & set(grouped)
    require(not shared, regularizer, "parameter_groups has parameters of the network, which the trainer adds itself")


@promise
def draws_its_parameters_from_the_seed(regularizer: Regularizer, *, classifier: Classifier | None = None) -> None:
    """Own parameters that are drawn are drawn from the seed of ``attach`` alone, and the network is the same whatever it is."""
    leaves_the_global_random_state(regularizer, lambda: _attached(regularizer, classifier))
    (first, network), (again, _), (_, other_network) = (_attached(regularizer, classifier, seed=seed) for seed in (1, 1, 2))
    require(_same(_own(first), _own(again)), regularizer, "the same seed gives other parameters of its own")
    require(_same(network.state_dict(), other_network.state_dict()), regularizer, "another seed changes the network")


REGULARIZER_CONTRACTS: tuple[Contract, ...] = (
    declares_its_facts,
    is_written_and_read_again,
    gives_finite_terms,
    has_a_gradient,
    is_repeatable,
    goes_on_after_a_checkpoint,
    leaves_nothing_behind,
    names_its_own_parameters,
    draws_its_parameters_from_the_seed,
)
"""All promises of a regulariser."""


def check_regularizer(regularizer: Regularizer, *, classifier: Classifier | None = None) -> None:
    """Check all promises of one regulariser.

    Args:
        regularizer: Regulariser with its options, not attached; stays as it is.
        classifier: Classifier in place of the small example; stays as it is.

    Raises:
        ContractError: The first promise that is broken, or the kind of plug-in that it is not.
    """
    keep_all(REGULARIZER_CONTRACTS, regularizer, Regularizer, classifier=classifier)


def _attached(regularizer: Regularizer, classifier: Classifier | None, *, seed: int = 0) -> tuple[Regularizer, Classifier]:
    """Copies of both, the one attached to the other."""
    network = copy.deepcopy(classifier or example_classifier())
    ours = copy.deepcopy(regularizer)
    attach(ours, network, ExampleTrainingSet(network), seed=seed)
    return ours, network


def _loss(regularizer: Regularizer, network: Classifier) -> dict[str, Tensor]:
    """The terms of the example step."""
    if isinstance(regularizer, LooksInside):
        indices = torch.arange(NUM_IMAGES)
        regularizer.before_forward(ForwardStart(torch_generator(0, "example forward"), indices, NUM_IMAGES))
    return regularizer.loss(example_step(network))


def _move_own(regularizer: Regularizer, network: Classifier) -> None:
    """One step of gradient descent on the terms for the regulariser's own parameters, and what follows a step."""
    own = [parameter for group in regularizer.parameter_groups() for parameter in group["params"]]
    if own:
        terms = _loss(regularizer, network)
        total = torch.stack(list(terms.values())).sum()
        gradients = torch.autograd.grad(total, own, materialize_grads=True)
        with torch.no_grad():
            for parameter, gradient in zip(own, gradients, strict=True):
                parameter.sub_(gradient, alpha=0.1)
    regularizer.after_step(StepUpdate(network, {}))


def _own(regularizer: Regularizer) -> dict[str, Tensor]:
    """The regulariser's own parameters by number."""
    held = [parameter for module in regularizer.modules() for parameter in module.parameters()]
    return {str(number): parameter.detach() for number, parameter in enumerate(held)}


def _terms(regularizer: Regularizer, network: Classifier) -> dict[str, Tensor]:
    return {name: term.detach() for name, term in _loss(regularizer, network).items()}


def _same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
