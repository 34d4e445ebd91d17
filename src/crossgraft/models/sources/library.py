"""What a library of architectures with published weights can do; timm and torchvision are two."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from torch import Tensor, nn

from crossgraft.errors import CrossgraftError, UsageError
from crossgraft.models.building_limits import building_limits, refuse_large_numbers
from crossgraft.models.sources.architecture_arguments import WRONG_VALUES, refuse_other_arguments
from crossgraft.paths import shortened
from crossgraft.progress import Reporter
from crossgraft.types import Preprocessing

LibraryName = Literal["timm", "torchvision"]


class ModelLibrary(ABC):
    """One name an architecture, ``architecture.tag`` for one of several published weights.

    Everywhere, ``source`` is what a zoo entry says: ``resnet18``, ``resnet18.a1_in1k``, ``torchvision:resnet18``.

    Attributes:
        name: Name of the library.
    """

    name: ClassVar[LibraryName]

    @abstractmethod
    def knows(self, source: str) -> bool:
        """Whether the library has this architecture, whatever its tag."""

    @abstractmethod
    def check(self, source: str) -> None:
        """Whether architecture and tag are known.

        Raises:
            UnknownNameError: With the nearest names.
        """

    @abstractmethod
    def describe(self, source: str, kwargs: Mapping[str, object]) -> dict[str, object]:
        """What the library says about input and weights, in timm's words; builds nothing."""

    def build(self, source: str, kwargs: Mapping[str, object]) -> nn.Module:
        """The network with random weights.

        Raises:
            UsageError: The architecture does not take these arguments, or one of them would do more than shape it.
            OutOfMemoryError: The network needs more memory than is available.
        """
        self.refuse_arguments(source, kwargs)
        try:
            with building_limits(source):
                return self.create(source, kwargs)
        except CrossgraftError:
            raise
        except WRONG_VALUES as error:
            raise self.cannot_build(source, kwargs, error) from error

    @abstractmethod
    def create(self, source: str, kwargs: Mapping[str, object]) -> nn.Module:
        """The network with random weights, by the library's own constructor."""

    def refuse_arguments(self, source: str, kwargs: Mapping[str, object]) -> None:
        """Let only arguments pass that shape a network, with numbers that networks have.

        Raises:
            UsageError: One of them would do something else, or is too large.
        """
        refuse_other_arguments(kwargs, where=f"the kwargs of {source}")
        refuse_large_numbers(kwargs, where=f"the kwargs of {source}")

    def cannot_build(self, source: str, kwargs: Mapping[str, object], error: Exception) -> UsageError:
        """The error for a constructor that fails."""
        arguments = shortened(", ".join(f"{key}={value!r}" for key, value in kwargs.items())) or "no arguments"
        return UsageError(
            f"{self.name} cannot build {source} with {arguments}: {error}. Check kwargs, or give source: package.module:factory."
        )

    @abstractmethod
    def build_pretrained(self, source: str, kwargs: Mapping[str, object], file: Path) -> nn.Module:
        """The network with the library's own weights from ``file``.

        Raises:
            UsageError: The architecture does not take these arguments.
            WeightsMismatchError: The file does not fit; all keys are listed.
        """

    @abstractmethod
    def find_weights(self, source: str, weights_dir: Path | None = None) -> Path | None:
        """The library's own weights on this machine, if they are there; ``source`` is known."""

    @abstractmethod
    def require_weights(
        self, source: str, weights_dir: Path | None = None, *, allow_download: bool, reporter: Reporter | None
    ) -> Path:
        """The library's own weights; downloaded only with ``allow_download``.

        Raises:
            MissingWeightsError: Not on this machine, and not allowed or not possible to download.
        """

    def adapt_state(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A state dict of an older version or of training, as the network of today names its tensors."""
        return dict(state)

    @abstractmethod
    def infer_num_classes(self, source: str, state: Mapping[str, Tensor]) -> int | None:
        """Outputs of the head in ``state``: 0 without a head, None when that cannot be told."""

    @abstractmethod
    def accept_input_size(
        self, module: nn.Module, preprocessing: Preprocessing, *, source: str, kwargs: Mapping[str, object]
    ) -> None:
        """Fit a network that was built with ``kwargs`` for one input size to another size; others need nothing.

        Raises:
            UsageError: The network cannot change its size.
        """
