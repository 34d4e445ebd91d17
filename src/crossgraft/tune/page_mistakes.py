"""The wrong answers that the model is surest of, to be looked at."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.report.blocks import Block, Gallery, Paragraph, Section
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, Table, number, table_of, whole, words
from crossgraft.tune.mistakes_record import MistakeRecord
from crossgraft.tune.record import TuningRecord
from crossgraft.words.formatting import NumberFormat, count, counted

_PROBABILITY = NumberFormat(decimals=3)


def mistakes_section(source: Source[TuningRecord]) -> Section | None:
    """Small images of the most certain mistakes, or a table of them; None without any."""
    found = source.record.mistakes
    if found is None or not found.most_certain:
        return None
    pictures = {each.row: each.png_base64 for each in source.thumbnails if each.row is not None}
    shown = len(found.most_certain)
    which = f"The {shown} most certain" if shown < found.num_wrong else "All"
    text = (
        f"{count(found.num_wrong)} of {counted(found.num_images, 'image')} had a wrong answer. {which} of them are shown, the "
        "surest first: a label may be wrong, or the picture may show what the model really goes by. Numbers are rows of the "
        "data, from 1."
    )
    blocks: list[Block] = [Paragraph(text)]
    gallery = {_caption(each): [pictures[each.row]] for each in found.most_certain if each.row in pictures}
    if gallery:
        blocks.append(Gallery(gallery, noun="mistake", in_columns=True))
    else:
        blocks += [_table(found.most_certain), Paragraph(_NO_IMAGES, tone="quiet")]
    return Section(name="mistakes", title="Most certain mistakes", part="evidence", blocks=blocks)


_NO_IMAGES = "No images are shown: none were kept with this run (--no-images)."


def _caption(row: MistakeRecord) -> str:
    return f"Row {row.row}: {row.answer} ({_PROBABILITY(row.probability)}), true {row.target}"


def _table(rows: Sequence[MistakeRecord]) -> Table:
    return table_of(
        rows,
        [
            (Column("Row"), lambda row: whole(row.row)),
            (Column("Answer"), lambda row: words(row.answer)),
            (Column("Probability", numeric=True), lambda row: number(row.probability, _PROBABILITY)),
            (Column("True"), lambda row: words(row.target)),
        ],
        caption="Most certain mistakes",
        file_name="mistakes",
    )
