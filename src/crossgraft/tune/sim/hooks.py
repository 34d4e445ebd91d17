"""Hooks that copies of a network do not take along, and that are never written to a file."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from crossgraft.errors import UsageError


class Hook:
    """Tells ``notice`` of the calls of one module, where ``when`` says so.

    A copy of the module has none. What ``torch.compile`` makes of the network calls it uncompiled.

    Args:
        module: Whose calls count.
        notice: Called with arguments, keywords and the output, which is None before the call.
        when: Asked each time.
    """

    def __init__(self, module: nn.Module, notice: Callable[..., object], *, when: Callable[[], bool]) -> None:
        self._module, self._notice, self._when = module, notice, when

    def __call__(self, module: Any, arguments: Any, keywords: Any, output: Any = None) -> None:
        """What torch calls before or after the module."""
        self._tell(module, arguments, keywords, output)  # pyright: ignore[reportCallIssue] - torch's decorator has no types

    @property
    def __name__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What ``torch.jit.script`` asks of a hook that it is about to write down.

        Raises:
            UsageError: Always, as one that says that there is no such name.
        """
        raise _ScriptedError(str(carries_reconstructors("This network")))

    @torch.compiler.disable
    def _tell(self, module: nn.Module, arguments: Any, keywords: Any, output: Any) -> None:
        if module is self._module and self._when():
            self._notice(arguments, keywords, output)

    def __deepcopy__(self, memo: dict[Any, Any]) -> _Silent:
        twin = memo.get(id(self._module))
        if isinstance(twin, nn.Module):
            memo.setdefault(_Copying, _Copying()).twins.append(twin)
        return _Silent()

    def __reduce__(self) -> Any:
        raise carries_reconstructors("This network")


class _ScriptedError(UsageError, AttributeError):
    """Also an ``AttributeError``, so that whoever only asks whether there is a name gets an answer."""


class _Silent:
    """What a copy has in its place until it is finished."""

    def __call__(self, *_: Any) -> None:
        return None


class _Copying:
    """Lies in the memo of a copy, which goes when the copy is finished: only then can hooks be taken off the twins."""

    def __init__(self) -> None:
        self.twins: list[nn.Module] = []

    def __del__(self) -> None:
        for twin in self.twins:
            take_hooks_off(twin)


def take_hooks_off(module: nn.Module) -> None:
    """Those of this module, with or without effect."""
    for hooks in (module._forward_pre_hooks, module._forward_hooks):
        for number in [number for number, hook in hooks.items() if isinstance(hook, Hook | _Silent)]:
            del hooks[number]
            module._forward_pre_hooks_with_kwargs.pop(number, None)
            module._forward_hooks_with_kwargs.pop(number, None)


def weakly(method: Callable[..., object]) -> Callable[..., None]:
    """Calls a method while its object lives, and does not keep it alive."""
    weak = weakref.WeakMethod(method)

    def call(*arguments: object) -> None:
        if (alive := weak()) is not None:
            alive(*arguments)

    return call


def carries_reconstructors(what: str) -> UsageError:
    """The error for writing a network while ρSIM is on it."""
    return UsageError(
        f"{what} carries reconstructors of rho_sim, which turn the features of layers back into what the layers saw: with them, "
        "others come closer to the training images. Take them off first: detach() of RhoSim, or strip(model) after init_SIM."
    )
