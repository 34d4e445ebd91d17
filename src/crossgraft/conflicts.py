"""How a plug-in says what it does not go with, so that planning knows no plug-in by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class Situation(Protocol):
    """What a plug-in may ask about the training that it is planned for."""

    @property
    def task(self) -> str:
        """``multi-class``, ``binary`` or ``multi-label``."""
        ...

    @property
    def is_convolutional(self) -> bool:
        """Whether the network has more convolutions than the one that cuts an image into the tokens of a transformer."""
        ...

    @property
    def shows_plain_images(self) -> bool:
        """Whether every image is shown the same way every time: neither augmented nor mixed."""
        ...

    @property
    def mixes(self) -> bool:
        """Whether images are mixed with each other."""
        ...

    @property
    def changes_images(self) -> bool:
        """Whether images are augmented or mixed."""
        ...

    @property
    def draws_evenly(self) -> bool:
        """Whether rows are drawn evenly over the classes, and not each as often as any other."""
        ...

    @property
    def moves_batch_norms(self) -> bool:
        """Whether BatchNorm normalises with each batch, so that its kept statistics move."""
        ...

    @property
    def batch_norm(self) -> str:
        """``train``, ``frozen`` or ``adapt``: what BatchNorm normalises with."""
        ...

    @property
    def images_at_once(self) -> int:
        """Images of one micro-batch, over all processes."""
        ...

    @property
    def fewest_images(self) -> int:
        """Images that a process has at once, where it has fewest: its share of the smallest micro-batch of an epoch."""
        ...


@runtime_checkable
class HasConflicts(Protocol):
    """A plug-in that does not go with everything."""

    def conflicts(self, situation: Situation) -> str | None:
        """Why it cannot be used here, and what to do; None where it can."""
        ...


@runtime_checkable
class HasRemarks(Protocol):
    """A plug-in with something to be known before training."""

    def remarks(self, situation: Situation) -> Sequence[str]:
        """Sentences for the plan."""
        ...
