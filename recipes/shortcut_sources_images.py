"""Source and target images of the study of sources: the same number of images of each source, all 32 × 32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from fewshot_sets import Images, busi, ham10000, medical_mnist, retina
from fewshot_student import cifar_train
from PIL import Image
from shortcut_sources_network import SOURCE_SIDE, TARGET_SIDE
from shortcuts import brain

from crossgraft.data import Dataset, dataset_from_arrays
from crossgraft.edit.edits import Editing, choose_edits
from crossgraft.edit.source_editing import merge_labels
from crossgraft.seeding import generator

NUM_IMAGES = 5000
LOW_PASS, WHITENING = "low_pass:0.125", "whiten_spectrum"
LIVING = ("bird", "cat", "deer", "dog", "frog", "horse")
VEHICLES = ("airplane", "automobile", "ship", "truck")
COARSE = {**dict.fromkeys(LIVING, "animal"), **dict.fromkeys(VEHICLES, "vehicle")}


def chest(folder: Path) -> Images:
    """PneumoniaMNIST, all 5856 images."""
    with np.load(folder / "pneumoniamnist.npz", allow_pickle=False) as stored:
        images, labels = (
            np.concatenate([stored[f"{part}_{what}"] for part in ("train", "val", "test")]) for what in ("images", "labels")
        )
    return Images(dataset_from_arrays(images, labels.ravel(), name="chest"))


MEDICAL: Mapping[str, Callable[[Path], Dataset]] = {
    "brain": brain,
    "chest": lambda folder: chest(folder).dataset,
    "retina": lambda folder: retina(folder).dataset,
    "medical_mnist": lambda folder: medical_mnist(folder).dataset,
    "ham10000": lambda folder: ham10000(folder).dataset,
}
"""No ultrasound of the breast among them, and no image of the target."""


def natural(folder: Path) -> Dataset:
    """CIFAR-10: ten classes of things."""
    found = cifar_train(folder)
    if len(found) != NUM_IMAGES:
        raise ValueError(f"CIFAR-10 has {len(found)} images, not {NUM_IMAGES}: sources would differ in size.")
    return found


def low_passed(folder: Path) -> Dataset:
    """The same without fine detail, and with two classes that can still be told apart."""
    images = natural(folder)
    labels = np.array(images.class_names)[images.targets]
    pixels = [images.read(row) for row in range(len(images))]
    return edited(dataset_from_arrays(pixels, merge_labels(labels, COARSE), name="cifar10 low-passed"), LOW_PASS)


def medical(folder: Path) -> Dataset:
    """As many images of five medical sets, as evenly as they have them; a class is a set and its class."""
    found = {name: load(folder) for name, load in MEDICAL.items()}
    pixels: list[np.ndarray] = []
    labels: list[str] = []
    for name, number in evenly({name: len(images) for name, images in found.items()}, NUM_IMAGES).items():
        images = found[name]
        for row in np.sort(generator(0, "source", name).permutation(len(images))[:number]).tolist():
            pixels.append(resized(images.read(row), SOURCE_SIDE))
            labels.append(f"{name} {images.class_names[images.targets[row]]}")
    return dataset_from_arrays(pixels, labels, name="medical")


def whitened(folder: Path) -> Dataset:
    """The same with a flat spectrum."""
    return edited(medical(folder), WHITENING)


def target(folder: Path) -> Dataset:
    """BUSI at 64 × 64, each pixel the mean of four; frames that look alike are one group."""
    found = busi(folder).dataset
    pixels = [resized(found.read(row), TARGET_SIDE) for row in range(len(found))]
    labels = np.array(found.class_names)[found.targets]
    return dataset_from_arrays(pixels, labels, groups=found.groups, name="busi 64")


def edited(images: Dataset, edit: str) -> Dataset:
    """All images with an edit."""
    return images.edited(Editing(choose_edits(edit)))


def evenly(available: Mapping[str, int], wanted: int) -> dict[str, int]:
    """How many of each set, so that they are ``wanted`` together and none could give up some for a smaller one."""
    if sum(available.values()) < wanted:
        raise ValueError(f"There are {sum(available.values())} images in all, {wanted} are wanted.")
    drawn: dict[str, int] = {}
    left = wanted
    for place, (name, number) in enumerate(sorted(available.items(), key=lambda each: each[1])):
        drawn[name] = min(number, left // (len(available) - place))
        left -= drawn[name]
    return drawn


def resized(pixels: np.ndarray, side: int) -> np.ndarray:
    """(side, side, channels), squashed; smaller ones by means over areas."""
    picture = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
    how = Image.Resampling.BOX if min(picture.size) >= side else Image.Resampling.BICUBIC
    small = np.asarray(picture.resize((side, side), how))
    return small[..., np.newaxis] if small.ndim == 2 else small
