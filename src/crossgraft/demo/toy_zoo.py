"""The zoo of the demo: two architectures on five sources, and the same architectures with random weights.

Made on the spot and kept in the user's cache, one file per model; a model whose file is there is not made
again. The folder is named by a hash of everything that decides the weights, so that another recipe never
reads the files of this one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import platformdirs
import torch
import yaml

from crossgraft.config import config_hash
from crossgraft.demo.pretrain import PRETRAINING, Pretraining, PretrainJob
from crossgraft.demo.training import SourceTask, TrainingRecipe
from crossgraft.progress import Reporter
from crossgraft.running.jobs import Executor, Job, run_jobs
from crossgraft.storage.atomic import write_atomically

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
        Job(
            model_name(family, task.name),
            PretrainJob(family.factory, task, recipe, seed, folder / _file_name(family, task)),
        )
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
    return _entry(family, task) | {
        "name": model_name(family, RANDOM_WEIGHTS),
        "weights": "random",
        "licence": None,
    }


def _file_name(family: Family, task: SourceTask) -> str:
    words = f"{family.name} {task.name}".replace("–", "-").lower().split()
    return f"{'-'.join(words)}.safetensors"


def _recipe_hash(tasks: Sequence[SourceTask], recipe: TrainingRecipe, seed: int) -> str:
    """The numbers of another torch version differ in the last digits, so they are another zoo."""
    digests = {task.name: hashlib.sha256(task.images.tobytes() + task.labels.tobytes()).hexdigest() for task in tasks}
    facts = {"version": ZOO_VERSION, "torch": torch.__version__, "seed": seed}
    return config_hash({**facts, "recipe": asdict(recipe), "tasks": digests})
