"""What is done to a single image of the training set, anew in every epoch."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

UnitImages = Float[Tensor, "batch channels height width"]
"""Resized images with values in [0, 1], before mean and standard deviation are applied."""


@runtime_checkable
class Augmentation(Protocol):
    """One way to vary images; a frozen dataclass whose fields are its options (``flip`` is one of all).

    A class that inherits from this one needs no more than its name, title, citation, options (``flip`` among them) and
    ``__call__``.

    A class that says ``is_identity = True`` leaves images as they are, so that their features can be computed once.

    Attributes:
        name: Name on the command line and in tables.
        title: Title in print.
        citation: Publication that describes it.
        flip: Whether images may be mirrored left to right (``--no-flip`` turns it off: a heart is on one side).
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]

    @property
    def flip(self) -> bool:
        """Whether images may be mirrored."""
        ...

    @abstractmethod
    def __call__(self, images: UnitImages, generator: torch.Generator) -> UnitImages:
        """Varied images of the same shape in [0, 1]; every image draws numbers of its own.

        A batch comes in parts, one call each, with the same generator; ``images`` stay as they are.
        """
        ...


def is_identity(augmentation: Augmentation) -> bool:
    """Whether images stay as they are."""
    return getattr(augmentation, "is_identity", False)
