"""The zoo of the demo: two architectures on five sources, and the same architectures with random weights.

Made on the spot and kept in the user's cache, one file per model; a model whose file is there is not made
again. The folder is named by a hash of everything that decides the weights, so that another recipe never
reads the files of this one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import numpy as np
import platformdirs
import torch
import yaml
from sklearn.datasets import load_sample_images

from crossgraft.config import config_hash
from crossgraft.data import Dataset, prepare_batch, take_per_class
from crossgraft.demo.toy_models import PREPROCESSING
from crossgraft.demo.training import PRETRAINING, Pretraining, PretrainJob, SourceTask, ToyImages, ToyLabels, TrainingRecipe
from crossgraft.errors import DataError
from crossgraft.progress import Reporter
from crossgraft.running.jobs import Job, run_jobs
from crossgraft.seeding import generator
from crossgraft.storage.atomic import write_atomically

SOURCE_DIGITS = ("0", "1", "2", "3", "4")
TARGET_DIGITS = ("5", "6", "7", "8", "9")
IMAGES_PER_CLASS = 10


@dataclass(frozen=True)
class DemoData:
    """Three parts of the digits that share no image; only ``test`` has the test writers.

    Attributes:
        source: Digits 0–4 of the training writers, for pretraining.
        train: Ten images of each digit 5–9 of the training writers: the small labelled set of the user.
        test: All digits 5–9 of the other writers.
    """

    source: Dataset
    train: Dataset
    test: Dataset


def divide_digits(digits: Dataset, *, seed: int) -> DemoData:
    """Half of the writers train, the other half tests.

    Raises:
        DataError: The images have no writers.
    """
    if digits.groups is None:
        raise DataError("The demo needs the writer of each image.")
    writers = generator(seed, "demo writers").permutation(np.unique(digits.groups))
    training_writers = writers[: len(writers) // 2]
    is_training = np.isin(digits.groups, training_writers)
    pool = digits.take(is_training)
    target_pool = pool.select_classes(TARGET_DIGITS)
    rows = take_per_class(target_pool.targets, IMAGES_PER_CLASS, seed=seed, class_names=target_pool.class_names)
    used = f"{IMAGES_PER_CLASS} images of each digit 5–9 from {len(training_writers)} of {len(writers)} writers"
    return DemoData(
        source=pool.select_classes(SOURCE_DIGITS),
        train=target_pool.take(rows, rows_used=used),
        test=digits.take(~is_training).select_classes(TARGET_DIGITS),
    )


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
            photograph[top : top + PATCH_PIXELS, left : left + PATCH_PIXELS] for top, left in zip(tops, lefts, strict=True)
        ]
    return _prepare(patches), np.repeat(np.arange(len(photographs)), PATCHES_PER_PHOTO)


def _prepare(images: Sequence[np.ndarray]) -> ToyImages:
    return prepare_batch(images, PREPROCESSING).numpy()


ZOO_VERSION = 1
"""Raise it when the networks or the training loop change."""
LICENCE = "made on this machine from images that ship with scikit-learn"


@dataclass(frozen=True)
class Family:
    """One architecture of the zoo: its name for people and its function in ``toy_models``."""

    name: str
    factory: str


FAMILIES = (Family("toy CNN", "toy_cnn"), Family("toy ViT", "toy_vit"))
RANDOM_WEIGHTS = "random weights"


def default_cache_dir() -> Path:
    """``CROSSGRAFT_CACHE`` if it is set, else the user's cache folder."""
    return Path(os.environ.get("CROSSGRAFT_CACHE") or platformdirs.user_cache_dir("crossgraft", appauthor=False))


def model_name(family: Family, source: str) -> str:
    """What tables call one member of the zoo."""
    return f"{family.name} · {source}"


def build_zoo(
    tasks: Sequence[SourceTask],
    families: Sequence[Family] = FAMILIES,
    recipe: TrainingRecipe = PRETRAINING,
    *,
    pool: Executor,
    cache_dir: Path,
    reporter: Reporter,
    seed: int = 0,
) -> Path:
    """Pretrain what is not in the cache yet, and write the zoo file.

    The zoo lies in ``demo-zoo/<hash>`` below ``cache_dir``; ``seed`` is that of all weights.

    Returns:
        A YAML file for ``read_zoo``.

    Raises:
        StorageError: The cache cannot be written.

    Cost:
        About 1.5 seconds of one core for each model that is not in the cache.
    """
    folder = cache_dir / "demo-zoo" / _recipe_hash(tasks, recipe, seed)
    jobs = [
        Job(model_name(family, task.name), PretrainJob(family.factory, task, recipe, seed, folder / _file_name(family, task)))
        for family in families
        for task in tasks
    ]
    work = Pretraining()
    missing = [job for job in jobs if work.read_back(job) is None]
    if missing:
        title = f"Pretraining {len(missing)} toy models (kept for the next time)"
        with reporter.stage(title, total=len(missing), unit="models") as stage:
            run_jobs(missing, work, keep_going=False, told=lambda _: stage.advance(), executor=pool)
    else:
        reporter.say(f"The {len(jobs)} pretrained toy models are in the cache")
    entries = [_entry(family, task) for family in families for task in tasks]
    entries += [_random_entry(family, tasks[0]) for family in families]
    text = yaml.safe_dump(entries, allow_unicode=True, sort_keys=False)
    name = "-".join(["zoo", *(family.factory for family in families)])
    return write_atomically(folder / f"{name}.yaml", text)


def factory_of(family: Family) -> str:
    """The function that builds a family, as a zoo file and ``--code`` name it."""
    return f"crossgraft.demo.toy_models:{family.factory}"


def _entry(family: Family, task: SourceTask) -> dict[str, object]:
    return {
        "name": model_name(family, task.name),
        "source": factory_of(family),
        "weights": _file_name(family, task),
        "kwargs": {"num_classes": task.num_classes},
        "family": family.name,
        "licence": LICENCE,
    }


def _random_entry(family: Family, task: SourceTask) -> dict[str, object]:
    """The control of the ranking itself: it recognises ``weights: random`` and adds no second one."""
    return _entry(family, task) | {"name": model_name(family, RANDOM_WEIGHTS), "weights": "random", "licence": None}


def _file_name(family: Family, task: SourceTask) -> str:
    words = f"{family.name} {task.name}".replace("–", "-").lower().split()
    return f"{'-'.join(words)}.safetensors"


def _recipe_hash(tasks: Sequence[SourceTask], recipe: TrainingRecipe, seed: int) -> str:
    """The numbers of another torch version differ in the last digits, so they are another zoo."""
    digests = {task.name: hashlib.sha256(task.images.tobytes() + task.labels.tobytes()).hexdigest() for task in tasks}
    facts = {"version": ZOO_VERSION, "torch": torch.__version__, "seed": seed}
    return config_hash({**facts, "recipe": asdict(recipe), "tasks": digests})
