"""The network of the study of sources: ResNet-20 with a first convolution of stride 2, and its pretraining."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import NamedTuple

from studies import EXAMPLES
from torch import nn

from crossgraft import export_model, fine_tune
from crossgraft.data import Dataset
from crossgraft.models import ModelSpec
from crossgraft.progress import Reporter
from crossgraft.tune import FineTuningResult

PRETRAINING_EPOCHS, SOURCE_SIDE, TARGET_SIDE = 25, 32, 64
SOURCE = "shortcut_sources_network:resnet20_stride2"


def resnet20_stride2(num_classes: int = 10) -> nn.Module:
    """ResNet-20 that looks at every second pixel first, so that images of 64 × 64 cost what those of 32 × 32 do otherwise."""
    found = importlib.util.spec_from_file_location("example_cifar_resnet", EXAMPLES / "cifar_resnet.py")
    if found is None or found.loader is None:
        raise FileNotFoundError(f"{EXAMPLES} has no cifar_resnet.py.")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    network = module.resnet20(num_classes)
    network.conv1.stride = (2, 2)
    return network


class Pretrained(NamedTuple):
    """What a source gives to the target.

    Attributes:
        weights: File of the weights.
        tuned: How its own test images are told apart.
    """

    weights: Path
    tuned: FineTuningResult


def spec_of(name: str, weights: Path | None, num_classes: int = 10, *, side: int = TARGET_SIDE) -> ModelSpec:
    """The network with the weights of a source; None: with random ones."""
    return ModelSpec(
        name,
        SOURCE,
        "random" if weights is None else str(weights),
        kwargs={"num_classes": num_classes},
        family="ResNet-20, stride 2",
        preprocessing={"input_size": [3, side, side], "mean": [0.5] * 3, "std": [0.25] * 3, "crop_pct": 1.0},
        folder=Path(__file__).parent,
    )


def pretrain(name: str, images: Dataset, folder: Path, *, epochs: int = PRETRAINING_EPOCHS) -> Pretrained:
    """From random weights; 16 % of the images pick the epoch, 20 % tell how well it went.

    Cost: two to three minutes of one core for 5000 images.
    """
    tuned = fine_tune(
        images,
        model=spec_of(f"{name} · before", None, side=SOURCE_SIDE),
        method="scratch",
        epochs=epochs,
        workers=1,
        device="cpu",
        ledger=False,
        store=False,
        reporter=Reporter(quiet=True),
    )
    export_model(tuned, out=folder, overwrite=True, reporter=Reporter(quiet=True))
    return Pretrained(folder / "model.safetensors", tuned)
