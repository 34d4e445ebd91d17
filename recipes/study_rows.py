"""What a study keeps of every training and every interpolated network: small CSV tables of each set."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numpy as np

from crossgraft.interpolate.record import InterpolationRecord
from crossgraft.metrics import MetricRow, evaluate_predictions
from crossgraft.metrics.record import MetricRecord
from crossgraft.storage.atomic import write_atomically
from crossgraft.tune.record import TuningRecord
from crossgraft.words.visible import csv_rows

Decided = Mapping[str, MetricRow]
"""Accuracy and balanced accuracy of the most probable class."""


@dataclass(frozen=True)
class Measured:
    """Numbers on test, each metric with the interval of the test images; None where there is no number.

    Accuracy and balanced accuracy are of the most probable class, as papers have it: the thresholds of ``crossgraft tune`` for
    two classes are fitted to few images of val, and would add their own noise.
    """

    accuracy: float | None = None
    accuracy_low: float | None = None
    accuracy_high: float | None = None
    balanced_accuracy: float | None = None
    balanced_accuracy_low: float | None = None
    balanced_accuracy_high: float | None = None
    auc: float | None = None
    auc_low: float | None = None
    auc_high: float | None = None
    cka: float | None = None
    cka_debiased: float | None = None


@dataclass(frozen=True, kw_only=True)
class TrainingRow(Measured):
    """One finished training.

    Attributes:
        model: Network.
        variant: What was trained how.
        seed: Of everything.
        seconds: Of the training alone, on a machine that may have had other work.
        cpu_seconds: Of the processor, for the whole call: reading, plan, training, measuring; None where a GPU trained.
        best_epoch: The one that was kept.
        num_trained: Parameters of the network that were trained, without those of a regulariser; None in tables from before it
            was kept.
        num_parameters: Of the network with its head, adapters included.
        settings: What else decides the numbers.
        versions: Of the programs.
        state: ``done``, or why there are no numbers.
    """

    model: str
    variant: str
    seed: int
    seconds: float | None = None
    cpu_seconds: float | None = None
    best_epoch: int | None = None
    num_trained: int | None = None
    num_parameters: int | None = None
    settings: str
    versions: str
    state: str = "done"

    @classmethod
    def of_record(cls, record: TuningRecord, decided: Decided, **known: Any) -> TrainingRow:
        """From what a training found."""
        return cls(
            **measured(decided, record.metric("auc"), record.similarity),
            seconds=round(record.seconds, 2),
            best_epoch=record.grid[0].best_epoch,
            num_trained=record.plan.num_trained,
            num_parameters=record.plan.num_trained + record.plan.num_frozen,
            **known,
        )

    @property
    def key(self) -> tuple[str, str, int]:
        """One training of a set has it."""
        return self.model, self.variant, self.seed

    @property
    def in_words(self) -> str:
        """For the terminal."""
        if self.state != "done":
            return self.state
        return f"accuracy {self.accuracy:.3f}, CKA {self.cka or 0:.3f}, {self.seconds or 0:.0f} s"


@dataclass(frozen=True, kw_only=True)
class CurveRow(Measured):
    """One network between LINEAR and FULL.

    Attributes:
        model: Network.
        seed: Of both trainings.
        batch_norm: Where its statistics of BatchNorm come from.
        alpha: 0: LINEAR, 1: FULL.
        picked: Was this α picked on val?
        settings: What else decides the numbers.
        versions: Of the programs.
    """

    model: str
    seed: int
    batch_norm: str
    alpha: float
    picked: int
    settings: str
    versions: str

    @classmethod
    def of_record(cls, record: InterpolationRecord, decided: Sequence[Decided], **known: Any) -> list[CurveRow]:
        """From a whole curve."""
        return [
            cls(
                **measured(of_point, point.metric("auc"), point.similarity),
                batch_norm=record.batch_norm,
                alpha=point.alpha,
                picked=int(point.alpha == record.picked_alpha),
                **known,
            )
            for point, of_point in zip(record.points, decided, strict=True)
        ]

    @property
    def key(self) -> tuple[str, int, str, float]:
        """One network of a set has it."""
        return self.model, self.seed, self.batch_norm, self.alpha


@dataclass(frozen=True, kw_only=True)
class KeptRow:
    """What a training has kept, and what that is for.

    Attributes:
        model: Network.
        variant: What was trained how.
        seed: Of everything.
        cka_adapted: To the pretrained weights with BatchNorm statistics of the training images; None without BatchNorm.
        cka_debiased_adapted: The same, debiased.
        cka_debiased_untouched: Of those to the pretrained network: what statistics do on their own.
        val_cka_debiased: On val, in the epoch that was kept.
        probe_natural: Accuracy of a linear probe on natural images, with the tuned body.
        probe_natural_before: The same with the pretrained body.
        probe_medical: On another medical set.
        probe_medical_before: The same with the pretrained body.
        clean_accuracy: On all test images of the set, of which a training may have been measured on a part.
        corrupted_accuracy: On the same images, corrupted; mean over kinds of corruption.
    """

    model: str
    variant: str
    seed: int
    cka_adapted: float | None = None
    cka_debiased_adapted: float | None = None
    cka_debiased_untouched: float | None = None
    val_cka_debiased: float | None = None
    probe_natural: float | None = None
    probe_natural_before: float | None = None
    probe_medical: float | None = None
    probe_medical_before: float | None = None
    clean_accuracy: float | None = None
    corrupted_accuracy: float | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        """That of the training."""
        return self.model, self.variant, self.seed


@dataclass(frozen=True)
class Table:
    """Everything that is there of one set."""

    trainings: tuple[TrainingRow, ...] = ()
    curve: tuple[CurveRow, ...] = ()
    kept: tuple[KeptRow, ...] = ()

    def has_training(self, model: str, variant: str, seed: int, settings: str) -> bool:
        """Was it done with these settings?"""
        return any(row.key == (model, variant, seed) and row.settings == settings for row in self.trainings)

    def has_curve(self, model: str, seed: int, settings: str) -> bool:
        """Was it done with these settings?"""
        return any((row.model, row.seed) == (model, seed) and row.settings == settings for row in self.curve)

    def with_training(self, row: TrainingRow) -> Table:
        """An older row of the same name goes."""
        others = [other for other in self.trainings if other.key != row.key]
        return replace(self, trainings=tuple(sorted([*others, row], key=lambda each: each.key)))

    def with_kept(self, row: KeptRow) -> Table:
        """An older row of the same training goes."""
        others = [other for other in self.kept if other.key != row.key]
        return replace(self, kept=tuple(sorted([*others, row], key=lambda each: each.key)))

    def with_curve(self, rows: Sequence[CurveRow]) -> Table:
        """Older rows of the same network and seed go."""
        replaced = {(row.model, row.seed) for row in rows}
        others = [other for other in self.curve if (other.model, other.seed) not in replaced]
        return replace(self, curve=tuple(sorted([*others, *rows], key=lambda each: each.key)))

    def write(self, folder: Path, name: str) -> None:
        """Each file whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / f"{name}.csv", as_csv(TrainingRow, self.trainings))
        if self.curve:
            write_atomically(folder / f"{name}-curve.csv", as_csv(CurveRow, self.curve))
        if self.kept:
            write_atomically(folder / f"{name}-kept.csv", as_csv(KeptRow, self.kept))


