"""What is done to a batch of images and targets, after augmentation and before the network."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

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
