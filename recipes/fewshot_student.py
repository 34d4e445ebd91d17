"""The distilled network of the few-shot study: a ResNet-20 that has learned from three domains, none of which it is tested on."""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path

import numpy as np

from crossgraft import distil, fine_tune, open_dataset
from crossgraft.data import Dataset
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.models import ModelSpec

STUDENT = "universal · CIFAR-10, chest, brain"
STEPS = 1000


def make_student(file: Path, networks: dict[str, ModelSpec], data_dir: Path) -> None:
    """Fine-tune a teacher on each domain, distil them into a ResNet-20, and keep its weights.

    Args:
        file: Where its weights go.
        networks: The small networks by name.
        data_dir: Folder with the data.

    Cost: about twenty minutes of one core.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        images = {"cifar": cifar_train(data_dir), "chest": chest(data_dir), "brain": brain(data_dir, folder)}
        common = {"workers": 1, "ledger": False, "device": "cpu"}
        fine_tune(images["cifar"], model=networks["resnet56 · CIFAR-10"], method="linear", out=folder / "cifar", **common)
        for name, epochs in (("chest", 4), ("brain", 20)):
            fine_tune(images[name], model=networks["resnet20 · CIFAR-10"], epochs=epochs, out=folder / name, **common)
        found = distil(
            [folder / name for name in images],
            data=list(images.values()),
            names=list(images),
            model=networks["resnet20 · CIFAR-10"],
            steps=STEPS,
            out=folder / "student",
            **common,
        )
        print(found.summary(), flush=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        found.weights.replace(file)


def cifar_train(folder: Path) -> Dataset:
    """The 5000 images of the training part; the study tests on the other one, with other networks."""
    with np.load(folder / "cifar10_jpeg_5000_1000.npz", allow_pickle=False) as stored:
        labels = stored["classes"][stored["train_labels"].ravel()]
        return dataset_from_arrays(stored["train_images"], labels, name="cifar10 train")


def chest(folder: Path) -> Dataset:
    """PneumoniaMNIST, with its own split."""
    return open_dataset(folder / "pneumoniamnist.npz")


def brain(folder: Path, to: Path) -> Dataset:
    """253 slices with and without a tumour."""
    with tarfile.open(folder / "brain_mri_tumor_yes_no_253.tar.gz") as archive:
        archive.extractall(to / "slices", filter="data")
    return open_dataset(to / "slices")
