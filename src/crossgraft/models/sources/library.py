"""What a library of architectures with published weights can do; timm and torchvision are two."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from torch import Tensor, nn

from crossgraft.progress import Reporter
from crossgraft.types import Preprocessing

LibraryName = Literal["timm", "torchvision"]


@runtime_checkable
class ModelLibrary(Protocol):
    """One name an architecture, ``architecture.tag`` for one of several published weights.

    Everywhere, ``source`` is what a zoo entry says: ``resnet18``, ``resnet18.a1_in1k``, ``torchvision:resnet18``.

    Attributes:
        name: Name of the library.
    """

    name: LibraryName

    def knows(self, source: str) -> bool:
        """Whether the library has this architecture, whatever its tag."""
        ...

    def check(self, source: str) -> None:
        """Whether architecture and tag are known.

        Raises:
            UnknownNameError: With the nearest names.
        """
        ...

    def describe(self, source: str, kwargs: Mapping[str, object]) -> dict[str, object]:
        """What the library says about input and weights, in timm's words; builds nothing."""
        ...

    def build(self, source: str, kwargs: Mapping[str, object]) -> nn.Module:
        """The network with random weights.

        Raises:
            UsageError: The architecture does not take these arguments.
        """
        ...

    def build_pretrained(self, source: str, kwargs: Mapping[str, object], file: Path) -> nn.Module:
        """The network with the library's own weights from ``file``.

        Raises:
            UsageError: The architecture does not take these arguments.
            WeightsMismatchError: The file does not fit; all keys are listed.
        """
        ...

    def find_weights(self, source: str, weights_dir: Path | None = None) -> Path | None:
        """The library's own weights on this machine."""
        ...

    def require_weights(
        self, source: str, weights_dir: Path | None = None, *, allow_download: bool, reporter: Reporter | None
    ) -> Path:
        """The library's own weights; downloaded only with ``allow_download``.

        Raises:
            MissingWeightsError: Not on this machine, and not allowed or not possible to download.
        """
        ...

    def adapt_state(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A state dict of an older version or of training, as the network of today names its tensors."""
        ...

    def infer_num_classes(self, source: str, state: Mapping[str, Tensor]) -> int | None:
        """Outputs of the head in ``state``: 0 without a head, None when that cannot be told."""
        ...

    def accept_input_size(
        self, module: nn.Module, preprocessing: Preprocessing, *, source: str, kwargs: Mapping[str, object]
    ) -> None:
        """Fit a network that was built with ``kwargs`` for one input size to another size; others need nothing.

        Raises:
            UsageError: The network cannot change its size.
        """
        ...
