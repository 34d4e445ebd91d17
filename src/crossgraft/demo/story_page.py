"""The page of ``crossgraft demo``: the verdict on a model, and the commands that led to it."""

from __future__ import annotations

from crossgraft.data.describe import describe_data
from crossgraft.demo.story import FOLDERS, NEW_IMAGES, PREDICT, TUNE, verdict_in_words
from crossgraft.demo.story_record import StoryRecord
from crossgraft.report.blocks import Block, Code, Gallery, Heading, Paragraph, Section, Subheading
from crossgraft.report.kinds import Kind, SectionBuilder
from crossgraft.report.source import Source
from crossgraft.report.verdict import (
    BEGIN,
    Caveat,
    Gravity,
    checks_section,
    in_one_line,
    provenance_section,
    references_section,
    verdict_blocks,
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
    """The model, what it promises, its biggest caveat, and what this cannot show."""
    record = source.record
    return Section(
        name="verdict",
        title="Verdict",
        part="verdict",
        blocks=[*verdict_blocks(verdict_in_words(record), [_caveat(record)], BEGIN), Paragraph(record.not_shown)],
    )


def step_section(folder: str) -> SectionBuilder:
    """A section of one command: what was typed, and what its page says first."""

    def build(source: Source[StoryRecord]) -> Section | None:
        record = source.record
        places = {step.folder: place for place, step in enumerate(record.steps, start=1)}
        if folder not in places:
            return None
        step = record.steps[places[folder] - 1]
        more = {TUNE: _mistakes, PREDICT: _new_images}.get(folder, lambda _: [])(record)
        page = f"{folder}/report.html"
        blocks: list[Block] = [
            Code(step.command),
            Paragraph(step.answer),
            *([] if step.caveat is None else [Paragraph(f"Caveat: {step.caveat}", tone="quiet", page_only=True)]),
            *more,
        ]
        if source.is_at_home:
            blocks.append(Subheading(f"{source.prefix}page-{folder}", f"The page of crossgraft {folder}", href=page))
        return Section(name=f"step-{folder}", title=f"{places[folder]}. {step.question}", part="evidence", blocks=blocks)

    return build


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


STEPS = tuple(map(step_section, FOLDERS))
STORY = Kind(
    StoryRecord,
    story_heading,
    (story_verdict_section, *STEPS, checks_section, provenance_section, references_section),
    terminal=(*STEPS, story_verdict_section),
)
