"""The support set of one episode, looked at: images and prototypes of each head, their gap, and the theorems about it."""

from __future__ import annotations

from crossgraft.fewshot.plot_episode_look import episode_look_figure
from crossgraft.fewshot.record import EpisodeLookRecord, FewshotRecord, HeadLookRecord
from crossgraft.report.blocks import Block, Figure, Paragraph, Section
from crossgraft.report.plots.layer_pca import MOST_NAMED_CLASSES
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, number, words
from crossgraft.words.formatting import NumberFormat, counted

_NUMBER = NumberFormat(decimals=3)


def look_section(source: Source[FewshotRecord]) -> Section | None:
    """One figure per head with prototypes; None where no head has some."""
    look = source.record.look
    if look is None:
        return None
    blocks: list[Block] = [
        Paragraph(
            "What heads make of one support set. A picture explains; it decides nothing: that is for the means over episodes."
        )
    ]
    for place, head in enumerate(look.heads):
        wide, narrow = (
            episode_look_figure(
                look, head, identifier=f"{source.prefix}look-{place}{'' if is_wide else '-narrow'}", is_wide=is_wide
            )
            for is_wide in (True, False)
        )
        blocks.append(Figure([wide], caption=_caption(look, head), narrow=[narrow]))
    return Section(
        name="look", title="One episode, looked at", part="evidence", blocks=[*blocks, _gaps(look), _bounds(look)]
    )


def _caption(look: EpisodeLookRecord, head: HeadLookRecord) -> str:
    unnamed = "" if len(look.class_names) <= MOST_NAMED_CLASSES else " The classes are too many to be named."
    least = head.shifts[min(range(len(head.losses)), key=head.losses.__getitem__)]
    best = f"{least:+.1f}".replace("-", "−")
    return (
        f"{head.head} on episode {look.number}, {counted(len(look.classes), 'image')}. First: unit vectors along two "
        f"principal components. Second: rows are images, columns prototypes. Third: the loss of CoPA when images and prototypes "
        f"are moved apart along their gap; it is least (hollow) at {best}.{unnamed}"
    )


def _gaps(look: EpisodeLookRecord) -> Table:
    return Table(
        caption="Gap between images and prototypes",
        columns=[Column("Head"), Column("By image", numeric=True), Column("By class", numeric=True)],
        rows=[
            [words(head.head), number(head.gap_by_instance, _NUMBER), number(head.gap_by_class, _NUMBER)]
            for head in look.heads
        ],
        file_name="gaps",
        notes=[
            "Length of the mean unit vector of images less that of prototypes. By image: a prototype counts once per image, as "
            "in published figures; by class: once, as in the published formula.",
        ],
    )


def _bounds(look: EpisodeLookRecord) -> Table:
    rows: list[list[Cell]] = [
        [
            words(head.head),
            words(bound.name),
            number(bound.lower, _NUMBER),
            number(bound.value, _NUMBER),
            number(bound.upper, _NUMBER),
        ]
        for head in look.heads
        for bound in head.bounds
    ]
    return Table(
        caption="Both sides of the theorems of CoPA",
        columns=[
            Column("Head"),
            Column("Theorem"),
            Column("Lower bound", numeric=True),
            Column("Value", numeric=True),
            Column("Upper bound", numeric=True),
        ],
        rows=rows,
        file_name="bounds",
        notes=["Cosines are not scaled in these losses. 3.2 is about one map for both, so that CoPA has no such row."],
    )
