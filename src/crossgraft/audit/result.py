"""What ``audit_model`` returns, and what it found in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from crossgraft.audit.confounded import Artefact, Unit
from crossgraft.audit.fold_scores import AuditedImages, FoldScores, reliance_terms, scores_by_share, sum_of_areas
from crossgraft.audit.group_metrics import GroupMetrics, gap_metrics, group_metrics, mean_cells
from crossgraft.audit.mitigation import Mitigation
from crossgraft.audit.options import AuditOptions
from crossgraft.audit.record import (
    AuditDifference,
    AuditEntry,
    AuditFrequencies,
    AuditMetric,
    AuditMode,
    AuditPoint,
    ConfounderRecord,
    FileFactRow,
    ImagesNeeded,
    ReadableRow,
)
from crossgraft.audit.reliance import Curves, early_gap, flip_effect, flip_share, ood_drop_area, shortcut_reliance_index
from crossgraft.data import Dataset
from crossgraft.edit._image_edit import ImageEdit
from crossgraft.metrics import MetricValue
from crossgraft.models.record import ModelRecord
from crossgraft.progress import Reporter
from crossgraft.records.base import CheckRecord, Reference, Thumbnail
from crossgraft.running.run_directory import RunDirectory
from crossgraft.statistics import MeanInterval, mean_interval

TestMode = Literal["exact", "sampled"]


class Reliance(NamedTuple):
    """How far a model relies on the artefact.

    Attributes:
        shortcut_reliance_index: SRI over folds.
        over_patients: The same SRI with the interval of the test images, which all folds share.
        ood_drop_area: What is lost out of distribution, over folds.
        early_gap: Gap at the smallest share above 0, less that at 0, over folds.
        flip_share: Share at which the mean o.o.d. curve crosses chance; None: never.
        clean: AUC of the models of share 0 on clean images, over folds.
        points: One per share.
        curves: One per fold.
    """

    shortcut_reliance_index: MeanInterval
    over_patients: MetricValue
    ood_drop_area: MeanInterval
    early_gap: MeanInterval
    flip_share: float | None
    clean: MeanInterval
    points: tuple[AuditPoint, ...]
    curves: tuple[Curves, ...]


class IidDraw(NamedTuple):
    """How i.i.d. test images come about.

    Attributes:
        mode: ``exact``: means over all draws of carriers among the test positives. ``sampled``: one draw per share, as the
            released code does.
        unit: What that draw is of: images, or whole patients.
        seed: Random seed of the draw.
        micro: Whether areas are also computed as the released code does.
    """

    mode: TestMode = "exact"
    unit: Unit = "image"
    seed: int = 0
    micro: bool = False


def reliance_of(scores: Sequence[FoldScores], tested: AuditedImages, draw: IidDraw | None = None) -> Reliance:
    """Curves of each fold, and their summaries.

    Args:
        scores: Every fold at every share, in any order.
        tested: The test images.
        draw: How i.i.d. test images come about; None: exact means over all draws.

    Raises:
        DataError: The share 0 is missing, or there are fewer than three shares.

    Source: SRI and its relatives are this project's; i.i.d. and o.o.d. are those of Juodelyte's thesis, chapter 4.
    """
    draw, by_share = draw or IidDraw(), scores_by_share(scores)
    shares = np.array(list(by_share))
    curves = tuple(
        Curves(shares, iid, ood)
        for iid, ood in zip(
            np.array([[_iid(one, tested, draw) for one in of_share] for of_share in by_share.values()]).T,
            np.array([[one.cells(tested).ood for one in of_share] for of_share in by_share.values()]).T,
            strict=True,
        )
    )
    return Reliance(
        shortcut_reliance_index=_over(curves, shortcut_reliance_index),
        over_patients=sum_of_areas(reliance_terms(by_share, tested), tested),
        ood_drop_area=_over(curves, ood_drop_area),
        early_gap=_over(curves, early_gap),
        flip_share=flip_share(shares, np.mean([curve.ood for curve in curves], axis=0)),
        clean=mean_interval(np.array([one.cells(tested).clean for one in next(iter(by_share.values()))]), limits=(0.0, 1.0)),
        points=tuple(_point(of_share, tested, draw) for of_share in by_share.values()),
        curves=curves,
    )


def _over(curves: Sequence[Curves], what: Callable[[np.ndarray, np.ndarray, np.ndarray], float]) -> MeanInterval:
    return mean_interval(np.array([what(*curve) for curve in curves]))


def _point(of_share: Sequence[FoldScores], tested: AuditedImages, draw: IidDraw) -> AuditPoint:
    """All folds at one share; of an attribute there is no image without it to compare answers with."""
    cells = [one.cells(tested) for one in of_share]
    groups = [_groups(one, tested, one.decided) for one in of_share]
    by_val = [_groups(one, tested, one.decided_by_val) for one in of_share]
    positive = tested.is_positive
    shares = {
        "iid": [_iid(one, tested, draw) for one in of_share],
        "ood": [each.ood for each in cells],
        "clean": [each.clean for each in cells],
        "aligned": [each.aligned for each in cells],
        "worst_group_accuracy": [fold.worst.accuracy.value for fold in groups],
        "worst_group_accuracy_by_val": [fold.worst.accuracy.value for fold in by_val],
    }
    others: dict[str, Sequence[float]] = {}
    if tested.attribute is None:
        sides = {"": np.ones_like(positive), "_positives": positive, "_negatives": ~positive}
        for side, rows in sides.items():
            others[f"flip_effect{side}"] = [flip_effect(one.clean[rows], one.edited[rows]) for one in of_share]
    others["best_epoch"] = [float(one.best_epoch) for one in of_share if one.best_epoch is not None]
    if draw.micro:
        micro = [one.micro_aucs(tested, one.share, unit=draw.unit, seed=draw.seed) for one in of_share]
        others |= {"iid_micro_auc": [iid for iid, _ in micro], "ood_micro_auc": [ood for _, ood in micro]}
    return AuditPoint(
        share=of_share[0].share,
        realised=float(np.mean([one.realised for one in of_share])),
        metrics=[
            *(
                AuditMetric.over_folds(name, mean_interval(np.array(values), limits=(0.0, 1.0)))
                for name, values in shares.items()
            ),
            *(AuditMetric.over_folds(name, mean_interval(np.array(values))) for name, values in others.items() if values),
            *gap_metrics(groups),
        ],
        cells=mean_cells(groups),
    )


def _iid(one: FoldScores, tested: AuditedImages, draw: IidDraw) -> float:
    if draw.mode == "sampled" and tested.attribute is None:
        return one.sampled_iid(tested, one.share, unit=draw.unit, seed=draw.seed)
    return one.cells(tested).iid(one.share, tested.num_drawn, negatives=tested.carrying_negatives)


def _groups(one: FoldScores, tested: AuditedImages, decided: np.ndarray) -> GroupMetrics:
    """Both versions of every image, or for an attribute every image once."""
    labels = tested.is_positive.astype(np.int64)
    if tested.attribute is not None:
        flags = tested.attribute.astype(np.int64)
        return group_metrics(one.clean, labels, flags, groups=tested.groups, decided=decided[0])
    twice = np.tile(np.arange(len(labels)), 2) if tested.groups is None else np.r_[tested.groups, tested.groups]
    return group_metrics(
        np.r_[one.clean, one.edited],
        np.r_[labels, labels],
        np.repeat([0, 1], len(labels)),
        groups=twice,
        decided=np.r_[decided[0], decided[1]],
    )


@dataclass(frozen=True, eq=False)
class Asked:
    """What the options name.

    Attributes:
        artefacts: What is put into images.
        attributes: Columns whose groups confound, as they were written.
        readable: Columns that are read from features, as they were written.
        absent: Edits of images that do not carry the artefact.
        mitigations: What plain training is compared with.
        shares: p_art, ascending from 0.
    """

    artefacts: Sequence[Artefact]
    attributes: Sequence[str]
    absent: Sequence[ImageEdit]
    mitigations: Sequence[Mitigation]
    shares: tuple[float, ...]
    readable: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class AuditCall:
    """One call of ``audit_model``, and where it runs.

    Attributes:
        model: What is audited.
        asked: What the options name.
        options: All options.
        directory: Run directory, or None.
        reporter: Reporter of progress.
        device: ``cpu``, ``cuda`` …
        num_threads: Number of threads that read images and compute.
    """

    model: Any
    asked: Asked
    options: AuditOptions
    directory: RunDirectory | None
    reporter: Reporter
    device: str
    num_threads: int


@dataclass(eq=False)
class Audited:
    """What was found, before it becomes a record.

    Attributes:
        dataset: All rows.
        test: Those that were measured on.
        positive: Class in question.
        is_positive: (n,) who is of it.
        mode: How it was measured.
        fingerprint: What names the models.
        training_key: What names the training of a fine-tuned model in the ledger; None for others.
        models: The models; empty for what can only be asked.
        confounders: What was put into images.
        entries: One per model, confounder and mitigation.
        differences: Models beside the one that relies least.
        needs: Numbers of images that a verdict needs.
        manifest: One row per image and fold, with the share from which on it carries an artefact.
        attribute_rows: One row per image that is taken for an attribute, by share and fold.
        frequency: Frequencies of images, artefacts and networks; None: they were not asked for.
        file_facts: How well facts of the file tell the class.
        readable: How well attributes can be read from features.
        checks: Findings about the rows.
        notes: What the report says beside the numbers.
        references: Publications.
        pictures: Makes the pictures of the report.
    """

    dataset: Dataset
    test: np.ndarray
    positive: str
    is_positive: np.ndarray
    mode: AuditMode
    fingerprint: str = ""
    training_key: str | None = None
    models: list[ModelRecord] = field(default_factory=list[ModelRecord])
    confounders: list[ConfounderRecord] = field(default_factory=list[ConfounderRecord])
    entries: list[AuditEntry] = field(default_factory=list[AuditEntry])
    differences: list[AuditDifference] = field(default_factory=list[AuditDifference])
    needs: list[ImagesNeeded] = field(default_factory=list[ImagesNeeded])
    manifest: pd.DataFrame = field(default_factory=pd.DataFrame)
    attribute_rows: pd.DataFrame = field(default_factory=pd.DataFrame)
    frequency: AuditFrequencies | None = None
    file_facts: list[FileFactRow] = field(default_factory=list[FileFactRow])
    readable: list[ReadableRow] = field(default_factory=list[ReadableRow])
    checks: list[CheckRecord] = field(default_factory=list[CheckRecord])
    notes: list[str] = field(default_factory=list[str])
    references: list[Reference] = field(default_factory=list[Reference])
    pictures: Callable[[], list[Thumbnail]] | None = None
