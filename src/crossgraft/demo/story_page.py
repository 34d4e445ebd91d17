"""The page of ``crossgraft demo``: the verdict on a model, and the commands that led to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from crossgraft.data.describe import describe_data
from crossgraft.demo.story import AUDIT, FOLDERS, NEW_IMAGES, PREDICT, RANK, SELECT, TUNE, verdict_in_words
from crossgraft.demo.story_record import StoryRecord
from crossgraft.records.base import Record
from crossgraft.report.blocks import Block, Code, Folded, Gallery, Heading, Paragraph, Section, Subheading
from crossgraft.report.kinds import Kind, SectionBuilder
from crossgraft.report.notebook import verdict_and_figure
from crossgraft.report.source import Source
from crossgraft.report.verdict import (
    BEGIN,
    Caveat,
    Gravity,
    checks_section,
    in_one_line,
    provenance_section,
    references_section,
    verdict_section,
)
from crossgraft.words.formatting import counted, joined


def _caveat(record: StoryRecord) -> Caveat:
    return Caveat(record.caveat, Gravity.HARM)


def story_heading(source: Source[StoryRecord]) -> Heading:
    """What was done, on what."""
    record = source.record
    return Heading(
        title="Demo: which network, what does it promise, and what speaks against it?",
        summary=describe_data(record.dataset),
        advice=in_one_line(verdict_in_words(record), [_caveat(record)]),
    )


def story_verdict_section(source: Source[StoryRecord]) -> Section:
    """The model, what it promises, and its biggest caveat."""
    record = source.record
    return verdict_section(verdict_in_words(record), [_caveat(record)], BEGIN)


def step_section(folder: str) -> SectionBuilder:
    """A section of one command: what was typed, and what its page says first."""

    def build(source: Source[StoryRecord]) -> Section | None:
        record = source.record
        places = {step.folder: place for place, step in enumerate(record.steps, start=1)}
        if folder not in places:
            return None
        step = record.steps[places[folder] - 1]
        behind: list[Block] = [Code(step.command)]
        if step.caveat is not None:
            behind.append(Paragraph(f"Caveat: {step.caveat}", tone="quiet", page_only=True))
        if source.is_at_home:
            page = f"{folder}/report.html"
            behind.append(Subheading(f"{source.prefix}page-{folder}", f"The page of crossgraft {folder}", href=page))
        blocks: list[Block] = [
            Paragraph(step.answer),
            *(_PICTURES[folder](record) if folder in _PICTURES else []),
            Folded("Command, caveat, page", behind, page_only=False),
        ]
        return Section(
            name=f"step-{folder}", title=f"{places[folder]}. {step.question}", part="evidence", blocks=blocks, is_first=True
        )

    return build


def _figure(record: Record | None, caption: str) -> list[Block]:
    """What its page shows first, in fewer words."""
    _, figure = (None, None) if record is None else verdict_and_figure(record)
    return [] if figure is None else [replace(figure, caption=caption)]


def _mistakes(record: StoryRecord) -> list[Block]:
    """What the tuned model gets wrong, in words and pictures."""
    wrong = f"What it gets wrong: {record.mistakes.num_wrong} of {counted(record.mistakes.num_images, 'digit')}"
    pairs = joined([f"{pair.target} read as {pair.answer} ({pair.num_images})" for pair in record.confused])
    most = f"; most often {pairs}." if pairs else "."
    pictures: dict[str, list[str]] = {}
    for mistake, png in zip(record.mistakes.most_certain, record.mistakes_png, strict=False):
        pictures.setdefault(f"{mistake.target}, read as {mistake.answer}", []).append(png)
    gallery: list[Block] = [Paragraph("Those that it was surest of:", page_only=True), Gallery(pictures, noun="mistake")]
    return [Paragraph(wrong + most), *(gallery if pictures else [])]


def _new_images(record: StoryRecord) -> list[Block]:
    """One image of each unseen writer, and what the model reads."""
    pictures: dict[str, list[str]] = {}
    for row in record.new_images:
        if row.png_base64 is not None:
            read = "right" if row.target == row.decision else f"read as {row.decision}"
            pictures.setdefault(f"{row.target}, {read}", []).append(row.png_base64)
    right = sum(row.target == row.decision for row in record.new_images)
    said = f"{right} of {len(record.new_images)} digits in {NEW_IMAGES}, one of each unseen writer, are read rightly."
    return [Paragraph(said), *([Gallery(pictures, noun="digit")] if pictures else [])]


_PICTURES: Mapping[str, Callable[[StoryRecord], list[Block]]] = {
    RANK: lambda record: _figure(
        record.ranking,
        "Dots: scores with 95 % intervals; hollow: random weights. Brackets join models that the images cannot tell apart.",
    ),
    SELECT: lambda record: _figure(record.selection, "The square is handed over."),
    TUNE: _mistakes,
    AUDIT: lambda record: _figure(record.audit, "AUC where the artefact comes as in training (i.i.d.) and against it (o.o.d.)."),
    PREDICT: _new_images,
}
"""What a step shows besides its answer."""


def limits_section(source: Source[StoryRecord]) -> Section:
    """What such images cannot show."""
    return Section("limits", "What this cannot show", part="evidence", blocks=[Paragraph(source.record.not_shown)])


STEPS = (*map(step_section, FOLDERS), limits_section)
STORY = Kind(
    StoryRecord,
    story_heading,
    (story_verdict_section, *STEPS, checks_section, provenance_section, references_section),
    terminal=(*STEPS, story_verdict_section),
)
