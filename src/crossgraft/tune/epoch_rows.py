"""What the trainer says about epochs, as records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crossgraft.tune.engine.contract import TrainedEpoch
from crossgraft.tune.epochs_record import EpochRow
from crossgraft.tune.planning.grid import GridTraining


def epoch_rows(
    training: GridTraining, history: Sequence[TrainedEpoch], *, metric: str, best_epoch: int
) -> list[EpochRow]:
    """One row per epoch of one training; epochs count from 1, those of the head alone first."""
    num_head = sum(row.phase == "head" for row in history)
    return [
        EpochRow(
            job=training.name,
            epoch=number,
            stage=row.phase,
            learning_rate=row.learning_rate,
            train_loss=number_or_none(row.terms.get("loss")),
            terms={name: value for name, value in row.terms.items() if "/" in name},
            val_loss=number_or_none(row.metrics.get("loss")),
            val_metric=number_or_none(row.metrics.get(metric)),
            val_cka=number_or_none(row.metrics.get("cka")),
            val_cka_debiased=number_or_none(row.metrics.get("cka_debiased")),
            val_cka_adapted=number_or_none(row.metrics.get("cka_adapted")),
            val_cka_debiased_adapted=number_or_none(row.metrics.get("cka_debiased_adapted")),
            metric_reason=None if number_or_none(row.metrics.get(metric)) is not None else _why_none(row.metrics),
            is_best=row.phase == "all" and number - num_head - 1 == best_epoch,
            seconds=row.seconds,
        )
        for number, row in enumerate(history, start=1)
    ]


def number_or_none(value: float | None) -> float | None:
    """None for what is not a number."""
    return None if value is None or value != value else float(value)


def _why_none(metrics: Mapping[str, float]) -> str:
    return "not defined on the validation rows" if metrics else "there are no validation rows"
