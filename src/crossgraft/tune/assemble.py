"""All that was found, as one record and a table of what was predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from crossgraft.data.describe import describe_dataset
from crossgraft.metrics.record import MetricRecord
from crossgraft.metrics.words import metric_name_in_words
from crossgraft.models.classifier import Classifier
from crossgraft.models.preprocessing import describe_preprocessing
from crossgraft.records.base import Reference
from crossgraft.running.jobs import results_of
from crossgraft.tasks import Task
from crossgraft.tune.engine.selection_rule import TOLERANCE
from crossgraft.tune.jobs import Trained, TrainingOutcome, point_of
from crossgraft.tune.measuring.evaluation import Evaluation, FoldPredictions
from crossgraft.tune.measuring.unseen_domains import DomainMeasure, describe_unseen_domains
from crossgraft.tune.parts import FoldRows
from crossgraft.tune.planning.choices import KEEP_FACTOR
from crossgraft.tune.planning.fold_networks import FoldNetworks
from crossgraft.tune.planning.preparation import Preparation
from crossgraft.tune.record import (
    BatchNormRecord,
    FoldRecord,
    KeepRecord,
    PlanRecord,
    PluginRecord,
    TunedModelRecord,
    TuningRecord,
    UnseenDomainsRecord,
)
from crossgraft.tune.words import missed_in_words
from crossgraft.words.formatting import count, counted

_STATISTICS = (
    Reference(key="Temperature", text="Guo, Pleiss, Sun and Weinberger, On Calibration of Modern Neural Networks, ICML 2017."),
    Reference(key="Intervals of AUC", text="DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988) 837."),
)


@dataclass(frozen=True, eq=False)
class FinishedFold:
    """A fold whose model was picked and measured."""

    trained: Trained
    networks: FoldNetworks
    predictions: FoldPredictions
    classifier: Classifier

    @property
    def parts(self) -> FoldRows:
        """Rows of the fold."""
        return self.predictions.parts


def assemble_record(
    prepared: Preparation,
    plan: PlanRecord,
    outcomes: Sequence[TrainingOutcome],
    finished: Sequence[FinishedFold],
    evaluation: Evaluation,
    *,
    of_folds: Mapping[int, Evaluation],
    similarity: dict[str, float],
) -> TuningRecord:
    """Put the pieces together; ``evaluation`` is of all finished folds together, ``of_folds`` of each alone."""
    picked = [fold.trained for fold in finished]
    rows, dataset, options = prepared.rows, prepared.rows.dataset, prepared.options
    names = {trained.training.name for trained in picked}
    plugins = prepared.plugins.describe()
    rows_of_grid = [point_of(outcome) for outcome in outcomes]
    keep = keep_record(prepared, picked)
    failed = [f"The training {row.job} failed: {row.reason}" for row in rows_of_grid if row.state == "failed"]
    return TuningRecord(
        dataset=describe_dataset(replace(dataset, split_method=rows.split_in_words), show_names=options.show_names),
        splits=rows.split_rows(),
        leakage=rows.leakage,
        leakage_checked=rows.is_leakage_known,
        model=describe_model(prepared),
        plugins=plugins,
        plan=plan,
        selection_rule=selection_in_words(prepared),
        selection_metric=prepared.rule.metric,
        grid=[row.model_copy(update={"picked": row.job in names}) for row in rows_of_grid],
        folds=_folds(prepared, picked, of_folds) if rows.num_folds is not None else [],
        unseen_domains=_unseen_domains(prepared, finished, evaluation, of_folds),
        history=[row for trained in results_of(outcomes) for row in trained.record.history],
        metrics=evaluation.metrics,
        primary_metric=prepared.task.primary_metric,
        confusion=evaluation.confusion,
        mistakes=evaluation.mistakes,
        roc=evaluation.roc,
        calibration=evaluation.calibration,
        calibration_reason=evaluation.calibration_reason,
        thresholds=evaluation.thresholds,
        similarity=similarity,
        gradient_norms=[
            trained.gradient_norms.record(trained.training.name) for trained in picked if trained.gradient_norms is not None
        ],
        batch_norm=batch_norm_record(prepared),
        keep=keep,
        saved_model=None,
        seconds=sum(row.seconds for row in rows_of_grid),  # also those of earlier attempts
        num_processes=prepared.settings.num_processes,
        devices=[prepared.settings.device] * prepared.settings.num_processes,
        precision=prepared.settings.precision,
        checks=prepared.checks,
        warnings=[*failed, *([] if keep is None or keep.is_reached else [missed_in_words(keep, batch_norm_record(prepared))])],
        notes=plan.notes,
        references=[*references_of(plugins), *([] if rows.edits is None else rows.edits.references)],
        edits=rows.edits,
    )


def batch_norm_record(prepared: Preparation) -> BatchNormRecord:
    """The decision, and how many layers it moves the statistics of."""
    decided, moving = prepared.batch_norm, prepared.situation().moved_batch_norms
    return BatchNormRecord(mode=decided.mode, reason=decided.reason, num_layers=decided.num_layers, num_moving=len(moving))


def keep_record(prepared: Preparation, picked: Sequence[Trained]) -> KeepRecord | None:
    """Similarities of the kept epochs; None where nothing was asked for."""
    if prepared.keep is None:
        return None
    adapted = prepared.keep.is_adapted
    rows = [trained.kept_epoch for trained in picked]
    return KeepRecord(
        target=prepared.keep.target,
        found=[row.val_cka_debiased_adapted if adapted else row.val_cka_debiased for row in rows],
        factors=[float(trained.training.point.get(KEEP_FACTOR, 1.0)) for trained in picked],
        tolerance=TOLERANCE,
    )


def selection_in_words(prepared: Preparation) -> str:
    """How the model was picked: epoch, grid point, and the rows that decided."""
    rule, points = prepared.rule, len(prepared.request.points)
    if rule.keep == "last":
        return "The last epoch was kept; there were no validation rows to pick one."
    grid = f" and of {points} grid points" if points > 1 else ""
    sizes = [len(parts.val) for parts in prepared.rows.parts]
    rows = counted(sizes[0], "validation row")
    if prepared.rows.left_out is not None and len(set(sizes)) > 1:
        rows = f"{count(min(sizes))} to {count(max(sizes))} validation rows"
    each = " of each fold" if prepared.rows.num_folds is not None else ""
    each = " of each training" if prepared.rows.left_out is not None and prepared.rows.has_several_models else each
    extreme = "lowest" if rule.direction == "min" else "highest"
    metric = metric_name_in_words(rule.metric)
    best = f"the one with the {extreme} {metric} on {rows}{each} was picked, the first of equal ones"
    if prepared.keep is None:
        return f"Of all epochs{grid} {best}."
    return (
        f"Of all epochs{grid} from which on the debiased CKA on val stayed within {TOLERANCE:g} of {prepared.keep.target:g}, "
        f"{best}; where training ends elsewhere, the last epoch of the training that ends nearest to it."
    )


def describe_model(prepared: Preparation) -> TunedModelRecord:
    """The network before fine-tuning."""
    backbone, classifier = prepared.backbone, prepared.classifier
    return TunedModelRecord(
        name=backbone.name,
        architecture=backbone.architecture,
        source=backbone.source,
        family=backbone.family,
        licence=backbone.licence,
        num_parameters=sum(parameter.numel() for parameter in classifier.parameters()),
        num_features=classifier.num_features,
        num_outputs=classifier.num_outputs,
        weights_fingerprint=backbone.weights_fingerprint,
        preprocessing=describe_preprocessing(classifier.preprocessing),
        from_scratch=prepared.plugins.method.starts_from_scratch,
    )


def references_of(plugins: Sequence[PluginRecord]) -> list[Reference]:
    """The papers behind the plug-ins and the statistics."""
    own = [Reference(key=plugin.title, text=plugin.reference) for plugin in plugins if plugin.reference]
    return [*own, *_STATISTICS]


def _folds(prepared: Preparation, picked: Sequence[Trained], of_folds: Mapping[int, Evaluation]) -> list[FoldRecord]:
    """One row per fold, those that failed without numbers."""
    groups = prepared.rows.dataset.groups
    points = {trained.training.fold: trained.record.point for trained in picked}
    records: list[FoldRecord] = []
    for parts in prepared.rows.parts:
        fold = parts.fold or 0
        point, alone = points.get(parts.fold), of_folds.get(fold)
        metric = None if alone is None else _primary(alone.metrics, prepared.task)
        records.append(
            FoldRecord(
                fold=fold,
                num_train=len(parts.train),
                num_val=len(parts.val),
                num_test=len(parts.test),
                num_groups=None if groups is None else len(np.unique(groups[parts.test])),
                picked={} if point is None else point.values,
                best_epoch=None if point is None else point.best_epoch,
                val_metric=None if point is None else point.val_metric,
                test_metric=None if metric is None else metric.value,
                low=None if metric is None else metric.low,
                high=None if metric is None else metric.high,
                reason="no training of this fold ended with a model" if point is None else None,
            )
        )
    return records


def _unseen_domains(
    prepared: Preparation, finished: Sequence[FinishedFold], evaluation: Evaluation, of_folds: Mapping[int, Evaluation]
) -> UnseenDomainsRecord | None:
    """What is known of each domain that was left out; None where none was."""
    rows = prepared.rows
    if rows.left_out is None or rows.domains is None:
        return None
    return describe_unseen_domains(
        DomainMeasure(rows.dataset, rows.domains, prepared.task.primary_metric),
        rows.left_out,
        rows.parts,
        {str(fold.parts.domain): fold.predictions for fold in finished},
        {str(fold.parts.domain): fold.trained.record.point for fold in finished},
        {str(fold.parts.domain): of_folds.get(fold.parts.fold or 0, evaluation) for fold in finished},
        {str(parts.domain): prepared.for_parts(parts).rule.metric for parts in rows.parts},
    )


def _primary(metrics: Sequence[MetricRecord], task: Task) -> MetricRecord | None:
    name = task.primary_metric
    return next((row for row in metrics if row.metric == name and row.class_name is None), None)


def prediction_table(finished: Sequence[FinishedFold], prepared: Preparation, *, show_names: bool) -> pd.DataFrame:
    """One row per image, in the order of the data: number from 1, part, truth, decision, probabilities, logits.

    Names of files may identify patients, and are in it only with ``show_names``.
    """
    dataset, names = prepared.rows.dataset, prepared.rows.dataset.class_names
    dataset_domains = prepared.rows.domains if prepared.rows.left_out is not None else None
    parts: list[pd.DataFrame] = []
    for fold in (each.predictions for each in finished):
        rows = fold.parts.test
        probabilities, decisions = fold.test_probabilities(prepared.task), fold.decisions(prepared.task)
        table: dict[str, object] = {"row": rows + 1}
        if show_names:
            table["name"] = [dataset.image_name(int(row)) for row in rows]
        table["split"] = _split_in_table(fold.parts)
        if dataset_domains is not None:
            table["domain"] = dataset_domains.of_rows[rows]
        for column, classes in (("target", dataset.targets[rows]), ("decision", decisions)):
            table[column] = ["; ".join(prepared.task.names_of(row, names)) for row in classes]
        table |= {f"probability {name}": probabilities[:, column] for column, name in enumerate(names)}
        table |= {f"logit {name}": fold.test_logits[:, column] for column, name in enumerate(names)}
        parts.append(pd.DataFrame(table))
    return pd.concat(parts).sort_values("row", ignore_index=True)


def _split_in_table(parts: FoldRows) -> str:
    if parts.fold is None:
        return "test"
    return f"fold {parts.fold}" if parts.domain is None else parts.name
