"""What the demo gives to the commands of its run directory: images with their writers, and models beside their weights."""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml
from PIL import Image

from crossgraft.data import Dataset
from crossgraft.demo.toy_zoo import DemoData
from crossgraft.models import ModelSpec
from crossgraft.seeding import generator
from crossgraft.storage.atomic import write_atomically

DATA_FILE = "digits_5_to_9.npz"
UNSEEN_FOLDER = "unseen_digits"


def write_data(data: DemoData, path: Path) -> None:
    """Training and test images with writer and split, as an ``.npz`` file that ``crossgraft tune`` opens."""
    parts = {"train": data.train, "test": data.test}
    file = io.BytesIO()
    np.savez(
        file,
        images=np.concatenate([_pixels(part) for part in parts.values()]),
        labels=np.concatenate([np.asarray(part.class_names)[part.targets] for part in parts.values()]),
        writer=np.concatenate([np.asarray(part.groups) for part in parts.values()]),
        split=np.concatenate([np.full(len(part), name) for name, part in parts.items()]),
    )
    write_atomically(path, file.getvalue())


def _pixels(dataset: Dataset) -> np.ndarray:
    return np.stack([dataset.read(row)[:, :, 0] for row in range(len(dataset))])


def write_model(spec: ModelSpec, file: Path) -> None:
    """A zoo file of one model beside a copy of its weights, so that the folder can be moved."""
    _write_entries(file, [(spec, file.with_suffix(".safetensors").name)])


def write_zoo(specs: Sequence[ModelSpec], file: Path) -> None:
    """A zoo file of several models beside a folder of copies of their weights, called like the file."""
    _write_entries(file, [(spec, f"{file.stem}/{Path(str(spec.weights)).name}") for spec in specs])


def _write_entries(file: Path, models: Sequence[tuple[ModelSpec, str]]) -> None:
    for spec, weights in models:
        write_atomically(file.parent / weights, Path(str(spec.weights)).read_bytes())
    entries = [
        {
            "name": spec.name,
            "source": spec.source,
            "weights": weights,
            "kwargs": dict(spec.kwargs),
            "family": spec.family,
            "licence": spec.licence,
        }
        for spec, weights in models
    ]
    write_atomically(file, yaml.safe_dump(entries, allow_unicode=True, sort_keys=False))


def write_unseen(test: Dataset, folder: Path, *, seed: int) -> dict[str, np.ndarray]:
    """One digit of each test writer as a picture in a folder of its class; name in ``folder`` → pixels."""
    shutil.rmtree(folder, ignore_errors=True)  # pictures of a demo that is replaced
    random = generator(seed, "demo unseen digits")
    writers = np.asarray(test.groups)
    pictures: dict[str, np.ndarray] = {}
    for number, writer in enumerate(np.unique(writers), start=1):
        row = int(random.choice(np.flatnonzero(writers == writer)))
        name = f"{test.class_names[test.targets[row]]}/digit_{number}.png"
        pictures[name] = test.read(row)
        file = io.BytesIO()
        Image.fromarray(pictures[name][:, :, 0]).save(file, format="PNG")
        write_atomically(folder / name, file.getvalue())
    return pictures
