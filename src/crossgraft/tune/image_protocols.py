"""What the feed knows of plug-ins that act on images and batches; each kind inherits from one of these."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
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

        A batch comes in parts, one call each, with the same generator; ``images`` stay as they are. One that draws apart
        (``DrawsApart``) sees a whole batch at once on a GPU.
        """
        ...


Drawn = Mapping[str, Tensor]
"""Numbers by what they are for, on the CPU; one row per image."""


@runtime_checkable
class DrawsApart(Protocol):
    """An augmentation that draws numbers first, and uses them then: on a GPU the whole batch is augmented at once.

    A class that inherits from this one needs ``draw`` and ``apply`` in the place of ``__call__``.
    """

    def __call__(self, images: UnitImages, generator: torch.Generator) -> UnitImages:
        """What is drawn for so many images of this size, applied to them."""
        height, width = images.shape[2:]
        return self.apply(images, self.draw(len(images), height, width, generator))

    @abstractmethod
    def draw(self, num_images: int, height: int, width: int, generator: torch.Generator) -> Drawn:
        """The numbers for so many images of this size in pixels."""
        ...

    @abstractmethod
    def apply(self, images: UnitImages, drawn: Drawn) -> UnitImages:
        """Varied images, which stay where they are; ``drawn`` may be of several calls of ``draw``, row by row."""
        ...


def is_identity(augmentation: Augmentation) -> bool:
    """Whether images stay as they are."""
    return getattr(augmentation, "is_identity", False)


Images = Float[Tensor, "batch channels height width"]
SoftTargets = Float[Tensor, "batch num_classes"]


@runtime_checkable
class BatchTransform(Protocol):
    """One change of a batch; a frozen dataclass whose fields are its options.

    A class that inherits from this one needs no more than its name, title, citation, options and ``__call__``; several labels
    per image are then refused.

    A class that says ``mixes_images = True`` mixes images with each other.

    Attributes:
        name: Name on the command line and in tables.
        title: Title in print.
        citation: The paper that defines it.
        accepts_multi_label: Whether targets with several labels per image keep a meaning.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    accepts_multi_label: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, images: Images, targets: SoftTargets, generator: torch.Generator) -> tuple[Images, SoftTargets]:
        """New images and targets of the same shapes; the inputs stay as they are.

        The batch is the whole one of all processes, so that the result does not depend on their number.
        """
        ...
