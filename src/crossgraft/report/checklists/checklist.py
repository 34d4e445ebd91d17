"""What a checklist is, and how one is filled: an item is answered only where a record says something about its topics."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from crossgraft.report.source import Source
from crossgraft.words.visible import csv_text, visible

Topic = Literal[
    "source of the data", "images in each part", "classes in each part", "preprocessing", "subset of images", "unreadable images",
    "how parts were made", "unit of the parts", "model", "software", "initial weights", "training", "choice of the model",
    "ensemble", "measures", "uncertainty", "robustness", "what the network looks at", "test on held-out images",
    "test on images from elsewhere", "performance", "performance of each class", "subgroups", "domains", "mistakes",
    "limitations", "class balance", "output", "how predictions are made", "saved model",
]  # fmt: skip
"""What checklists ask for and records may answer. Whatever else they ask is for people to answer."""

AnswerOf = Callable[[Source[Any]], str | None]
"""What a run says about a topic, as the end of "answered by this run: …"; None where it says nothing."""

ItemState = Literal["answered by this run", "answered in part", "yours to answer"]


@dataclass(frozen=True)
class ChecklistItem:
    """One item.

    Args:
        number: As in the guideline.
        section: Its part of the guideline.
        topic: What it asks for, in our own short words.
        answered_by: Topics that a run may know; every one of them that it does know is told.
        still_yours: What no run can know of it, so that it is answered in part at most; empty: nothing.
    """

    number: str
    section: str
    topic: str
    answered_by: tuple[Topic, ...] = ()
    still_yours: str = ""


@dataclass(frozen=True)
class Checklist:
    """A reporting guideline.

    Args:
        name: Name that ``report --checklist`` takes.
        title: As its authors call it, with the year.
        reference: Where it is published; the wording that counts is there.
        items: In the order of the guideline.
    """

    name: str
    title: str
    reference: str
    items: Sequence[ChecklistItem]


@dataclass(frozen=True)
class FilledItem:
    """One item with what runs answer.

    Attributes:
        item: The item.
        answers: Topic → answer, of those that are known.
    """

    item: ChecklistItem
    answers: Mapping[str, str]

    @property
    def state(self) -> ItemState:
        """Answered only where every topic is known and nothing is left for people."""
        if not self.answers:
            return "yours to answer"
        is_whole = len(self.answers) == len(self.item.answered_by) and not self.item.still_yours
        return "answered by this run" if is_whole else "answered in part"

    @property
    def yours(self) -> str:
        """What people have to add to what is answered; empty where that is everything."""
        missing = [topic for topic in self.item.answered_by if topic not in self.answers]
        if not self.answers:
            return ""
        return "; ".join([*missing, *([self.item.still_yours] if self.item.still_yours else [])])


def answers_of(runs: Sequence[tuple[Source[Any], Mapping[Topic, AnswerOf]]]) -> dict[Topic, str]:
    """What the runs know, by topic; several runs are told apart by the command that made them."""
    known: dict[Topic, list[str]] = {}
    for number, (source, answers) in enumerate(runs, start=1):
        for topic, answer in answers.items():
            if (text := answer(source)) is not None:
                command = "" if source.run is None else f", {source.run.command}"
                known.setdefault(topic, []).append(text if len(runs) == 1 else f"run {number}{command}: {text}")
    return {topic: "; ".join(texts) for topic, texts in known.items()}


def fill(checklist: Checklist, known: Mapping[Topic, str]) -> list[FilledItem]:
    """Every item with those of its topics that are known."""
    return [FilledItem(item, {topic: known[topic] for topic in item.answered_by if topic in known}) for item in checklist.items]


def tally(filled: Sequence[FilledItem]) -> str:
    """How many items are answered, as part of a sentence.

    >>> whole, part = ChecklistItem("1", "", "", ("model",)), ChecklistItem("2", "", "", ("model",), "why")
    >>> tally([FilledItem(whole, {"model": "ViT"}), FilledItem(part, {"model": "ViT"}), FilledItem(part, {})])
    '1 of 3 items answered, 1 in part, 1 yours to answer'
    """
    number = {state: sum(each.state == state for each in filled) for state in ("answered by this run", "answered in part")}
    whole, part = number.values()
    return f"{whole} of {len(filled)} items answered, {part} in part, {len(filled) - whole - part} yours to answer"


_HEADER = ("item", "section", "topic", "state", "answered_by_this_run", "yours_to_answer")
_MARKDOWN = re.compile(r"[\\`*<&|\[\]]")
"""What a name of a folder or a class could write tags, links or cells with; a backslash before it takes that from it."""
MARK = "<!-- checklist filled by crossgraft -->"
"""First line of the Markdown file; says that a file may be replaced by another one."""


def is_filled_checklist(content: bytes) -> bool:
    """Whether this is the content of a file that ``as_markdown`` or ``as_csv`` made."""
    return content.startswith((MARK.encode(), ",".join(_HEADER).encode()))


def as_csv(filled: Sequence[FilledItem]) -> str:
    """One row an item."""
    rows = [(row.item.number, row.item.section, row.item.topic, row.state, _told(row), row.yours) for row in filled]
    return csv_text(_HEADER, rows)


def as_markdown(checklist: Checklist, filled: Sequence[FilledItem]) -> str:
    """A heading, what was counted, and one table for each section of the guideline."""
    about = (
        f"Filled from what was recorded: {tally(filled)}. Topics are in our own words; the wording that counts is in "
        f"{checklist.reference} Check every answer: this is a draft for authors, for research use, and no proof that the "
        "guideline is met."
    )
    parts = [MARK, f"# {checklist.title}", about]
    for section in dict.fromkeys(row.item.section for row in filled):
        lines = ["| Item | Topic | Answer |", "| --- | --- | --- |"]
        lines += [_line(row) for row in filled if row.item.section == section]
        parts += [f"## {section}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _line(row: FilledItem) -> str:
    yours = f"Yours to answer{': ' if row.yours else ''}{row.yours}."
    told = f"Answered by this run: {_told(row).rstrip('.')}." if row.answers else ""
    answer = " ".join([*([told] if told else []), *([yours] if row.state != "answered by this run" else [])])
    cells = (_MARKDOWN.sub(r"\\\g<0>", visible(text)) for text in (row.item.number, row.item.topic, answer))
    return f"| {' | '.join(cells)} |"


def _told(row: FilledItem) -> str:
    return "; ".join(text.rstrip(".") for text in row.answers.values())
