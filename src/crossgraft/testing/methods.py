"""What every method promises; a method that needs another network gets it by ``classifier=``.

A method that adds adapters promises more: see ``testing.adapters``.
"""

from __future__ import annotations

import copy

import torch

from crossgraft.models.classifier import Classifier
from crossgraft.testing.adapters import ADAPTER_CONTRACTS, network_for
from crossgraft.testing.promises import Contract, declares_its_facts, is_written_and_read_again, keep_all, promise, require
from crossgraft.tune.methods import Method


@promise
def sorts_every_parameter_once(method: Method, *, classifier: Classifier | None = None) -> None:
    """Each parameter is trained or frozen, for a reason; the head is trained, what cannot be trained is frozen."""
    network = network_for(method, classifier)
    selection = method.select(network)
    named = sorted([*selection.trained, *selection.frozen])
    expected = sorted(name for name, _ in network.named_parameters())
    wrong = sorted({name for name in [*named, *expected] if named.count(name) != expected.count(name)})
    require(not wrong, method, f"it leaves out, makes up or sorts twice: {', '.join(wrong)}")
    silent = [name for name, reason in {**selection.trained, **selection.frozen}.items() if not reason.strip()]
    require(not silent, method, f"it gives no reason for {', '.join(silent)}")
    head = [name for name in selection.frozen if name.startswith("head.")]
    require(not head, method, f"it freezes {', '.join(head)}, which starts from random numbers")
    untrainable = [name for name in selection.trained if name in network.untrainable]
    require(not untrainable, method, f"it trains {', '.join(untrainable)}, which cannot be trained")


@promise
def names_modules_that_exist(method: Method, *, classifier: Classifier | None = None) -> None:
    """Every name in ``train_mode`` is a module of the network."""
    network = network_for(method, classifier)
    known = {name for name, _ in network.named_modules()}
    strangers = [name for name in method.select(network).train_mode if name not in known]
    require(not strangers, method, f"train_mode names {', '.join(strangers)}, which the network does not have")


@promise
def only_looks_at_the_network(method: Method, *, classifier: Classifier | None = None) -> None:
    """``select`` changes no weight, no ``requires_grad`` and no mode."""
    network = network_for(method, classifier)
    before = copy.deepcopy(network.state_dict())
    flags = [parameter.requires_grad for parameter in network.parameters()]
    modes = [module.training for module in network.modules()]
    method.select(network)
    moved = [name for name, value in network.state_dict().items() if not torch.equal(value, before[name])]
    require(not moved, method, f"select changes {', '.join(moved)}")
    require(flags == [p.requires_grad for p in network.parameters()], method, "select changes requires_grad")
    require(modes == [module.training for module in network.modules()], method, "select changes modes")


@promise
def keeps_features_where_it_says_so(method: Method, *, classifier: Classifier | None = None) -> None:
    """With ``features_are_fixed``, nothing of the body is trained or in train mode: features are computed only once."""
    if not method.features_are_fixed:
        return
    selection = method.select(network_for(method, classifier))
    moving = [name for name in selection.trained if not name.startswith("head.")]
    moving += [name or "the whole network" for name in selection.train_mode if name.partition(".")[0] != "head"]
    require(not moving, method, f"features_are_fixed, but {', '.join(moving)} would change them")


METHOD_CONTRACTS: tuple[Contract, ...] = (
    declares_its_facts,
    is_written_and_read_again,
    sorts_every_parameter_once,
    names_modules_that_exist,
    only_looks_at_the_network,
    keeps_features_where_it_says_so,
    *ADAPTER_CONTRACTS,
)
"""All promises of a method."""


def check_method(method: Method, *, classifier: Classifier | None = None) -> None:
    """Check all promises of one method.

    Args:
        method: Method with its options.
        classifier: Classifier in place of the small example; stays as it is.

    Raises:
        ContractError: The first promise that is broken, or the kind of plug-in that it is not.
    """
    keep_all(METHOD_CONTRACTS, method, Method, classifier=classifier)
