"""What was exported, how it is loaded, and how far its outputs agree."""

from __future__ import annotations

from crossgraft.export.record import ExportRecord
from crossgraft.report.blocks import Block, Facts, Heading, Items, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, words
from crossgraft.report.verdict import Caveat, Following, Gravity, verdict_section
from crossgraft.words.formatting import joined, size


def export_heading(source: Source[ExportRecord]) -> Heading:
    """The model, the format, and what loads it."""
    record, model = source.record, source.record.model
    title = f"{model.name}, fine-tuned on {model.trained_on}"
    return Heading(title=title, summary=f"{record.format}, for {record.loads_with}", advice=_agreement(record))


def files_section(source: Source[ExportRecord]) -> Section:
    """The files, and what the model takes and gives."""
    record = source.record
    table = Table(
        caption="Files",
        columns=[Column("File"), Column("Size", numeric=True, csv_titles=("bytes",))],
        rows=[[words(file.name), Cell(size(file.num_bytes), (file.num_bytes,))] for file in record.files],
        file_name="files",
    )
    blocks: list[Block] = [table, Facts([("Takes", record.model.input), ("Gives", record.model.output)])]
    blocks += [Items(record.notes)] if record.notes else []
    return Section(name="files", title="Files", part="evidence", blocks=blocks)


def agreement_section(source: Source[ExportRecord]) -> Section:
    """How far the outputs are from those of the model, and the line that loads it."""
    record = source.record
    caveats = [] if record.agreement.largest_probability_difference is not None else [_LOGITS_ONLY]
    return verdict_section(_agreement(record), caveats, Following(record.how_to_load, "to load it in Python"))


_LOGITS_ONLY = Caveat(
    "It gives logits. Probabilities need the temperature, and decisions the thresholds, that are in description.json.",
    Gravity.LIMITED,
)


def _agreement(record: ExportRecord) -> str:
    agreed = record.agreement
    differences = f"logits differ by at most {agreed.largest_logit_difference:.1e}"
    allowed = f"{agreed.allowed_logit_difference:.1e}"
    if agreed.largest_probability_difference is not None and agreed.allowed_probability_difference is not None:
        differences += f", probabilities by at most {agreed.largest_probability_difference:.1e}"
        allowed += f" and {agreed.allowed_probability_difference:.1e}"
    return (
        f"Loaded again with {agreed.checked_with} and compared with the model on {agreed.num_images} generated images, in "
        f"batches of {joined(list(map(str, agreed.batch_sizes)))}: {differences} (allowed: {allowed})."
    )


REPORT = Kind(
    ExportRecord,
    export_heading,
    (agreement_section, files_section),
    tables_answer=True,
    terminal=(files_section, agreement_section),
)