def measured(decided: Decided, area: MetricRecord | None, similarity: dict[str, float]) -> dict[str, float | None]:
    """Columns of ``Measured``."""
    found: dict[str, float | None] = {}
    for name, row in {**decided, "auc": area}.items():
        ends = (None, None, None) if row is None else (row.value, row.low, row.high)
        found |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
    found |= {name: similarity.get(name) for name in ("cka", "cka_debiased")}
    return {name: None if value is None else round(value, 5) for name, value in found.items()}


def most_probable(logits: np.ndarray, targets: np.ndarray) -> Decided:
    """Accuracy and balanced accuracy of the most probable class."""
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    names = [str(number) for number in range(logits.shape[1])]
    rows = evaluate_predictions(shifted / shifted.sum(axis=1, keepdims=True), targets, task="multi-class", class_names=names)
    overall = {row.metric: row for row in rows if row.class_name is None}
    return {name: overall[name] for name in ("accuracy", "balanced_accuracy")}


def read_predictions(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Logits (n, C) and true classes (n,) of ``predictions.csv``."""
    _, rows = csv_rows(file.read_bytes().decode("utf-8"))
    names = [name.removeprefix("logit ") for name in rows[0] if name.startswith("logit ")]
    logits = np.array([[float(row[f"logit {name}"]) for name in names] for row in rows])
    return logits, np.array([names.index(row["target"]) for row in rows])


def read_table(folder: Path, name: str) -> Table:
    """What is there; empty where nothing is."""
    return Table(
        tuple(read_rows(folder / f"{name}.csv", TrainingRow)),
        tuple(read_rows(folder / f"{name}-curve.csv", CurveRow)),
        tuple(read_rows(folder / f"{name}-kept.csv", KeptRow)),
    )


R = TypeVar("R")


def as_csv(kind: type[R], rows: Sequence[R]) -> str:
    names = sorted((field.name for field in fields(kind)), key=_is_number_of_test)
    written = io.StringIO(newline="")
    table = csv.writer(written, lineterminator="\n")
    table.writerow(names)
    table.writerows([_cell(getattr(row, name)) for name in names] for row in rows)
    return written.getvalue()


def _is_number_of_test(name: str) -> int:
    """What names a row comes first, then its numbers, then what is long."""
    order = {"settings": 2, "versions": 3, "state": 4}
    return order.get(name, int(name in {field.name for field in fields(Measured)}))


def _cell(value: object) -> str:
    return "" if value is None else str(value)


def read_rows(file: Path, kind: type[R]) -> list[R]:
    """What ``as_csv`` wrote; nothing where there is no file."""
    if not file.is_file():
        return []
    types = get_type_hints(kind)
    with file.open(encoding="utf-8", newline="") as opened:
        return [kind(**{name: _value(text, types[name]) for name, text in row.items()}) for row in csv.DictReader(opened)]


def _value(text: str, kind: Any) -> Any:
    if kind is str:
        return text
    if text == "":
        return None
    return int(text) if kind in (int, int | None) else float(text)
