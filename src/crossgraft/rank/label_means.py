"""With several labels per image, the value of a score is the mean of its values for the single labels."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from crossgraft.rank.evaluate import ModelEvaluation, RawValue, ScoreEvaluation

_MOST_LABELS = 3


def mean_over_labels(
    models: Sequence[ModelEvaluation],
    evaluations: Sequence[ScoreEvaluation],
    by_label: Mapping[str, Sequence[ScoreEvaluation]],
) -> list[ScoreEvaluation]:
    """One evaluation a model: every value is the mean over the same labels for all models, so that they compare.

    A label for which some candidate has no finite value is left out for all models, and a warning says so.
    """
    why_not = {label: _why_left_out(models, evaluations, column) for label, column in by_label.items()}
    used = [label for label, why in why_not.items() if why is None]
    left_out = [f"{label}: {why}" for label, why in why_not.items() if why is not None]
    note = [f"Mean of {len(used)} of {len(by_label)} labels. Left out: {' '.join(left_out)}"] if left_out else []
    return [
        _mean(evaluation, {label: by_label[label][place] for label in used}, note)
        if evaluation.per_label
        else evaluation
        for place, evaluation in enumerate(evaluations)
    ]


def _why_left_out(
    models: Sequence[ModelEvaluation], evaluations: Sequence[ScoreEvaluation], column: Sequence[ScoreEvaluation]
) -> str | None:
    """Why a label takes no part, or None; candidates for which the score is defined at all must have a finite value."""
    for model, evaluation, of_label in zip(models, evaluations, column, strict=True):
        if model.model.role != "candidate" or not evaluation.per_label:
            continue
        if of_label.full is None:
            return of_label.reason
        if of_label.full.value is None or not math.isfinite(of_label.full.value):
            return f"no finite value for {model.model.name}."
    return None


def _mean(evaluation: ScoreEvaluation, by_label: Mapping[str, ScoreEvaluation], note: Sequence[str]) -> ScoreEvaluation:
    full = {label: one.full for label, one in by_label.items() if one.full is not None}
    if not full or len(full) < len(by_label):
        reasons = dict.fromkeys(one.reason for one in by_label.values() if one.reason)
        reason = " ".join([*note, *filter(None, reasons)]) or "There is no label for which every model has a value."
        return evaluation.model_copy(update={"reason": reason, "per_label": {}})
    blocks = zip(*(one.blocks for one in by_label.values()), strict=True)
    redrawn = zip(*(one.redrawn for one in by_label.values()), strict=True)
    shuffled = zip(*(one.shuffled for one in by_label.values()), strict=True)
    parts = {f"{label}: {name}": part for label, raw in full.items() for name, part in raw.parts.items()}
    return evaluation.model_copy(
        update={
            "full": RawValue(
                value=_mean_value(list(full.values())), parts=parts, warnings=[*note, *_shared_warnings(full)]
            ),
            "blocks": [RawValue(value=_mean_value(raws)) for raws in blocks],
            "redrawn": [RawValue(value=_mean_value(raws)) for raws in redrawn],
            "shuffled": [RawValue(value=_mean_value(raws)) for raws in shuffled],
            "per_label": dict(by_label),
        }
    )


def _mean_value(raws: Sequence[RawValue]) -> float:
    return float(np.mean([math.nan if raw.value is None else raw.value for raw in raws]))


def _shared_warnings(full: Mapping[str, RawValue]) -> list[str]:
    """Each warning once, with the labels that it is about."""
    labels: defaultdict[str, list[str]] = defaultdict(list)
    for label, raw in full.items():
        for warning in raw.warnings:
            labels[warning].append(label)
    return [f"{_whom(names, among=len(full))}: {warning}" for warning, names in labels.items()]


def _whom(names: Sequence[str], *, among: int) -> str:
    if len(names) == among > 1:
        return "Every label"
    shown = ", ".join(names[:_MOST_LABELS])
    more = f" and {len(names) - _MOST_LABELS} more" if len(names) > _MOST_LABELS else ""
    return f"{'Label' if len(names) == 1 else 'Labels'} {shown}{more}"
