"""What every objective promises."""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import get_args

import torch
from torch import Tensor

from crossgraft.losses import CrossEntropy
from crossgraft.seeding import torch_generator
from crossgraft.testing.promises import (
    Contract,
    declares_its_facts,
    is_written_and_read_again,
    keep_all,
    leaves_the_global_random_state,
    promise,
    require,
)
from crossgraft.tune.feed.batches import Sampler
from crossgraft.tune.objectives import Objective, ObjectiveContext

_NUM_DOMAINS, _NUM_CLASSES = 2, 3
_NUM_STEPS = 3


@promise
def says_what_it_needs(objective: Objective) -> None:
    """A sampler that it names is one by domains, and then it needs domains and at least one image of each group."""
    sampler = objective.sampler
    by_domain = [name for name in get_args(Sampler) if name.startswith("domains")]
    require(sampler is None or sampler in by_domain, objective, f"it asks for the sampler {sampler}, not for one of {by_domain}")
    require(sampler is None or objective.needs_domains, objective, f"it asks for the sampler {sampler} and needs no domains")
    require(objective.fewest_per_group >= 1, objective, f"its fewest_per_group is {objective.fewest_per_group}")


@promise
def gives_finite_terms(objective: Objective) -> None:
    """The terms are finite scalars, also where domains are not alike in size and targets are soft."""
    for domains in ([0, 0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 0, 0]):
        terms = _attached(objective)(_step(domains))
        require(bool(terms), objective, "it gives no term")
        for name, term in terms.items():
            require(term.shape == (), objective, f"its term {name} has the shape {tuple(term.shape)}, not that of a scalar")
            require(bool(term.isfinite()), objective, f"its term {name} is {term.item()}")


@promise
def has_a_gradient(objective: Objective) -> None:
    """The terms pull at logits, and by a finite amount."""
    context = _step()
    total = torch.stack(list(_attached(objective)(context).values())).sum()
    require(total.requires_grad, objective, "its terms are not part of the graph")
    (gradient,) = torch.autograd.grad(total, context.logits)
    require(bool(gradient.isfinite().all()), objective, "its gradient is not finite")
    require(bool(gradient.any()), objective, "its gradient is zero for every logit")


@promise
def is_the_mean_if_it_says_so(objective: Objective) -> None:
    """One that says ``is_plain_mean`` gives the mean of the losses."""
    if not objective.is_plain_mean:
        return
    context = _step()
    total, mean = torch.stack(list(_attached(objective)(context).values())).sum(), context.losses.mean()
    require(
        torch.allclose(total, mean), objective, f"its terms sum to {total.item()}, and the mean of the losses is {mean.item()}"
    )


@promise
def leaves_its_inputs_alone(objective: Objective) -> None:
    """It writes into none of the tensors that it is given."""
    context = _step()
    tensors = {each.name: value for each in fields(context) if isinstance(value := getattr(context, each.name), Tensor)}
    before = {name: value.detach().clone() for name, value in tensors.items()}
    _attached(objective)(context)
    moved = [name for name, value in tensors.items() if not torch.equal(value.detach(), before[name])]
    require(not moved, objective, f"it overwrites {', '.join(moved)}")


@promise
def is_repeatable(objective: Objective) -> None:
    """Attached again it gives the same terms in the same steps, to the last bit, and draws from the generator of a step alone."""
    ours = _attached(objective)
    first = _terms_of_steps(ours)
    ours.attach(num_domains=_NUM_DOMAINS, num_classes=_NUM_CLASSES)
    again = _terms_of_steps(ours)
    require(first == again, objective, f"the same steps give {first}, then {again}")
    leaves_the_global_random_state(objective, lambda: _attached(objective)(_step()))


@promise
def goes_on_after_a_checkpoint(objective: Objective) -> None:
    """Attached and loaded from ``state_dict`` in the middle, it gives the terms that it would have given."""
    whole, resumed = _attached(objective), _attached(objective)
    _terms_of_steps(whole)
    resumed.load_state_dict({name: tensor.clone() for name, tensor in whole.state_dict().items()})
    expected, found = (_terms_of_steps(each, start=_NUM_STEPS) for each in (whole, resumed))
    require(expected == found, objective, f"a checkpoint turns the terms {expected} into {found}")


OBJECTIVE_CONTRACTS: tuple[Contract, ...] = (
    declares_its_facts,
    is_written_and_read_again,
    says_what_it_needs,
    gives_finite_terms,
    has_a_gradient,
    is_the_mean_if_it_says_so,
    leaves_its_inputs_alone,
    is_repeatable,
    goes_on_after_a_checkpoint,
)
"""All promises of an objective."""


def check_objective(objective: Objective) -> None:
    """Check all promises of one objective.

    Args:
        objective: Objective with its options; stays as it is.

    Raises:
        ContractError: The first promise that is broken, or the kind of plug-in that it is not.
    """
    keep_all(OBJECTIVE_CONTRACTS, objective, Objective)


def _attached(objective: Objective) -> Objective:
    ours = copy.deepcopy(objective)
    ours.attach(num_domains=_NUM_DOMAINS, num_classes=_NUM_CLASSES)
    return ours


def _step(domains: list[int] | None = None, *, step: int = 0) -> ObjectiveContext:
    """Noise for logits, and soft targets; another one in each step."""
    index = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1] if domains is None else domains)
    random, loss = torch_generator(0, "example step", step), CrossEntropy()
    logits = torch.randn(len(index), _NUM_CLASSES, generator=random).requires_grad_()
    targets = (3 * torch.randn(len(index), _NUM_CLASSES, generator=random)).softmax(1)
    drawn = torch_generator(0, "example draws", step)
    return ObjectiveContext(loss(logits, targets), logits, targets, index, _NUM_DOMAINS, step, loss, drawn)


def _terms_of_steps(objective: Objective, *, start: int = 0) -> list[dict[str, float]]:
    steps = (objective(_step(step=step)) for step in range(start, start + _NUM_STEPS))
    return [{name: term.item() for name, term in terms.items()} for terms in steps]
