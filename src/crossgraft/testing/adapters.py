"""What a method promises that trains adapters: they begin as nothing, can be switched off, merged, saved, and train alone.

A method without adapters keeps all of it.
"""

from __future__ import annotations

import copy
import functools

import torch
from torch import Tensor

from crossgraft.errors import UsageError
from crossgraft.models.adapted import merged_copy
from crossgraft.models.adapters import adapters_of, merge_adapters, unmerge_adapters, without_adapters
from crossgraft.models.classifier import Classifier, rebuild_classifier
from crossgraft.seeding import torch_generator
from crossgraft.testing.example_networks import ExampleKind, example_classifier, example_network
from crossgraft.testing.promises import Contract, leaves_the_global_random_state, promise, require
from crossgraft.tune.methods import AddsAdapters, Method, put_adapters_in

_ROUNDING = 1e-5
"""Error of logits of about 1, after the weights were rounded once to float32."""


def _of_adapters(contract: Contract) -> Contract:
    """``contract``, which a method without adapters keeps."""

    @functools.wraps(contract)
    def checked(method: Method, *, classifier: Classifier | None = None) -> None:
        if isinstance(method, AddsAdapters):
            contract(method, classifier=classifier)

    return checked


def network_for(method: Method, classifier: Classifier | None = None) -> Classifier:
    """A copy of ``classifier``, or the first example that has a place for the method's adapters, with these in it."""
    if classifier is not None:
        network = copy.deepcopy(classifier)
        if not adapters_of(network):
            put_adapters_in(method, network, seed=0)
        return network
    return _example(method)[1]


@_of_adapters
@promise
def adds_nothing_at_first(method: Method, *, classifier: Classifier | None = None) -> None:
    """With its first weights a network gives the same bits as without; with others it gives something else."""
    network = network_for(method, classifier)
    images = _images(network)
    with without_adapters(network):
        before = network(images)
    require(torch.equal(network(images), before), method, "its first weights change what the network gives")
    _move_adapters(network)
    adapters = [adapter for _, adapter in adapters_of(network).values()]
    require(not all(adapter.adds_nothing for adapter in adapters), method, "its adapters say that other weights add nothing")
    require(not torch.equal(network(images), before), method, "other weights of its adapters change nothing")


@_of_adapters
@promise
def is_switched_off(method: Method, *, classifier: Classifier | None = None) -> None:
    """With its adapters off, whatever their weights, the network gives the bits that it gave without them."""
    bare = copy.deepcopy(classifier) if classifier is not None else example_classifier(_example(method)[0])
    network = network_for(method, classifier)
    _move_adapters(network)
    images = _images(network)
    with without_adapters(network):
        off = network(images)
    if not adapters_of(bare):
        require(torch.equal(off, bare(images)), method, "with adapters off the network is not what it was")
    require(not torch.equal(network(images), off), method, "its adapters stay off")


@_of_adapters
@promise
def merges_or_says_why_not(method: Method, *, classifier: Classifier | None = None) -> None:
    """Merged weights give the same up to rounding, unmerging gives the same bits back; or there is a reason."""
    network = network_for(method, classifier)
    _move_adapters(network)
    images, before = _images(network), copy.deepcopy(network.state_dict())
    expected = network(images)
    try:
        merge_adapters(network)
    except UsageError:
        return
    merged = network(images)
    require(_close(merged, expected), method, "merging changes what the network gives")
    require(_close(_merged_copy_of(network)(images), expected), method, "a merged copy gives something else")
    unmerge_adapters(network)
    after = network.state_dict()
    changed = [name for name, value in before.items() if not torch.equal(value, after[name])]
    require(not changed, method, f"unmerging does not give back {', '.join(changed)}")


def _merged_copy_of(network: Classifier) -> Classifier:
    """A merged copy, also of a network that is merged now."""
    twin = copy.deepcopy(network)
    unmerge_adapters(twin)
    return merged_copy(twin)


@_of_adapters
@promise
def comes_back_from_its_recipe(method: Method, *, classifier: Classifier | None = None) -> None:
    """The recipe builds the network again, and its weights fit and give the same bits; a copy, too."""
    network = network_for(method, classifier)
    _move_adapters(network)
    images = _images(network)
    expected = network(images)
    require(torch.equal(copy.deepcopy(network)(images), expected), method, "a copy gives something else")
    if classifier is None:
        again = rebuild_classifier(network.recipe.to_json(), network=example_network(_example(method)[0]))
        again.load_state_dict(network.state_dict())
        require(torch.equal(again(images), expected), method, "what its recipe builds gives something else")


@_of_adapters
@promise
def trains_adapters_and_head_alone(method: Method, *, classifier: Classifier | None = None) -> None:
    """Nothing else of the network is trained or in train mode, so that it is always there with adapters off."""
    network = network_for(method, classifier)
    selection = method.select(network)
    others = [name for name in selection.trained if not name.startswith("head.")]
    strangers = sorted(set(others) ^ network.adapter_parameters)
    require(not strangers, method, f"it trains more or less than its adapters: {', '.join(strangers)}")
    inside = {name for name, _ in network.named_modules() if name.startswith(tuple(adapters_of(network)))}
    modes = [name for name in selection.train_mode if name != "head" and name not in inside]
    require(not modes, method, f"it puts {', '.join(modes)} into train mode, which is no adapter")


@promise
def draws_from_its_seed_alone(method: Method, *, classifier: Classifier | None = None) -> None:
    """The same seed gives the same adapters, another one others; global random numbers do not matter."""
    if not isinstance(method, AddsAdapters) or classifier is not None:
        return
    kind, first = _example(method)
    again, reseeded = example_classifier(kind), example_classifier(kind)
    leaves_the_global_random_state(method, lambda: method.add_adapters(again, seed=0))
    method.add_adapters(reseeded, seed=1)
    states = [network.state_dict() for network in (first, again, reseeded)]
    names = first.adapter_parameters
    require(all(torch.equal(states[0][name], states[1][name]) for name in names), method, "one seed gives two beginnings")
    same = all(torch.equal(states[0][name], states[2][name]) for name in names)
    require(not same, method, "another seed gives the same beginning")


ADAPTER_CONTRACTS: tuple[Contract, ...] = (
    adds_nothing_at_first,
    is_switched_off,
    merges_or_says_why_not,
    comes_back_from_its_recipe,
    trains_adapters_and_head_alone,
    draws_from_its_seed_alone,
)
"""All promises of a method that adds adapters."""


def _example(method: Method) -> tuple[ExampleKind, Classifier]:
    """The first example that the method accepts; the last one raises what it refuses."""
    network = example_classifier("convolutions")
    try:
        put_adapters_in(method, network, seed=0)
    except UsageError:
        network = example_classifier("transformer")
        put_adapters_in(method, network, seed=0)
        return "transformer", network
    return "convolutions", network


def _images(classifier: Classifier) -> Tensor:
    p = classifier.preprocessing
    random = torch_generator(0, "adapter images")
    return torch.randn(3, 3, p.height_pixels, p.width_pixels, generator=random).to(classifier.head.weight)


def _move_adapters(classifier: Classifier) -> None:
    """As training would, and enough to be seen."""
    random = torch_generator(0, "moved adapters")
    with torch.no_grad():
        for _, adapter in adapters_of(classifier).values():
            for parameter in adapter.parameters():
                parameter.add_(torch.randn(parameter.shape, generator=random).to(parameter), alpha=0.2)


def _close(actual: Tensor, expected: Tensor) -> bool:
    largest = max(1.0, float(expected.detach().abs().max()))
    return bool((actual - expected).detach().abs().max() <= _ROUNDING * largest)
