"""What the trained table keeps: one row per training, one CSV file per set, and what follows of a whole set."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from study_rows import Measured, as_csv, read_rows

from crossgraft.storage.atomic import write_atomically

FULL, FIFTH, HALF = "full", "low:epochs=0.2", "low:size=0.5"
FIDELITIES = (FULL, FIFTH, HALF)
"""A whole training, one of a fifth of the epochs with a schedule of its own, and one at half the resolution."""
LEARNING_RATES = (1e-3, 3e-4)
SEEDS = (0, 1, 2)
NUM_BEST = 3
"""Networks of each set that are trained with all seeds: the best on val with the first."""
MIDDLE_OF_THREE = 5 / 6
METRICS = ("auc", "accuracy", "balanced_accuracy")


@dataclass(frozen=True, kw_only=True)
class CellRow(Measured):
    """One finished training.

    Attributes:
        model: Network, as its zoo file calls it.
        family: Of its architecture.
        fidelity: One of ``FIDELITIES``.
        learning_rate: Largest one, of all parameters.
        seed: Of head, order of images and augmentation; images and parts are the same for all.
        side: Side of the input, in pixels.
        epochs: At most.
        num_epochs: After early stopping.
        best_epoch: The one that was kept.
        num_train: Training images.
        num_val: Validation images.
        num_test: Test images.
        val_auc: Of the epoch that was kept.
        val_error: Its standard error, from the number of images.
        val_loss: Cross-entropy there.
        val_accuracy: Of the most probable class, there.
        val_balanced_accuracy: The same.
        val_curve: AUC on val after every epoch, separated by spaces.
        num_parameters: Of the network with its head.
        cpu_seconds: Of the processor, for the whole call: reading, plan, training, measuring.
        settings: What else decides the numbers.
        versions: Of the programs.
        state: ``done``, or why there are no numbers.
    """

    model: str
    family: str
    fidelity: str
    learning_rate: float
    seed: int
    side: int
    epochs: int
    num_epochs: int | None = None
    best_epoch: int | None = None
    num_train: int | None = None
    num_val: int | None = None
    num_test: int | None = None
    val_auc: float | None = None
    val_error: float | None = None
    val_loss: float | None = None
    val_accuracy: float | None = None
    val_balanced_accuracy: float | None = None
    val_curve: str = ""
    num_parameters: int | None = None
    cpu_seconds: float | None = None
    settings: str
    versions: str
    state: str = "done"

    @property
    def key(self) -> tuple[str, str, float, int]:
        """One training of a set has it."""
        return self.model, self.fidelity, self.learning_rate, self.seed

    def val(self, metric: str) -> float | None:
        """A metric on val."""
        return getattr(self, f"val_{metric}")

    def test(self, metric: str) -> float | None:
        """A metric on test."""
        return getattr(self, metric)


@dataclass(frozen=True, kw_only=True)
class ScoreRow:
    """One score of the frozen features of a network, on the training images of a set.

    Attributes:
        model: Network.
        score: Name of the score.
        value: Larger = better; None where there is none.
        cpu_seconds: Of the processor, without the features.
        reason: Why there is no value.
    """

    model: str
    score: str
    value: float | None = None
    cpu_seconds: float | None = None
    reason: str = ""


Cells = Mapping[tuple[str, str, float, int], CellRow]


def read_cells(folder: Path, name: str) -> dict[tuple[str, str, float, int], CellRow]:
    """Rows of one set by their keys; empty where there are none."""
    return {row.key: row for row in read_rows(folder / f"{name}.csv", CellRow)}


def write_cells(folder: Path, name: str, cells: Cells) -> None:
    """All rows of one set, in the order in which they came."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{name}.csv", as_csv(CellRow, list(cells.values())))


def read_scores(folder: Path, name: str) -> list[ScoreRow]:
    """Scores of one set; empty where there are none."""
    return read_rows(folder / f"{name}-scores.csv", ScoreRow)


def write_scores(folder: Path, name: str, rows: Sequence[ScoreRow]) -> None:
    """All scores of one set."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{name}-scores.csv", as_csv(ScoreRow, rows))


def picked(cells: Cells, model: str, fidelity: str, seed: int = 0) -> CellRow | None:
    """The training with the learning rate that val picks; None unless all of them ended, or where all diverged."""
    found = [cells.get((model, fidelity, rate, seed)) for rate in LEARNING_RATES]
    done = [row for row in found if row is not None and row.val_auc is not None]
    if None in found or not done:
        return None
    return max(done, key=lambda row: (row.val_auc or 0.0, -(row.val_loss or 0.0)))


def best_on_val(cells: Cells, models: Sequence[str]) -> list[str]:
    """The networks that are trained with more seeds; test is not looked at for that."""
    rows = [row for model in models if (row := picked(cells, model, FULL)) is not None]
    return [row.model for row in sorted(rows, key=lambda row: (-(row.val_auc or 0.0), row.val_loss or 0.0))[:NUM_BEST]]


@dataclass(frozen=True)
class Trained:
    """What is known of one network on one set.

    Attributes:
        model: Network.
        family: Of its architecture.
        result: Test metric of the picked learning rate, mean over the seeds.
        values: The same, one per seed.
        first: Row of the first seed.
        low: Fidelity → metric on val of the learning rate that val picks there.
        cpu_seconds: Fidelity → of all learning rates of the first seed.
    """

    model: str
    family: str
    values: tuple[float, ...]
    first: CellRow
    low: Mapping[str, float]
    cpu_seconds: Mapping[str, float]

    @property
    def result(self) -> float:
        """Mean over the seeds."""
        return statistics.fmean(self.values)

    @property
    def standard_deviation(self) -> float | None:
        """Between seeds."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None


def trained(cells: Cells, metric: str) -> list[Trained]:
    """One entry per network whose whole trainings of the first seed are there, in the order of the rows."""
    return list(_trained(cells, metric))


def _trained(cells: Cells, metric: str) -> Iterator[Trained]:
    for model in dict.fromkeys(row.model for row in cells.values()):
        first = picked(cells, model, FULL)
        if first is None or first.test(metric) is None:
            continue
        seeds = [picked(cells, model, FULL, seed) for seed in SEEDS]
        values = [value for row in seeds if row is not None and (value := row.test(metric)) is not None]
        low = {each: picked(cells, model, each) for each in FIDELITIES[1:]}
        spent = {
            each: sum(row.cpu_seconds or 0.0 for row in cells.values() if (row.model, row.fidelity, row.seed) == (model, each, 0))
            for each in FIDELITIES
        }
        known = {each: value for each, row in low.items() if row is not None and (value := row.val(metric)) is not None}
        yield Trained(model, first.family, tuple(values), first, known, spent)


def seed_deviation(rows: Sequence[Trained]) -> float | None:
    """Between seeds: that of the middle one of the networks with several, so that one training that went wrong does not decide.

    The variance of three seeds is σ²·χ²₂/2, and the middle one of three such has the mean 5/6 σ².
    """
    known = [found for row in rows if (found := row.standard_deviation) is not None]
    return (statistics.median(found**2 for found in known) / MIDDLE_OF_THREE) ** 0.5 if known else None
