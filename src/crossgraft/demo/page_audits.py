"""What the demo shows of its audits: each way to fine-tune the best-ranked model, with artefacts in unseen digits."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.audit.record import AuditEntry, AuditMetric
from crossgraft.audit.words import NUMBERS, OUTCOMES
from crossgraft.demo.record import AuditedModelRecord, DemoRecord
from crossgraft.report.blocks import Block, Paragraph, Section
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Cell, Column, Table, interval, number, words
from crossgraft.words.formatting import joined


def audited_section(source: Source[DemoRecord]) -> Section | None:
    """What artefacts do to each way to fine-tune the best-ranked model; None in older records."""
    best = source.record.best_model
    audits = [] if best is None else best.audits
    if not audits:
        return None
    positive = audits[0].audit.positive
    pages = joined([f"{each.audit_folder}/report.html" for each in audits])
    blocks: list[Block] = [
        Paragraph(
            "Each model was asked about digits of the unseen writers as they are, and with an artefact: in the "
            f"{positive}s alone (it goes with the class), or in all the others (against it). None has seen the artefact in "
            "training, so what the AUC loses is how far another scanner can mislead the model."
        ),
        _table(audits),
        Paragraph(f"The artefacts in pictures, and more: {pages} in the run directory of this demo.", tone="quiet"),
    ]
    return Section(name="audited", title="Can a scanner mislead it?", part="evidence", blocks=blocks)


def _table(audits: Sequence[AuditedModelRecord]) -> Table:
    return Table(
        caption=f"{audits[0].audit.positive} against the other digits, of the unseen writers",
        columns=[
            Column("Trained"),
            Column("Artefact"),
            Column("Outcome"),
            Column("AUC drop", numeric=True),
            INTERVAL,
            Column("AUC as they are", numeric=True),
            Column("With the class", numeric=True),
            Column("Against it", numeric=True),
        ],
        rows=[_row(each.variant, entry) for each in audits for entry in each.audit.entries],
        file_name="audits",
    )


def _row(variant: str, entry: AuditEntry) -> list[Cell]:
    drop, clean, aligned, against = (
        entry.metric(name) or AuditMetric(name=name, value=None)
        for name in ("auc_drop", "clean_auc", "aligned_auc", "ood_auc")
    )
    return [
        words(variant),
        words(entry.confounder),
        words(OUTCOMES[entry.outcome], strong=entry.outcome == "relies"),
        number(drop.value, NUMBERS),
        interval(drop.low, drop.high, NUMBERS),
        *(number(each.value, NUMBERS) for each in (clean, aligned, against)),
    ]
