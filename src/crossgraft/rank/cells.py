"""Evaluations of single models become cells of the score table: zoo-level scores are combined, intervals computed."""

import math
from collections.abc import Sequence

import numpy as np

from crossgraft.rank.evaluate import ModelEvaluation, RawValue, ScoreEvaluation
from crossgraft.rank.label_means import mean_over_labels
from crossgraft.rank.record import ScoreCell
from crossgraft.scores import AnyScore, ZooScore
from crossgraft.statistics import jackknife_interval


def build_cells(score: AnyScore, models: Sequence[ModelEvaluation]) -> list[ScoreCell]:
    """One cell a model for ``score``."""
    evaluations = [next(e for e in model.evaluations if e.score == score.name) for model in models]
    labels = dict.fromkeys(label for evaluation in evaluations for label in evaluation.per_label)
    if labels:
        by_label = {
            label: [evaluation.per_label.get(label, evaluation) for evaluation in evaluations] for label in labels
        }
        if isinstance(score, ZooScore):
            by_label = {label: combine_over_zoo(score, models, column) for label, column in by_label.items()}
        evaluations = mean_over_labels(models, evaluations, by_label)
    elif isinstance(score, ZooScore):
        evaluations = combine_over_zoo(score, models, evaluations)
    return [_cell(model.model.name, evaluation) for model, evaluation in zip(models, evaluations, strict=True)]


def combine_over_zoo(
    score: ZooScore[...], models: Sequence[ModelEvaluation], evaluations: Sequence[ScoreEvaluation]
) -> list[ScoreEvaluation]:
    """Give every evaluation of a zoo-level score its values.

    The candidates are combined among themselves; a control is combined as one more member, so that it never moves the
    scale of the candidates; leave-one-block-out values use the parts of all members without that block; a shuffled value
    replaces only the parts of its own model.
    """
    candidates = [
        i
        for i, (model, evaluation) in enumerate(zip(models, evaluations, strict=True))
        if model.model.role == "candidate" and evaluation.full is not None
    ]

    def value_of(member: int, own: RawValue, block: int | None) -> RawValue:
        others = [i for i in candidates if i != member]
        parts = [_raw_at(evaluations[i], block).parts for i in others] + [own.parts]
        combined = score.combine(parts)[-1]
        return own.model_copy(update={"value": float(combined), "warnings": [*own.warnings, *combined.warnings]})

    finished: list[ScoreEvaluation] = []
    for i, evaluation in enumerate(evaluations):
        if evaluation.full is None:
            finished.append(evaluation)
            continue
        finished.append(
            evaluation.model_copy(
                update={
                    "full": value_of(i, evaluation.full, None),
                    "blocks": [value_of(i, raw, block) for block, raw in enumerate(evaluation.blocks)],
                    "redrawn": [value_of(i, raw, None) for raw in evaluation.redrawn],
                    "shuffled": [value_of(i, raw, None) for raw in evaluation.shuffled],
                }
            )
        )
    return finished


def _raw_at(evaluation: ScoreEvaluation, block: int | None) -> RawValue:
    if block is not None and block < len(evaluation.blocks):
        return evaluation.blocks[block]
    return evaluation.full or RawValue(value=None)


def _cell(model: str, evaluation: ScoreEvaluation) -> ScoreCell:
    cell = ScoreCell(
        model=model,
        score=evaluation.score,
        value=None,
        reason=evaluation.reason,
        seconds=evaluation.seconds,
        peak_bytes=evaluation.peak_bytes,
    )
    full = evaluation.full
    if full is None or full.value is None:
        return cell
    if not math.isfinite(full.value):
        reason = " ".join(full.warnings) or f"The score is {full.value} on these features."
        return cell.model_copy(update={"reason": reason, "parts": full.parts, "warnings": full.warnings})
    shuffled = [raw.value for raw in evaluation.shuffled if raw.value is not None and math.isfinite(raw.value)]
    replicates = [raw.value for raw in evaluation.blocks if raw.value is not None]
    no_interval = evaluation.no_interval_reason
    if no_interval is None and not np.isfinite(replicates).all():
        no_interval = "The score is not finite when one block of images is left out."
    redrawn = [raw.value for raw in evaluation.redrawn if raw.value is not None and math.isfinite(raw.value)]
    redrawn = [full.value, *redrawn] if redrawn and no_interval is None else []
    several = [redrawn] if redrawn else []
    estimate = jackknife_interval(full.value, replicates, redrawn=several) if no_interval is None else None
    if estimate is not None and estimate.standard_error == 0:
        no_interval, estimate = "The score is the same without any block of images.", None
    return cell.model_copy(
        update={
            "value": full.value,
            "standard_error": estimate.standard_error if estimate else None,
            "low": estimate.low if estimate else None,
            "high": estimate.high if estimate else None,
            "no_interval_reason": no_interval,
            "jackknife_values": replicates if estimate else [],
            "redrawn_values": redrawn,
            "shuffled_values": shuffled,
            "largest_shuffled": max(shuffled, default=None),
            "above_shuffled": full.value > max(shuffled) if shuffled else None,
            "parts": full.parts,
            "warnings": full.warnings,
            "per_label": {
                label: one.full.value
                for label, one in evaluation.per_label.items()
                if one.full is not None and one.full.value is not None
            },
        }
    )
