"""What each training of the study of sources says of the test images, and how sources differ on the same images."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crossgraft.audit.record import AuditTrainingRecord
from crossgraft.audit.reliance import ExactTestScores, shortcut_reliance_index
from crossgraft.data import Dataset
from crossgraft.metrics import MetricValue, auc_combination
from crossgraft.running.command_line import portable_name
from crossgraft.statistics import mean_interval

MEAN = "mean"
"""What stands for all artefacts together."""
Row = dict[str, str]


class Trainings(NamedTuple):
    """All fine-tunings of one source.

    Attributes:
        found: (confounder, share, fold) → what its network says; those of share 0 stand under every confounder.
        is_positive: (n,) of the test images.
        groups: (n,) of the test images, or None.
    """

    found: Mapping[tuple[str, float, int], AuditTrainingRecord]
    is_positive: np.ndarray
    groups: np.ndarray | None

    @property
    def confounders(self) -> list[str]:
        """In the order of the trainings."""
        return list(dict.fromkeys(name for name, _, _ in self.found))

    @property
    def shares(self) -> list[float]:
        """Ascending from 0."""
        return sorted({share for _, share, _ in self.found})

    @property
    def folds(self) -> list[int]:
        """Numbers of the folds."""
        return sorted({fold for _, _, fold in self.found})

    def cells(self, confounder: str, share: float, fold: int) -> ExactTestScores:
        """Scores of positives and negatives, without and with the artefact."""
        record, positive = self.found[confounder, share, fold], self.is_positive
        clean, edited = np.array(record.clean), np.array(record.edited[confounder])
        return ExactTestScores(clean[positive], edited[positive], clean[~positive], edited[~positive])

    def sri_of_folds(self, confounder: str) -> np.ndarray:
        """(folds,) shortcut reliance index."""
        shares = np.array(self.shares)
        values: list[float] = []
        for fold in self.folds:
            cells = [self.cells(confounder, share, fold) for share in self.shares]
            iid = np.array([each.iid(share) for each, share in zip(cells, self.shares, strict=True)])
            values.append(shortcut_reliance_index(shares, iid, np.array([each.ood for each in cells])))
        return np.array(values)

    def sri_terms(self, confounder: str) -> list[tuple[float, np.ndarray]]:
        """The mean SRI of the folds as a sum of areas c · AUC(scores) of the same images."""
        widths = np.diff(self.shares)
        weights = (np.r_[widths, 0] + np.r_[0, widths]) / 2
        weights[0] -= widths.sum()
        positive, terms = self.is_positive, list[tuple[float, np.ndarray]]()
        number = int(positive.sum())
        for weight, share in zip(weights.tolist(), self.shares, strict=True):
            carrying = round(share * number) / number
            for fold in self.folds:
                record, each = self.found[confounder, share, fold], weight / len(self.folds)
                clean, edited = np.array(record.clean), np.array(record.edited[confounder])
                terms += [
                    (each * carrying, np.where(positive, edited, clean)),
                    (each * (1 - carrying), clean),
                    (-each, np.where(positive, clean, edited)),
                ]
        return terms

    def clean_of_folds(self) -> np.ndarray:
        """(folds,) AUC without any artefact, of the networks that never saw one."""
        return np.array([self.cells(self.confounders[0], 0.0, fold).clean for fold in self.folds])

    def clean_terms(self) -> list[tuple[float, np.ndarray]]:
        """Its mean as a sum of areas."""
        first = self.confounders[0]
        return [(1 / len(self.folds), np.array(self.found[first, 0.0, fold].clean)) for fold in self.folds]


def read_trainings(folder: Path, images: Dataset) -> Trainings:
    """From the run directory of an audit, which is called like its source, and the images that it was given."""
    found: dict[tuple[str, float, int], AuditTrainingRecord] = {}
    shown = json.loads((folder / "run.json").read_bytes())["config"]
    for confounder in shown["confounders"]:
        for share in shown["shares"]:
            for fold in range(shown["audit_folds"]):
                file = _training(folder, confounder if share else "clean", fold, share)
                record = AuditTrainingRecord.model_validate_json(file.read_text(encoding="utf-8"))
                found[confounder, share, fold] = record
    with (folder / "manifest.csv").open(encoding="utf-8", newline="") as opened:
        tested = [row for row in csv.DictReader(opened) if (row["fold"], row["part"]) == ("0", "test")]
    rows = np.array([int(row["row"]) - 1 for row in tested])
    positive = np.array([row["positive"] == "True" for row in tested])
    return Trainings(found, positive, None if images.groups is None else images.groups[rows])


def _training(folder: Path, carried: str, fold: int, share: float) -> Path:
    name = portable_name(f"{folder.name}-{carried}-fold{fold}-share{share:g}")
    return folder / "trainings" / f"{name}.json"


def training_rows(source: str, trainings: Trainings) -> list[Row]:
    """One row per training and artefact; a training of share 0 has one for each."""
    rows: list[Row] = []
    for (confounder, share, fold), record in sorted(trainings.found.items(), key=lambda each: each[0]):
        cells = trainings.cells(confounder, share, fold)
        values = {"realised": record.realised, "clean": cells.clean, "iid": cells.iid(share), "ood": cells.ood}
        rows.append(
            {
                "source": source,
                "confounder": confounder,
                "share": f"{share:g}",
                "fold": str(fold),
                "best_epoch": str(record.best_epoch),
                **{name: f"{value:.6g}" for name, value in values.items()},
            }
        )
    return rows


def difference_rows(source: str, own: Trainings, others: Mapping[str, Trainings]) -> list[Row]:
    """Other sources less this one, with intervals over patients and over folds.

    SRI by artefact and its mean over the artefacts, and the AUC without any artefact.
    """
    rows: list[Row] = []
    labels = own.is_positive.astype(np.int64)
    for other, theirs in others.items():
        if not np.array_equal(own.is_positive, theirs.is_positive):
            raise ValueError(f"{source} and {other} were tested on different images.")
        common = [name for name in own.confounders if name in theirs.confounders]
        compared = {name: [name] for name in common} | {MEAN: common}
        for name, several in compared.items():
            terms = [(c / len(several), each) for one in several for c, each in theirs.sri_terms(one)]
            terms += [(-c / len(several), each) for one in several for c, each in own.sri_terms(one)]
            folds = np.mean([theirs.sri_of_folds(one) - own.sri_of_folds(one) for one in several], axis=0)
            patients = auc_combination(terms, labels, own.groups)
            rows.append(difference_row(source, other, "sri", name, patients, folds))
        terms = [*theirs.clean_terms(), *((-c, each) for c, each in own.clean_terms())]
        patients = auc_combination(terms, labels, own.groups)
        rows.append(difference_row(source, other, "clean_auc", "", patients, theirs.clean_of_folds() - own.clean_of_folds()))
    return rows


def difference_row(source: str, other: str, metric: str, confounder: str, patients: MetricValue, folds: np.ndarray) -> Row:
    over_folds = mean_interval(folds)
    values = {
        "difference": over_folds.mean,
        "low": over_folds.low,
        "high": over_folds.high,
        "patients_low": patients.low,
        "patients_high": patients.high,
    }
    texts = {name: "" if value is None else f"{value:.6g}" for name, value in values.items()}
    return {"source": source, "other": other, "metric": metric, "confounder": confounder, **texts}
