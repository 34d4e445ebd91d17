"""Seventeen real checkpoints, really fine-tuned on nine small sets: the trained table of docs/results/ground_truth.md.

    python recipes/ground_truth.py --data-dir datasets --weights-dir weights --out docs/results/ground_truth.md
    python recipes/ground_truth.py --only breastmnist                               # a piece of it
    python recipes/ground_truth.py --only none --out docs/results/ground_truth.md   # the page alone
    python recipes/ground_truth.py --smoke --rows rows --out page.md   # as-built networks and noise; the numbers mean nothing

The environment variable CROSSGRAFT_DATA may name a folder that holds both, ``datasets`` and ``weights``. Sets are done one after
the other, each with its cheap trainings beside the whole ones. Each training ends as a row of ``--rows``; what is there with the
same settings is not trained again, so the same command goes on where it was stopped. ``--minutes`` begins no training after that.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from data_folders import add_folders
from ground_truth_page import write_page
from ground_truth_rows import FIDELITIES, FIFTH, FULL, HALF, LEARNING_RATES, SEEDS, CellRow, best_on_val, read_cells, write_cells
from ground_truth_sets import SETS, SMOKE_SETS, TargetSet, parts_of
from studies import EXAMPLES, smoke_specs
from study_rows import measured, most_probable
from study_trainings import RESULTS, read_arguments, tell_failure, versions

from crossgraft import fine_tune
from crossgraft.compute import limit_threads
from crossgraft.data import Dataset
from crossgraft.errors import DivergedError
from crossgraft.models import ModelSpec, read_zoo
from crossgraft.progress import Reporter
from crossgraft.running.jobs import Job, Work, run_jobs
from crossgraft.select.val_error import standard_error
from crossgraft.tune import FineTuningResult
from crossgraft.tune.parts import compute_logits

ZOOS = ("mobilenets.yaml", "small_networks.yaml")
SIDE, CIFAR_SIDE = 64, 32
EPOCHS, PATIENCE, BATCH_SIZE = 15, 5, 32
QUIET = Reporter(quiet=True)


class Cell(NamedTuple):
    """What decides one training."""

    target: TargetSet
    spec: ModelSpec
    fidelity: str
    learning_rate: float
    seed: int

    @property
    def key(self) -> tuple[str, str, float, int]:
        """As that of its row."""
        return self.spec.name, self.fidelity, self.learning_rate, self.seed

    @property
    def in_words(self) -> str:
        """For the terminal."""
        return f"{self.target.name}, {self.spec.name}, {self.fidelity}, {self.learning_rate:g}, seed {self.seed}"

    @property
    def side(self) -> int:
        """Side of the input."""
        whole = CIFAR_SIDE if self.spec.name.endswith("CIFAR-10") else SIDE
        return whole // 2 if self.fidelity == HALF else whole

    @property
    def epochs(self) -> int:
        """At most."""
        return EPOCHS // 5 if self.fidelity == FIFTH else EPOCHS


class Cells(Work[Cell, CellRow]):
    """Trains; the result stays as a row of the table of its set."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.images = cache(lambda target: parts_of(target, arguments.data_dir))

    def read_back(self, job: Job[Cell]) -> CellRow | None:
        """Is there a row with the same settings?"""
        row = read_cells(self.arguments.rows, job.spec.target.name).get(job.spec.key)
        return row if row is not None and row.settings == job.key else None

    def do(self, job: Job[Cell]) -> CellRow:
        """Make the row."""
        cell, name = job.spec, job.spec.target.name
        row = train(cell, self.images(cell.target), self.arguments, job.key)
        write_cells(self.arguments.rows, name, {**read_cells(self.arguments.rows, name), row.key: row})
        found = row.state if row.auc is None else f"AUC {row.auc:.3f}, {row.cpu_seconds:.0f} CPU seconds"
        print(f"{job.name}: {found}", flush=True)
        return row


