"""A ViT that is small enough to be fine-tuned on a CPU many times, trained on natural images for the studies."""

from __future__ import annotations

import argparse
from pathlib import Path

from studies import SEEDS, SMOKE_TARGETS, Target
from study_trainings import Rows, Training, do_all, tune

from crossgraft import export_model
from crossgraft.models import ModelSpec

VIT = {"img_size": 32, "patch_size": 4, "embed_dim": 96, "depth": 6, "num_heads": 3}
VIT_NAME = "vit_d96"
VIT_PREPROCESSING = {"input_size": [3, 32, 32], "mean": [0.5] * 3, "std": [0.5] * 3, "crop_pct": 1.0}
NATURAL_FILE = "cifar10_jpeg_5000_1000.npz"
NATURAL_EPOCHS, NATURAL_CLASSES = 40, 10


def pretrained_vit(arguments: argparse.Namespace, pretraining: str, epochs: int = NATURAL_EPOCHS) -> ModelSpec:
    """The ViT with weights of natural images, which are trained where they are not there.

    Args:
        arguments: Of the command line of a study.
        pretraining: Name of its row, and of the folder of its run.
        epochs: Of natural images.
    """
    bare = ModelSpec(f"{VIT_NAME} · as built", "vit_tiny_patch16_224", "random", VIT, preprocessing=VIT_PREPROCESSING)
    natural = Target(pretraining, "Natural images", NATURAL_FILE)
    target = SMOKE_TARGETS[0]._replace(name=pretraining) if arguments.smoke else natural
    options = {"method": "scratch", "epochs": epochs, "image_size": VIT["img_size"]}
    run: Path = arguments.results / pretraining
    no_weights = argparse.Namespace(**{**vars(arguments), "weights_dir": None})  # where they lie is nothing to this run
    job = Training(target, bare, "scratch", SEEDS[0], options)
    do_all([job], Rows(no_weights, run), keep_going=False)
    weights = run / "export" / "safetensors" / "model.safetensors"
    if not weights.is_file():
        tune(job, no_weights, run)  # its row may come from another machine, without the run directory
        export_model(run)
    classes = 2 if arguments.smoke else NATURAL_CLASSES
    return ModelSpec(
        f"{VIT_NAME} · {target.title}", bare.source, str(weights), {**VIT, "num_classes": classes},
        preprocessing=VIT_PREPROCESSING,
    )  # fmt: skip
