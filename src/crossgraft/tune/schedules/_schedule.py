"""What a schedule of the learning rate is, and what it may ask about the training."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable


@dataclass(frozen=True)
class Steps:
    """How long a training is.

    Attributes:
        total: Steps in all.
        warmup: Steps of warm-up, fewer than in all.
        per_epoch: Steps of an epoch.
    """

    total: int
    warmup: int
    per_epoch: int


@runtime_checkable
class Schedule(Protocol):
    """How the learning rate falls after warm-up; a frozen dataclass whose fields are its options.

    A class that inherits from this one needs no more than its name, title, citation, options and ``share``.

    Attributes:
        name: Name on the command line and in tables.
        title: Title in print.
        citation: Publication that describes it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]

    @abstractmethod
    def share(self, step: int, steps: Steps) -> float:
        """Share of the largest learning rate, in [0, 1].

        Args:
            step: From ``steps.warmup`` to ``steps.total - 1``.
            steps: Length of the training.
        """
        ...

    def beyond(self, epochs: int) -> str | None:
        """What of it a training of so many epochs never reaches, in words; None where it reaches all."""
        return None