def main(command_line: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(command_line)
    targets = SMOKE_SETS if arguments.smoke else SETS
    failed = 0
    if arguments.only != ["none"]:
        specs = smoke_specs() if arguments.smoke else zoo(arguments.weights_dir)
        with limit_threads(1):
            for target in targets:
                if not arguments.only or target.name in arguments.only:
                    failed += do_set(target, specs, arguments)
    if arguments.out is not None:
        write_page(arguments.out, arguments.rows, targets, smoke=arguments.smoke)
    if failed:
        raise SystemExit(f"{failed} trainings failed; the same command tries them again")


def zoo(weights_dir: Path) -> list[ModelSpec]:
    """All networks of both example zoos."""
    return [spec for name in ZOOS for spec in read_zoo(EXAMPLES / name, weights_dir=weights_dir, allow_code=EXAMPLES)]


def fitting(target: TargetSet, specs: Sequence[ModelSpec]) -> list[ModelSpec]:
    """Networks that were not pretrained on images or classes of the set."""
    return [spec for spec in specs if not any(spec.name.endswith(f"· {each}") for each in target.unfit)]


def do_set(target: TargetSet, specs: Sequence[ModelSpec], arguments: argparse.Namespace) -> int:
    """All cells of a set; the number of those that failed. More seeds of the best once the first seed of all is there."""
    kept, work = fitting(target, specs), Cells(arguments)
    failed = do_all(first_seed(target, kept), work)
    best = best_on_val(read_cells(arguments.rows, target.name), [spec.name for spec in kept])
    return failed + do_all(more_seeds(target, [spec for spec in kept if spec.name in best]), work)


def first_seed(target: TargetSet, specs: Sequence[ModelSpec]) -> Iterator[Cell]:
    """Network by network, the whole trainings first."""
    for spec in specs:
        for fidelity in FIDELITIES:
            for rate in LEARNING_RATES:
                yield Cell(target, spec, fidelity, rate, SEEDS[0])


def more_seeds(target: TargetSet, specs: Sequence[ModelSpec]) -> Iterator[Cell]:
    """Whole trainings with all learning rates: val picks anew with each seed."""
    for seed in SEEDS[1:]:
        for spec in specs:
            for rate in LEARNING_RATES:
                yield Cell(target, spec, FULL, rate, seed)


def do_all(cells: Iterator[Cell], work: Cells) -> int:
    """Do what is missing, as long as there is time; the number of those that failed."""
    failed = 0
    for cell in cells:
        if time.monotonic() > work.arguments.deadline:
            break
        job = Job(cell.in_words, cell, settings_of(cell, work.arguments))
        failed += sum(bool(outcome.reason) for outcome in run_jobs([job], work, keep_going=True, told=tell_failure))
    return failed


def settings_of(cell: Cell, arguments: argparse.Namespace) -> str:
    """What decides the numbers besides set, network, fidelity, learning rate and seed."""
    epochs = 1 if arguments.smoke else cell.epochs
    said = f"batch_size={BATCH_SIZE} epochs={epochs} patience={PATIENCE} per_class={cell.target.per_class} side={cell.side}"
    return f"smoke {said}" if arguments.smoke else said


def train(cell: Cell, images: Dataset, arguments: argparse.Namespace, settings: str) -> CellRow:
    """The row of a training; without numbers where it diverged."""
    known: dict[str, Any] = {
        "model": cell.spec.name,
        "family": cell.spec.family or "",
        "fidelity": cell.fidelity,
        "learning_rate": cell.learning_rate,
        "seed": cell.seed,
        "side": cell.side,
        "epochs": 1 if arguments.smoke else cell.epochs,
        "settings": settings,
        "versions": versions(),
    }
    began = time.process_time()
    try:
        tuned = tune(cell, images, arguments, known["epochs"])
    except DivergedError as error:
        return CellRow(**known, state=f"diverged: {error}")
    return row_of(tuned, images, known, began)


def tune(cell: Cell, images: Dataset, arguments: argparse.Namespace, epochs: int) -> FineTuningResult:
    """One fine-tuning as ``crossgraft tune`` does it."""
    return fine_tune(
        images,
        model=cell.spec,
        weights_dir=arguments.weights_dir,
        image_size=None if arguments.smoke else cell.side,
        epochs=epochs,
        patience=PATIENCE,
        batch_size=BATCH_SIZE,
        learning_rate=cell.learning_rate,
        select_by="auc",
        seed=cell.seed,
        store=False,
        ledger=False,
        no_images=True,
        device="cpu",
        workers=1,
        reporter=QUIET,
    )


def row_of(tuned: FineTuningResult, images: Dataset, known: dict[str, Any], began: float) -> CellRow:
    """Numbers on val and test; accuracy is of the most probable class, as in published tables."""
    record, parts = tuned.record, np.asarray(images.splits)
    of_val = images.targets[parts == "val"]
    decided = {}
    for part in ("val", "test"):
        rows = images.take(parts == part)
        logits = compute_logits(tuned.classifier, rows, batch_size=BATCH_SIZE, reporter=QUIET)
        decided[part] = most_probable(logits, rows.targets)
    point = record.grid[0]
    error = standard_error("auc", point.val_metric or 0.5, of_val, len(images.class_names), images.task)
    curve = [row.val_metric for row in record.history]
    return CellRow(
        **measured(decided["test"], record.metric("auc"), record.similarity),
        **known,
        num_epochs=point.num_epochs,
        best_epoch=point.best_epoch,
        num_train=int((parts == "train").sum()),
        num_val=len(of_val),
        num_test=int((parts == "test").sum()),
        val_auc=point.val_metric and round(point.val_metric, 6),
        val_error=error and round(error, 6),
        val_loss=point.val_loss and round(point.val_loss, 6),
        **{f"val_{name}": row.value and round(row.value, 6) for name, row in decided["val"].items()},
        val_curve=" ".join("" if value is None else f"{value:.5f}" for value in curve),
        num_parameters=record.plan.num_trained + record.plan.num_frozen,
        cpu_seconds=round(time.process_time() - began, 2),
    )


def parse_arguments(command_line: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_folders(parser)
    parser.add_argument("--rows", type=Path, default=RESULTS / "ground_truth", help="tables of what is done")
    parser.add_argument("--out", type=Path, help="the page to write")
    names = [target.name for target in SETS]
    parser.add_argument("--only", nargs="+", choices=[*names, "none"], help="these sets; none: write the page only")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no training after that")
    parser.add_argument("--smoke", action="store_true", help="as-built networks and noise; the numbers mean nothing")
    parsed = read_arguments(parser, command_line)
    parsed.deadline = time.monotonic() + 60 * parsed.minutes
    return parsed


if __name__ == "__main__":
    main()
