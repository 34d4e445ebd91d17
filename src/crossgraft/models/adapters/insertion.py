"""Put adapters beside layers of a network, switch them off, make them part of its weights, take them out."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

from torch import nn

from crossgraft.errors import UsageError
from crossgraft.models.adapters._adapter import Adapter, AdapterRecipe
from crossgraft.models.adapters.adaptformer import AdaptFormerAdapter
from crossgraft.models.adapters.lora import LoraAdapter
from crossgraft.models.adapters.tsa import TaskSpecificAdapter
from crossgraft.registry import Registry
from crossgraft.seeding import torch_generator

ADAPTERS: Registry[type[Any]] = Registry("adapter", group="crossgraft.adapters", plugin_type=type, named_by="kind", facts=())
"""Every adapter that is installed: classes with ``make``."""
for _adapter in (LoraAdapter, AdaptFormerAdapter, TaskSpecificAdapter):
    ADAPTERS.add(_adapter.kind, _adapter)


def make_adapter(network: nn.Module, recipe: AdapterRecipe) -> Adapter:
    """The adapter of ``recipe``, not inserted yet and with weights that are not drawn.

    Raises:
        UsageError: The host has such an adapter already, or cannot have it.
        AttributeError: ``network`` has no such host.
    """
    host = network.get_submodule(recipe.host)
    if hasattr(host, recipe.kind):
        raise UsageError(f"{recipe.host} has a part called {recipe.kind} already. Start from a network without adapters.")
    return ADAPTERS.get(recipe.kind).make(host, recipe.options, name=recipe.host)


def insert_adapter(host: nn.Module, adapter: Adapter) -> None:
    """Put ``adapter`` beside ``host``, as its child and with its hooks."""
    host.add_module(adapter.kind, adapter.train(host.training))
    adapter.watch(host)


def rebuild_adapters(network: nn.Module, recipes: Iterable[AdapterRecipe]) -> None:
    """Insert the adapters of a saved network; their weights are to be loaded.

    Raises:
        AttributeError: The network has no such host.
    """
    for recipe in recipes:
        adapter = make_adapter(network, recipe)
        adapter.draw(torch_generator(0, "adapter", recipe.kind, recipe.host))
        insert_adapter(network.get_submodule(recipe.host), adapter)


def adapters_of(network: nn.Module) -> dict[str, tuple[nn.Module, Adapter]]:
    """Name of each adapter (``body.blocks.0.attn.qkv.lora``) → its host and itself."""
    adapters = {name: module for name, module in network.named_modules() if isinstance(module, Adapter)}
    return {name: (network.get_submodule(name.rpartition(".")[0]), adapter) for name, adapter in adapters.items()}


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
    """Why the adapters of ``network`` cannot become part of its weights; None: they can, or there are none."""
    kinds = {type(adapter) for _, adapter in adapters_of(network).values()}
    reasons = [f"{kind.kind}: {reason}" for kind in kinds if (reason := kind.why_not_mergeable()) is not None]
    return "; ".join(sorted(reasons)) or None


def merge_adapters(network: nn.Module) -> None:
    """Make adapters part of the weights, so that they cost nothing in a forward pass; ``unmerge_adapters`` is bitwise exact.

    The outputs stay the same up to rounding.

    Raises:
        UsageError: One of them cannot be merged; nothing was changed.
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


def take_out_adapter(host: nn.Module, name: str) -> None:
    """Remove the adapter ``name`` of ``host`` and its hooks."""
    adapter = getattr(host, name)
    for module in host.modules():
        for hooks in (module._forward_hooks, module._forward_pre_hooks):
            for key in [key for key, hook in hooks.items() if getattr(hook, "__self__", None) is adapter]:
                del hooks[key]
    delattr(host, name)
