"""Predictions as they end in the terminal: at most 100 columns, answer first, no colour needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crossgraft.cli.text_table import place, text_table, wrap
from crossgraft.records import PredictionRecord, PredictionRow
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import count, counted, percent
from crossgraft.words.metric_words import metric_in_words, overall

if TYPE_CHECKING:
    from crossgraft.tune.predictions import Predictions

_MOST_ROWS = 20
_LONGEST_NAME = 48
_LONGEST_DECISION = 30


def predict_text(predictions: Predictions) -> str:
    """How many images of each class, the metrics where they are known, the first images, and where the rest is."""
    record = predictions.record
    parts = [wrap(_heading(record)), _counts(record), _metrics(record), _rows(predictions), _where(predictions)]
    return "\n\n".join(part for part in parts if part)


def _heading(record: PredictionRecord) -> str:
    unreadable = f", {count(record.num_unreadable)} unreadable" if record.num_unreadable else ""
    calibrated = "calibrated" if record.temperature is not None else "probabilities not calibrated"
    return (
        f"{record.data_name} · {counted(record.num_images, 'image')}{unreadable} · {record.model.name}, fine-tuned on "
        f"{record.model_trained_on} · {calibrated}"
    )


def _counts(record: PredictionRecord) -> str:
    what = recorded_task(record).noun
    rows = [
        [name[:40], count(images), percent(images / max(record.num_images, 1))]
        for name, images in record.predicted_counts.items()
    ]
    return text_table([what, "images", "share"], rows, right=["images", "share"])


def _metrics(record: PredictionRecord) -> str:
    return "\n".join(wrap(f"{metric_in_words(row)}.", indent="  ") for row in overall(record.metrics)[:4])


def _rows(predictions: Predictions) -> str:
    """The first images; all of them are in the table that is written."""
    record = predictions.record
    shown = list(zip(predictions.names, record.rows, strict=True))[:_MOST_ROWS]
    with_targets = any(row.target is not None for _, row in shown)
    header = ["image", "decision", "probability", *(["true"] if with_targets else [])]
    lines = [
        [
            name[-_LONGEST_NAME:],
            row.decision[:_LONGEST_DECISION],
            _probability(row, record),
            *([row.target or ""] if with_targets else []),
        ]
        for name, row in shown
    ]
    more = f"\n… and {count(len(record.rows) - _MOST_ROWS)} more" if len(record.rows) > _MOST_ROWS else ""
    return text_table(header, lines, right=["probability"]) + more


def _probability(row: PredictionRow, record: PredictionRecord) -> str:
    """Probability of the decision."""
    probability = row.probability_of_decision(record.class_names)
    return "" if probability is None else f"{probability:.3f}"


def _where(predictions: Predictions) -> str:
    if predictions.out is None:
        return ""
    table = place("Table", predictions.out / "predictions.csv")
    return table if predictions.report is None else f"{table}\n{place('Report', predictions.report)}"
