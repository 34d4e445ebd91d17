"""How similar the features stayed to those of the pretrained network, beside what BatchNorm statistics do on their own."""

from __future__ import annotations

from collections.abc import Mapping

from crossgraft.report.blocks import Block, Paragraph, Section
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, Table, number, words
from crossgraft.tune.record import TuningRecord
from crossgraft.tune.similarity_words import ADAPTED, CKA, NUMBERS, meaning_of, similarity_rows

_WHAT_IT_IS = (
    "CKA says how alike two networks make the features of the test images: 1 is the same up to rotation and scale. The debiased "
    "one of unrelated features is about 0, however few images there are."
)
_STATISTICS = (
    "BatchNorm layers keep means and variances of the images that they were trained on. Images of another kind have others, and "
    "features change with them although no weight does."
)


def similarity_section(source: Source[TuningRecord]) -> Section | None:
    """Similarity of the fine-tuned network, and of untouched weights under other statistics; None where it was not measured."""
    record = source.record
    if not record.similarity:
        return None
    meaning = meaning_of(record.similarity, record.batch_norm, from_scratch=record.model.from_scratch)
    blocks: list[Block] = [similarity_table(record.similarity)]
    if meaning is not None:
        blocks.append(Paragraph(meaning))
    blocks.append(Paragraph(_WHAT_IT_IS if meaning is None else f"{_WHAT_IT_IS} {_STATISTICS}", tone="quiet"))
    return Section(name="similarity", title="Similarity to the pretrained network", part="evidence", blocks=blocks)


def similarity_table(similarity: Mapping[str, float]) -> Table:
    """One row of a network without BatchNorm, and two of one that has some; the terminal shows what is debiased."""
    rows = similarity_rows(similarity)
    kinds, has_statistics = next(iter(rows.values())), len(rows) > 1
    return Table(
        caption="Features of the test images, compared with those of the pretrained network",
        columns=[
            Column("Network"),
            *(Column(CKA[name], numeric=True, page_only="debiased" not in name) for name in kinds),
        ],
        rows=[[words(name), *(number(value, NUMBERS) for value in values.values())] for name, values in rows.items()],
        file_name="similarity",
        muted_rows=frozenset([1] if has_statistics else []),
        notes=[ADAPTED] if has_statistics else [],
    )
