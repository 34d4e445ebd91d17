"""What an adapter is: a small trained part beside a layer or a block whose own weights stay as they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from crossgraft.errors import UsageError


@dataclass(frozen=True)
class AdapterRecipe:
    """What builds one adapter again, but its weights.

    Attributes:
        kind: Name in the registry of adapters.
        host: The layer or block that it stands beside (``body.blocks.0.attn.qkv``).
        options: Options of its class, as plain values.
    """

    kind: str
    host: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Adapter(nn.Module, ABC):
    """A child module of its host, called by its ``kind``, that adds something to what the host gives, or replaces it.

    The parameters of the host keep their names and their values. The change is made by hooks that are methods of the adapter,
    so that host and adapter are copied and pickled together.

    Attributes:
        kind: Name in the registry, and of the child module.
        enabled: Off: the host gives what it gave without the adapter.
        merged: The addition is part of the host's own weights now.
    """

    kind: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.enabled = True
        self.merged = False

    @classmethod
    @abstractmethod
    def make(cls, host: nn.Module, options: Mapping[str, Any], *, name: str) -> Adapter:
        """An adapter that fits ``host``; the host stays as it is.

        Args:
            host: The layer or block.
            options: Options from a recipe.
            name: Name of the host, for messages.

        Raises:
            UsageError: It cannot stand beside such a host.
        """

    @abstractmethod
    def draw(self, generator: torch.Generator) -> None:
        """Draw the first weights, with which the adapter adds zero, unless its class says what it does instead."""

    @abstractmethod
    def watch(self, host: nn.Module) -> None:
        """Register the hooks."""

    @property
    def is_on(self) -> bool:
        """Whether it adds something of its own in a forward pass.

        Raises:
            UsageError: It would have to be trained while it is part of the host's weights.
        """
        if self.merged and self.training:
            raise UsageError("The adapters are merged into the weights and cannot be trained. Call unmerge_adapters first.")
        return self.enabled and not self.merged

    @property
    def adds_nothing(self) -> bool:
        """Whether the host gives what it gives without the adapter, whatever goes in; False also where that is not known."""
        return not self.is_on

    @classmethod
    def why_not_mergeable(cls) -> str | None:
        """Why the addition cannot become part of the host's weights; None: it can."""
        return None

    def merge(self, host: nn.Module) -> None:
        """Make the addition part of the host's weights; ``unmerge`` gives them back bit for bit.

        Raises:
            UsageError: That is not possible for this kind.
        """
        raise UsageError(f"{self.kind} cannot be merged: {self.why_not_mergeable()}.")

    def unmerge(self, host: nn.Module) -> None:
        """Undo ``merge``."""

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        if self.merged:
            raise UsageError(
                "The adapters are merged into the weights, so that saving both would add them twice when they are read. Call "
                "unmerge_adapters first, or save what merged_copy gives."
            )
        super()._save_to_state_dict(destination, prefix, keep_vars)

    def num_parameters(self) -> int:
        """Numbers that are trained."""
        return sum(parameter.numel() for parameter in self.parameters())


def in_type_of(drawn: Tensor, parameter: Tensor) -> None:
    """Write what was drawn in float32 into a parameter of any type and device."""
    with torch.no_grad():
        parameter.copy_(drawn)
