"""What a step with ρSIM costs beside one without, for docs/results/sim.md: both in turn, so that other work slows both down."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from study_rows import as_csv, read_rows

from crossgraft.choice import choose
from crossgraft.losses import CrossEntropy
from crossgraft.models import ModelSpec, load_backbone
from crossgraft.models.classifier import Classifier, make_classifier
from crossgraft.models.memory_format import put_channels_last
from crossgraft.storage.atomic import write_atomically
from crossgraft.tune.engine.launch import make_fabric
from crossgraft.tune.engine.optimizers import make_optimizer
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.engine.step import Network, TrainingStep, apply_modes, apply_selection
from crossgraft.tune.feed.batches import TrainingBatch
from crossgraft.tune.methods import METHODS
from crossgraft.tune.regularizers import REGULARIZERS

ROUNDS = 30
CLASSES = 10  # the last layer weighs next to nothing
Step = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class StepCostRow:
    """Steps of one network, in turn without and with ρSIM.

    Attributes:
        model: Network.
        settings: What else decides the numbers.
        plain_seconds: Median processor time of a step without.
        sim_seconds: Of one with ρSIM.
        ratio: Median over the rounds of the second over the first.
    """

    model: str
    settings: str
    plain_seconds: float
    sim_seconds: float
    ratio: float


def step_cost(folder: Path, name: str, spec: ModelSpec, regularizer: str, *, rounds: int = ROUNDS, **known: Any) -> StepCostRow:
    """What is kept of this network and set, or else measured now and kept.

    Args:
        folder: Of the tables.
        name: Of the set.
        spec: Network.
        regularizer: ρSIM as it is spelled.
        rounds: Pairs of steps.
        known: ``weights_dir``, ``side``, ``batch_size`` and ``optimizer``.
    """
    model = spec.name.partition(" ")[0]
    said = " ".join(f"{key}={known[key]}" for key in sorted(known) if key != "weights_dir")
    settings, rows = f"{regularizer} {said}", read_step_costs(folder, name)
    if (model, settings) in rows:
        return rows[model, settings]
    seconds = interleaved([make_step(spec, choice, **known) for choice in ("", regularizer)], rounds)
    row = StepCostRow(
        model=model,
        settings=settings,
        plain_seconds=round(statistics.median(one for one, _ in seconds), 4),
        sim_seconds=round(statistics.median(other for _, other in seconds), 4),
        ratio=round(statistics.median(other / one for one, other in seconds), 4),
    )
    kept = sorted([*rows.values(), row], key=lambda each: (each.model, each.settings))
    write_atomically(_file(folder, name), as_csv(StepCostRow, kept))
    print(f"{name} {model}: a step takes {row.plain_seconds:.3f} s, with ρSIM {row.ratio:.3f} times as long", flush=True)
    return row


def read_step_costs(folder: Path, name: str) -> Mapping[tuple[str, str], StepCostRow]:
    """What is there of one set, by network and settings."""
    return {(row.model, row.settings): row for row in read_rows(_file(folder, name), StepCostRow)}


def interleaved(steps: Sequence[Step], rounds: int) -> list[tuple[float, ...]]:
    """Processor time of each step in each round; the order changes from round to round, and the first steps warm up."""
    for step in steps:
        step()
    found = [[0.0] * len(steps) for _ in range(rounds)]
    for number, seconds in enumerate(found):
        places = range(len(steps))
        for place in places if number % 2 else reversed(places):
            began = time.process_time()
            steps[place]()
            seconds[place] = time.process_time() - began
    return [tuple(seconds) for seconds in found]


def make_step(spec: ModelSpec, choice: str, *, weights_dir: Path | None, side: int, batch_size: int, optimizer: str) -> Step:
    """A step of the engine on one batch of noise, with a regulariser or without."""
    backbone = load_backbone(spec, weights_dir=weights_dir, image_size=side)
    classifier = make_classifier(backbone, CLASSES, seed=0)
    method: Any = choose(METHODS, "full")
    regularizers: list[Any] = [choose(REGULARIZERS, choice)] if choice else []
    settings = TrainerSettings(device="cpu", optimizer=optimizer, learning_rate=1e-5, batch_size=batch_size)
    step = _engine(classifier, method.select(classifier), regularizers, settings)
    look = classifier.preprocessing
    images = torch.rand(
        batch_size, look.channels, look.height_pixels, look.width_pixels, generator=torch.Generator().manual_seed(0)
    )
    rows = torch.arange(batch_size)
    batch = TrainingBatch(rows=rows, images=images, targets=torch.eye(CLASSES)[rows % CLASSES])
    numbers = iter(range(10**9))
    return lambda: step.run(batch, next(numbers))


def _engine(classifier: Classifier, selection: Any, regularizers: Sequence[Any], settings: TrainerSettings) -> TrainingStep:
    put_channels_last(classifier)
    apply_selection(classifier, selection)
    for each in regularizers:
        each.attach(classifier, seed=0)
    apply_modes(classifier, selection)
    named = make_optimizer(classifier, selection, regularizers, settings)
    fabric = make_fabric(settings)
    network, optimizer = fabric.setup(Network(classifier, regularizers), named.optimizer)
    return TrainingStep(
        fabric, network, optimizer, named=named, classifier=classifier, loss=CrossEntropy(),
        regularizers=regularizers, settings=settings,
    )  # fmt: skip


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}-step-costs.csv"
