"""What the toy backbones are pretrained on: images from scikit-learn, and a control without sense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from sklearn.datasets import load_sample_images

from crossgraft.data import Dataset, prepare_batch
from crossgraft.demo.toy_models import PREPROCESSING
from crossgraft.demo.training import SourceTask, ToyImages, ToyLabels
from crossgraft.seeding import generator

SHUFFLED_LABELS = "shuffled labels"
PATCHES_PER_PHOTO = 400
PATCH_PIXELS = 96
"""A patch of 96×96 pixels becomes an input of 8×8: enough of the photograph to tell sky from ground."""


def make_source_tasks(digits: Dataset, *, seed: int) -> list[SourceTask]:
    """Digits, their rotation, photo patches, their rotation, and digits with shuffled labels.

    Nothing else of the digits is used than the images of ``digits``.
    """
    scans = _prepare([digits.read(row) for row in range(len(digits))])
    labels = digits.targets.astype(np.int64)
    patches, photos = _cut_patches(seed)
    return [
        SourceTask("digits 0–4", scans, labels),
        _rotation_task("rotated digits 0–4", scans),
        SourceTask("photo patches", patches, photos),
        _rotation_task("rotated photo patches", patches),
        SourceTask(SHUFFLED_LABELS, scans, generator(seed, "demo shuffled labels").permutation(labels)),
    ]


def _rotation_task(name: str, images: ToyImages) -> SourceTask:
    """Say by how many quarter turns each image was rotated (Gidaris et al., ICLR 2018)."""
    turned = [np.rot90(images, turns, axes=(2, 3)) for turns in range(4)]
    return SourceTask(name, np.concatenate(turned), np.repeat(np.arange(4), len(images)))


def _cut_patches(seed: int) -> tuple[ToyImages, ToyLabels]:
    """Squares at random places of scikit-learn's two photographs; the label says which photograph."""
    random = generator(seed, "demo photo patches")
    photographs = cast("Sequence[np.ndarray]", load_sample_images().images)
    patches: list[np.ndarray] = []
    for photograph in photographs:
        height, width = photograph.shape[:2]
        tops = random.integers(0, height - PATCH_PIXELS, size=PATCHES_PER_PHOTO)
        lefts = random.integers(0, width - PATCH_PIXELS, size=PATCHES_PER_PHOTO)
        patches += [
            photograph[top : top + PATCH_PIXELS, left : left + PATCH_PIXELS]
            for top, left in zip(tops, lefts, strict=True)
        ]
    return _prepare(patches), np.repeat(np.arange(len(photographs)), PATCHES_PER_PHOTO)


def _prepare(images: Sequence[np.ndarray]) -> ToyImages:
    return prepare_batch(images, PREPROCESSING).numpy()
