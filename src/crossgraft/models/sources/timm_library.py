"""timm as a ``ModelLibrary``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from torch import Tensor, nn

from crossgraft.models.sources.library import LibraryName
from crossgraft.models.sources.local_checkpoint import infer_num_classes
from crossgraft.models.sources.pretrained_files import find_pretrained, require_pretrained
from crossgraft.models.sources.timm_models import (
    accept_input_size,
    build_architecture,
    build_pretrained,
    check_architecture,
    is_architecture,
    pretrained_config,
)
from crossgraft.progress import Reporter
from crossgraft.types import Preprocessing


class TimmLibrary:
    """Ross Wightman's PyTorch image models."""

    name: LibraryName = "timm"

    def knows(self, source: str) -> bool:
        """Whether the architecture exists, whatever its tag."""
        return is_architecture(source)

    def check(self, source: str) -> None:
        """Refuse unknown architectures and tags with the nearest names."""
        check_architecture(source)

    def describe(self, source: str, kwargs: Mapping[str, object]) -> dict[str, object]:
        """The arguments ``img_size`` and ``in_chans`` of an architecture change the input that timm states."""
        said = pretrained_config(source)
        channels, height, width = cast("Sequence[int]", said.get("input_size", (3, 224, 224)))
        size = kwargs.get("img_size", (height, width))
        height, width = (size, size) if isinstance(size, int) else cast("Sequence[int]", size)
        return {**said, "input_size": (kwargs.get("in_chans", channels), height, width)}

    def build(self, source: str, kwargs: Mapping[str, object]) -> nn.Module:
        """The network with random weights."""
        return build_architecture(source, kwargs)

    def build_pretrained(self, source: str, kwargs: Mapping[str, object], file: Path) -> nn.Module:
        """The network with the published weights."""
        return build_pretrained(source, kwargs, file)

    def find_weights(self, source: str, weights_dir: Path | None = None) -> Path | None:
        """The published weights on this machine."""
        return find_pretrained(source, weights_dir)

    def require_weights(
        self, source: str, weights_dir: Path | None = None, *, allow_download: bool, reporter: Reporter | None
    ) -> Path:
        """The published weights, or the message that says where to get them."""
        return require_pretrained(source, weights_dir, allow_download=allow_download, reporter=reporter)

    def adapt_state(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """As they are: files of timm name their tensors as timm does today."""
        return dict(state)

    def infer_num_classes(self, source: str, state: Mapping[str, Tensor]) -> int | None:
        """Read off the shape of the head's weights."""
        return infer_num_classes(state, pretrained_config(source).get("classifier"))

    def accept_input_size(
        self, module: nn.Module, preprocessing: Preprocessing, *, source: str, kwargs: Mapping[str, object]
    ) -> None:
        """Fit position embeddings to the size, or refuse it."""
        stated = cast("tuple[int, int, int]", self.describe(source, kwargs)["input_size"])
        accept_input_size(module, preprocessing, name=source, stated=stated[1:])
