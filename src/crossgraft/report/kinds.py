"""A kind of report: its record, its heading, its sections, and which of them the terminal shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crossgraft.records.base import Record
from crossgraft.registry import Registry
from crossgraft.report.blocks import Block, Heading, Section
from crossgraft.report.checklists import AnswerOf, Topic
from crossgraft.report.source import Source

SectionBuilder = Callable[[Source[Any]], Section | None]
"""Makes one section, or None when the record has nothing for it."""


@dataclass(frozen=True)
class Kind:
    """One kind of report.

    Attributes:
        record_type: Its record.
        heading: What the page begins with.
        builders: Its sections in the order of the page.
        terminal: What the terminal shows of it, the answer last; the same builders, or others where a page shows a figure.
        only_in_the_file: Fields that are left out of the copy of the record on the page: thousands of numbers that no reader of
            it needs.
        together: What a page of several runs of this kind shows of all of them, above each by itself; they come with the number
            that the page gives them.
        tables_answer: Whether its tables are what was asked for, so that a terminal shows them without ``--verbose``.
        refuse: Raises ``DataError`` for a record, read from a file, that contradicts itself.
        answers: What a record says about topics of checklists; empty: nothing that such guidelines ask for.
    """

    record_type: type[Record]
    heading: Callable[[Source[Any]], Heading]
    builders: Sequence[SectionBuilder]
    terminal: Sequence[SectionBuilder]
    only_in_the_file: tuple[str, ...] = ()
    tables_answer: bool = False
    refuse: Callable[[Any, Path], None] | None = None
    together: Callable[[Mapping[int, Source[Any]]], Sequence[Block]] | None = None
    answers: Mapping[Topic, AnswerOf] = field(default_factory=dict[Topic, AnswerOf], hash=False)

    @property
    def name(self) -> str:
        """What the field ``kind`` of its record says."""
        return str(self.record_type.model_fields["kind"].default)


KINDS: Registry[Kind] = Registry("kind of report", group="crossgraft.reports", plugin_type=Kind, rooms="page:REPORT")
"""Kind of record (its field ``kind``) → how it is shown; other packages add theirs through the entry point."""
