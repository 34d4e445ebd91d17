"""From logits to decisions: the temperature, what it did to the calibration, and the thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.metrics.plot_reliability import reliability_figure
from crossgraft.metrics.record import CalibrationRecord, ThresholdRecord
from crossgraft.report.blocks import Block, Figure, Paragraph, Section
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, Table, number, table_of, whole, words
from crossgraft.tune.record import TuningRecord
from crossgraft.words.formatting import NumberFormat, counted

_ERROR = NumberFormat(decimals=3)
_SHARE = NumberFormat(decimals=2)


def calibration_section(source: Source[TuningRecord]) -> Section | None:
    """Whether probabilities mean what they say, before and after the temperature."""
    record = source.record
    calibration = record.calibration
    if calibration is None:
        if record.calibration_reason is None:
            return None
        text = f"Probabilities were not calibrated: {record.calibration_reason.rstrip('.')}."
        return Section(name="calibration", title="Calibration", part="evidence", blocks=[Paragraph(text)])
    blocks: list[Block] = [Paragraph(_in_words(calibration))]
    if any(bin_.num_images for bin_ in calibration.bins_raw):
        drawing = reliability_figure(
            calibration.bins_raw, calibration.bins_calibrated, identifier=f"{source.prefix}reliability"
        )
        caption = (
            "Each mark is a bin of images by the probability that the model states, its area the number of images. On the dashed "
            "line probabilities mean what they say; below it the model is too sure of itself."
        )
        blocks.append(Figure([drawing], caption=caption))
    return Section(name="calibration", title="Calibration", part="evidence", blocks=blocks)


def _in_words(calibration: CalibrationRecord) -> str:
    images = counted(calibration.num_images, "image")
    before, after = _ERROR(calibration.error_raw), _ERROR(calibration.error_calibrated)
    if calibration.temperature is None:
        reason = (calibration.reason or "not stated why").rstrip(".")
        return f"No temperature was fitted: {reason}. The calibration error is {before} on unseen images."
    tells = "less sure" if calibration.temperature > 1 else "surer"
    several = ""
    if len(calibration.temperatures) > 1:
        low, high = min(calibration.temperatures), max(calibration.temperatures)
        several = f" The folds have temperatures from {low:.3g} to {high:.3g}."
    return (
        f"Logits are divided by the temperature {calibration.temperature:.3g}, fitted on {calibration.fitted_on} ({images}), "
        f"which makes the model {tells}.{several} The calibration error is {before} before and {after} after it, on images "
        "that it was not fitted on."
    )


def thresholds_section(source: Source[TuningRecord]) -> Section | None:
    """From which probability on a class is decided for; None where the most probable class is."""
    thresholds = source.record.thresholds
    if not thresholds:
        return None
    text = (
        "The threshold was chosen on the validation rows; sensitivity and specificity beside it are of those rows and look "
        "better than they are. What the decisions are worth is under Metrics."
    )
    blocks = [Paragraph(text, page_only=True), thresholds_table(thresholds)]
    return Section(name="thresholds", title="Decision thresholds", part="evidence", blocks=blocks)


def thresholds_table(thresholds: Sequence[ThresholdRecord]) -> Table:
    """One row per class or label."""
    return table_of(
        thresholds,
        [
            (Column("Class"), lambda row: words(row.class_name)),
            (Column("Threshold", numeric=True), lambda row: number(row.threshold, _ERROR)),
            (Column("Rule"), lambda row: words(row.rule)),
            (Column("Fitted on"), lambda row: words(row.fitted_on)),
            (Column("Positive images", numeric=True), lambda row: whole(row.num_positive)),
            (Column("Sensitivity", numeric=True), lambda row: number(row.sensitivity, _SHARE)),
            (Column("Specificity", numeric=True), lambda row: number(row.specificity, _SHARE)),
        ],
        caption="From which probability on a class is decided for",
        file_name="thresholds",
        notes=[f"{row.class_name}: {row.reason.rstrip('.')}." for row in thresholds if row.reason],
    )
