"""What plug-ins of all slots promise, and the error of a promise that is broken."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from crossgraft.registry import Registry
from crossgraft.tune.choice import choose, spell

Contract = Callable[..., None]


class ContractError(AssertionError):
    """A plug-in breaks a promise; the message says which, and with which numbers."""


def require(kept: bool, plugin: object, what: str) -> None:
    """Raise ``ContractError`` with the name of the plug-in unless the promise is ``kept``."""
    if not kept:
        raise ContractError(f"{getattr(plugin, 'name', type(plugin).__name__)}: {what}.")


def declares_its_facts(plugin: Any, **extra: Any) -> None:
    """It has a name in snake_case, a title, a citation and a docstring of its own."""
    del extra
    own_docstring = type(plugin).__dict__.get("__doc__") or ""
    written = not own_docstring.startswith(f"{type(plugin).__name__}(")  # what dataclass makes up where there is none
    facts = {name: getattr(plugin, name, "") for name in ("name", "title", "citation")}
    facts["docstring"] = own_docstring if written else ""
    missing = [name for name, fact in facts.items() if not str(fact).strip()]
    require(not missing, plugin, f"it has no {', no '.join(missing)}")
    name = plugin.name
    require(name.isidentifier() and name == name.lower(), plugin, "its name is not in snake_case")


def is_written_and_read_again(plugin: Any, **extra: Any) -> None:
    """It is a dataclass, and the text that stands for it in records makes an equal one."""
    del extra
    require(dataclasses.is_dataclass(plugin), plugin, "it is no dataclass, so it has no options by name")
    registry: Registry[type[Any]] = Registry("plug-in", group="crossgraft.testing", plugin_type=type)
    registry.add(plugin.name, type(plugin))
    spelling = spell(plugin)
    again = choose(registry, spelling)
    require(again == plugin, plugin, f"{spelling} stands for {plugin} and makes {again}")


def leaves_the_global_random_state(plugin: object, call: Callable[[], object]) -> None:
    """``call`` draws from its generator alone: torch's global random numbers neither move nor matter."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        before = torch.get_rng_state()
        call()
        kept = torch.equal(before, torch.get_rng_state())
    require(kept, plugin, "it draws from the global random state instead of its generator")
