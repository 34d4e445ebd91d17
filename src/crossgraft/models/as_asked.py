"""A backbone as the options of a verb ask for it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from crossgraft.models.backbone import Backbone
from crossgraft.models.load import load_backbone
from crossgraft.models.spec import ModelSpec
from crossgraft.progress import Reporter
from crossgraft.types import ResizePolicy


@runtime_checkable
class LoadingOptions(Protocol):
    """What the options of every verb with a model say about loading it."""

    @property
    def seed(self) -> int:
        """Random seed of random weights."""
        ...

    @property
    def weights_dir(self) -> str | Path | None:
        """Folder in which weights are looked up first."""
        ...

    @property
    def allow_download(self) -> bool:
        """Whether weights may be downloaded."""
        ...

    @property
    def image_size(self) -> int | None:
        """Side of the input in pixels; None: that of the model."""
        ...

    @property
    def resize_policy(self) -> ResizePolicy | None:
        """Instead of the model's own."""
        ...


def load_as_asked(
    spec: ModelSpec,
    options: LoadingOptions,
    *,
    device: str,
    for_training: bool = False,
    reporter: Reporter | None = None,
) -> Backbone:
    """The backbone of ``spec``, as ``load_backbone`` gives it with ``options``."""
    return load_backbone(
        spec,
        seed=options.seed,
        device=device,
        weights_dir=options.weights_dir,
        allow_download=options.allow_download,
        image_size=options.image_size,
        resize_policy=options.resize_policy,
        for_training=for_training,
        reporter=reporter,
    )
