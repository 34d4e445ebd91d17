"""What the engine knows of feature transforms, which change what layers give in the forward pass of a training step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from crossgraft.models.classifier import Classifier
from crossgraft.tune.protocols import ForwardStart


def _as_it_is(tensor: Tensor) -> Tensor:
    return tensor


@dataclass(frozen=True)
class TransformStart(ForwardStart):
    """What a feature transform may know before the images of a step go through the network.

    Attributes:
        num_images: Images of this process that count: all of ``places``, or none of the one that a process without a share
            looks at.
        sum_over_processes: Adds up a tensor over the processes. Every process must call it, as often and in the same order.
    """

    num_images: int = 0
    sum_over_processes: Callable[[Tensor], Tensor] = _as_it_is

    def of_whole_batch(self, rows: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch_size ..."]:
        """One row per image of this process → the rows of all processes, without the graph."""
        mine = rows.detach()[: self.num_images]
        whole = mine.new_zeros(self.batch_size, *mine.shape[1:])
        whole[self.places[: self.num_images].to(mine.device)] = mine
        return self.sum_over_processes(whole)


@runtime_checkable
class FeatureTransform(Protocol):
    """One change of feature maps while training; a dataclass whose fields are its options.

    It acts on the network through hooks, which ``attach`` puts there and ``detach`` takes away, so that nothing of it is in the
    saved model; it adds no term to the loss and learns nothing. It is armed for the forward pass of a step alone: between
    ``before_forward`` and ``after_forward``. All numbers come from the generator that it is given, so that a resumed run, and one
    of several processes, draws the same.

    A class that inherits from this one needs no more than its name, title, citation, options, ``attach``, ``before_forward``,
    ``after_forward`` and ``detach``. One that can say which layers it changes says so by ``findings``.

    Attributes:
        name: On the command line and in tables.
        title: In print.
        citation: The paper that defines it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]

    @abstractmethod
    def attach(self, classifier: Classifier) -> None:
        """Put hooks on layers of ``classifier``, which does what it did before.

        Raises:
            UsageError: The network has no place for it; the message says why.
            UnknownNameError: It has no layer of this name.
        """
        ...

    @abstractmethod
    def before_forward(self, start: TransformStart) -> None:
        """The forward pass that follows is that of a training step; ``start.generator`` is new, and the same in every process."""
        ...

    @abstractmethod
    def after_forward(self) -> None:
        """It is over; other forward passes are left alone."""
        ...

    @abstractmethod
    def detach(self) -> None:
        """Take away everything that ``attach`` left on the network."""
        ...
