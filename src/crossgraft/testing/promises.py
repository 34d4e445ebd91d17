"""What plug-ins of all slots promise, and the error of a promise that is broken."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

from crossgraft.choice import choose, spell
from crossgraft.errors import ContractError as ContractError
from crossgraft.registry import Registry

Contract = Callable[..., None]


def promise(contract: Contract) -> Contract:
    """Let every error of a contract name it, and say what it asks for."""
    sentence = " ".join((inspect.getdoc(contract) or "").partition("\n\n")[0].split())
    promised = f"Promise {contract.__name__}: {sentence}"

    @functools.wraps(contract)
    def named(plugin: object, **extra: Any) -> None:
        try:
            contract(plugin, **extra)
        except ContractError as error:
            raise ContractError(f"{error} {promised}") from error.__cause__
        except Exception as error:  # whatever the code of a plug-in raises is what was found
            message = " ".join(str(error).split())
            raise ContractError(f"{_name(plugin)}: it raises {type(error).__name__}: {message} {promised}") from error

    return named


def require(kept: bool, plugin: object, what: str) -> None:
    """Raise ``ContractError`` with the name of the plug-in unless the promise is ``kept``."""
    if not kept:
        raise ContractError(f"{_name(plugin)}: {what}.")


def keep_all(contracts: Sequence[Contract], plugin: object, base: type, **extra: Any) -> None:
    """Check one promise after the other.

    Args:
        contracts: The promises of the slot.
        plugin: Plug-in with its options.
        base: What the slot asks for, with defaults for all that a plug-in need not say.
        extra: Handed on to each contract.

    Raises:
        ContractError: The plug-in is of another kind, or breaks a promise; the first one is named.
    """
    where = f"{base.__module__.partition('._')[0]}.{base.__name__}"
    if isinstance(plugin, type):
        raise ContractError(f"{plugin.__name__} is a class. Check one with its options: {plugin.__name__}().")
    if not isinstance(plugin, base):
        declared = {**vars(base), **inspect.get_annotations(base)}
        missing = [name for name in declared if not name.startswith("_") and not hasattr(plugin, name)]
        lacks = f": it has no {', no '.join(missing)}" if missing else ""
        raise ContractError(f"{_name(plugin)} is no {base.__name__}{lacks}. Let its class inherit from {where}.")
    for contract in contracts:
        contract(plugin, **extra)


def _name(plugin: object) -> str:
    return str(getattr(plugin, "name", None) or getattr(plugin, "__name__", type(plugin).__name__))


@promise
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


@promise
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
