"""Put adapters into a classifier, switch them off, make them part of its weights, take them out."""

from __future__ import annotations

import copy
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from crossgraft.errors import UsageError
from crossgraft.models.adapters._adapter import Adapter, AdapterRecipe
from crossgraft.models.adapters.registry import ADAPTERS
from crossgraft.models.modes import modes_kept
from crossgraft.models.taps import watch
from crossgraft.seeding import torch_generator

if TYPE_CHECKING:
    from crossgraft.models.classifier import Classifier


def add_adapters(classifier: Classifier, recipes: Sequence[AdapterRecipe], *, seed: int) -> None:
    """Insert adapters with their first weights; ``classifier`` gives what it gave, and its recipe names them.

    Args:
        classifier: Changed in place.
        recipes: One an adapter.
        seed: Of their weights, one stream each.

    Raises:
        UsageError: There is nothing to insert, a host has such an adapter already, or can not have it.
    """
    if not recipes:
        raise UsageError(f"There is no layer of {classifier.recipe.name} to adapt.")
    made = [_make(classifier, recipe) for recipe in recipes]
    for recipe, adapter in zip(recipes, made, strict=True):
        adapter.draw(torch_generator(seed, "adapter", recipe.kind, recipe.host))
        _insert(classifier.get_submodule(recipe.host), adapter)
    classifier.recipe = replace(classifier.recipe, adapters=(*classifier.recipe.adapters, *recipes))
    classifier.eval()


def put_adapters_back(classifier: Classifier) -> None:
    """Insert the adapters that the recipe of a new classifier names; their weights are to be loaded.

    Raises:
        AttributeError: The network has no such host.
    """
    for recipe in classifier.recipe.adapters:
        adapter = _make(classifier, recipe)
        adapter.draw(torch_generator(0, "adapter", recipe.kind, recipe.host))
        _insert(classifier.get_submodule(recipe.host), adapter)


def _make(classifier: Classifier, recipe: AdapterRecipe) -> Adapter:
    host = classifier.get_submodule(recipe.host)
    if hasattr(host, recipe.kind):
        raise UsageError(
            f"{recipe.host} has a part called {recipe.kind} already. Start from a network without adapters."
        )
    return ADAPTERS.get(recipe.kind).make(host, recipe.options, name=recipe.host)


def _insert(host: nn.Module, adapter: Adapter) -> None:
    host.add_module(adapter.kind, adapter.train(host.training))
    adapter.watch(host)


def adapters_of(network: nn.Module) -> dict[str, tuple[nn.Module, Adapter]]:
    """Name of each adapter (``body.blocks.0.attn.qkv.lora``) → its host and itself."""
    found = {name: module for name, module in network.named_modules() if isinstance(module, Adapter)}
    return {name: (network.get_submodule(name.rpartition(".")[0]), adapter) for name, adapter in found.items()}


@contextmanager
def without_adapters(network: nn.Module) -> Generator[None]:
    """Inside the block ``network`` gives what it gave before adapters were inserted, bit for bit.

    Raises:
        UsageError: They are part of its weights now.
    """
    adapters = [adapter for _, adapter in adapters_of(network).values()]
    if any(adapter.merged for adapter in adapters):
        raise UsageError("The adapters are merged into the weights. Call unmerge_adapters first.")
    before = [adapter.enabled for adapter in adapters]
    for adapter in adapters:
        adapter.enabled = False
    try:
        yield
    finally:
        for adapter, enabled in zip(adapters, before, strict=True):
            adapter.enabled = enabled


def why_not_mergeable(network: nn.Module) -> str | None:
    """Why the adapters of ``network`` can not become part of its weights; None: they can, or there are none."""
    kinds = {type(adapter) for _, adapter in adapters_of(network).values()}
    reasons = [f"{kind.kind}: {reason}" for kind in kinds if (reason := kind.why_not_mergeable()) is not None]
    return "; ".join(sorted(reasons)) or None


def merge_adapters(network: nn.Module) -> None:
    """Make adapters part of the weights, so that they cost nothing in a forward pass; ``unmerge_adapters`` is bitwise exact.

    The outputs stay the same up to rounding.

    Raises:
        UsageError: One of them can not be merged; nothing was changed.
    """
    reason = why_not_mergeable(network)
    if reason is not None:
        raise UsageError(f"Not all adapters can be merged. {reason}.")
    for host, adapter in adapters_of(network).values():
        adapter.merge(host)


def unmerge_adapters(network: nn.Module) -> None:
    """Put the weights from before ``merge_adapters`` back, bit for bit."""
    for host, adapter in adapters_of(network).values():
        adapter.unmerge(host)


@torch.no_grad()
def merged_copy(classifier: Classifier) -> Classifier:
    """A classifier without adapters that gives the same up to rounding: the pretrained architecture with other weights.

    Raises:
        UsageError: One of them can not be merged.

    Cost: a second set of weights.
    """
    twin = copy.deepcopy(classifier)
    merge_adapters(twin)
    for name, (host, adapter) in adapters_of(twin).items():
        adapter.merged = False  # it is taken out; the host keeps the weight
        _take_out(host, name.rpartition(".")[2])
    twin.recipe = replace(twin.recipe, adapters=())
    return twin


def bare_copy(classifier: Classifier) -> Classifier:
    """A classifier without adapters: the pretrained weights and the head as it is.

    Raises:
        UsageError: They are part of its weights now.

    Cost: a second set of weights.
    """
    twin = copy.deepcopy(classifier)
    for name, (host, adapter) in adapters_of(twin).items():
        if adapter.merged:
            raise UsageError("The adapters are merged into the weights. Call unmerge_adapters first.")
        _take_out(host, name.rpartition(".")[2])
    twin.recipe = replace(twin.recipe, adapters=())
    return twin


def _take_out(host: nn.Module, name: str) -> None:
    adapter = getattr(host, name)
    for module in host.modules():
        for hooks in (module._forward_hooks, module._forward_pre_hooks):
            for key in [key for key, hook in hooks.items() if getattr(hook, "__self__", None) is adapter]:
                del hooks[key]
    delattr(host, name)


def called_modules(classifier: Classifier) -> set[str]:
    """Names of the modules that a forward pass calls; a layer whose weight is taken from outside is not among them.

    Cost: one forward pass of one image.
    """
    called: set[str] = set()
    with watch(dict(classifier.named_modules()), lambda name, _: called.add(name), of="input"):
        look(classifier)
    return called


@torch.no_grad()
def look(classifier: Classifier) -> Tensor:
    """The features (1, d) of one drawn image: one forward pass in eval mode; modes stay."""
    p, weight = classifier.preprocessing, classifier.head.weight
    image = torch.randn(1, p.channels, p.height_pixels, p.width_pixels, generator=torch_generator(0, "look"))
    with modes_kept(classifier):
        return classifier.eval().features(image.to(weight))
