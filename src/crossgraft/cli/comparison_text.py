"""Several fine-tunings as they end in the terminal: at most 100 columns, answer last, no colour needed."""

from __future__ import annotations

from pathlib import Path

from crossgraft.cli.text_table import place, text_table, wrap
from crossgraft.records import ComparedVariantRecord, FineTuningComparisonRecord
from crossgraft.report.plots.style import shortened
from crossgraft.words.comparison_words import NUMBERS, answer_in_words, difference_in_words
from crossgraft.words.formatting import MISSING, counted, describe_classes, duration
from crossgraft.words.visible import visible

_LONGEST_NAME = 22


def comparison_text(record: FineTuningComparisonRecord, report: Path | None) -> str:
    """Data and model, one line per variant, what limits it, the answer, the path of the report."""
    parts = [_heading(record), variants_text(record), *_curve(record)]
    parts += [wrap(f"{check.title}: {check.text}") for check in record.checks if check.severity == "unsound"]
    parts += [wrap(f"Warning: {warning}") for warning in record.warnings]
    parts += [wrap(f"{record.interval_words} {record.leakage}")]
    answer = wrap(f"{answer_in_words(record)} Research use, not a medical device.")
    parts.append(answer if report is None else f"{answer}\n{place('Report', report)}")
    return "\n\n".join(parts)


def _heading(record: FineTuningComparisonRecord) -> str:
    data = record.dataset
    splits = ", ".join(f"{row.num_images} {row.name}" for row in record.splits)
    first = " · ".join([data.name, f"{counted(data.num_images, 'image')} ({splits})", describe_classes(data)])
    many = f"{counted(len(record.variants), 'way', 'ways')} to fine-tune, {counted(len(record.seeds), 'seed')}"
    second = " · ".join([record.model.name, many, f"{duration(record.seconds)} of training"])
    return f"{wrap(first)}\n{wrap(second)}"


def variants_text(record: FineTuningComparisonRecord) -> str:
    """One line per variant, the best first."""
    header = [record.metric_title.lower(), "value", "95 % interval", "CKA", "debiased", "time"]
    header.append("" if record.full is None else "minus full")
    rows = [_row(row, has_full=record.full is not None) for row in record.variants]
    return text_table(header, rows, right=header[1:6])


def _row(row: ComparedVariantRecord, *, has_full: bool) -> list[str]:
    ratio = MISSING if row.time_ratio is None else f"×{row.time_ratio:.2f}"
    failed = f"{row.num_failed} failed" if row.num_failed else ""
    return [
        shortened(visible(row.variant), _LONGEST_NAME),
        NUMBERS(row.metric.value),
        NUMBERS.interval(row.metric.low, row.metric.high),
        NUMBERS(row.cka.value),
        NUMBERS(row.cka_debiased.value),
        ratio if row.time_ratio is not None or row.seconds is None else duration(row.seconds),
        failed or (difference_in_words(row.difference) if has_full and not row.is_full else ""),
    ]


def _curve(record: FineTuningComparisonRecord) -> list[str]:
    """Which variants weight interpolation could have replaced, where that was measured."""
    if not record.interpolation:
        return []
    sure = [row.variant for row in record.variants if row.above_curve is not None and (row.above_curve.low or 0) > 0]
    asked = [
        row.variant for row in record.variants if row.above_curve is not None and row.above_curve.value is not None
    ]
    if not asked:
        return []
    what = "Mixing the weights of the pretrained network and of full costs no training."
    found = (
        f"Better than that at the same CKA: {', '.join(sure)}."
        if sure
        else ("For no way to fine-tune do intervals show that it is better than that at the same CKA.")
    )
    return [wrap(f"{what} {found}")]
