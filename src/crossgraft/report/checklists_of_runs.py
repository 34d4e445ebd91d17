"""The section of a page, and the file, that say what a run answers of each checklist."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crossgraft.options.command import RUN
from crossgraft.report.blocks import Block, Code, Folded, Paragraph, Section
from crossgraft.report.checklists import CHECKLISTS, Topic
from crossgraft.report.checklists.checklist import Checklist, FilledItem, answers_of, as_csv, as_markdown, fill, tally
from crossgraft.report.kinds import kind_of, read_run
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, table_of, words


def checklists_section(source: Source[Any]) -> Section | None:
    """How much of each checklist the run answers, each topic once, and what is left; None for what is no run."""
    if source.run is None:
        return None
    known = answers_of([(source, kind_of(source).answers)])
    filled = {checklist: fill(checklist, known) for _, checklist in CHECKLISTS}
    counts = "; ".join(f"{checklist.title}: {tally(rows)}" for checklist, rows in filled.items())
    blocks: list[Block] = [
        Paragraph(f"{counts}. As a file, to be checked and sent with a paper:"),
        Code("\n".join(f"crossgraft report {RUN} --checklist {name} --out {name}.md" for name, _ in CHECKLISTS)),
        Folded("Answered by this run", [_answered(filled, known)]),
        *(Folded(f"Yours to answer: {checklist.title}", [_left(checklist, rows)]) for checklist, rows in filled.items()),
    ]
    return Section(name="checklists", title="Checklists of journals", part="how it was made", blocks=blocks)


def _answered(filled: dict[Checklist, list[FilledItem]], known: dict[Topic, str]) -> Block:
    """One row a topic, with the items that ask for it."""
    asked = {
        topic: [
            ", ".join(row.item.number for row in rows if topic in row.item.answered_by) for rows in filled.values()
        ]
        for topic in known
    }  # fmt: skip
    rows: list[tuple[Topic, str]] = [(topic, answer) for topic, answer in known.items() if any(asked[topic])]
    return table_of(
        rows,
        [
            (Column("Topic"), lambda row: words(row[0].capitalize())),
            (Column("Answer"), lambda row: words(_SAID_ABOVE.get(*row))),
            *(
                (Column(f"{checklist.title} item"), lambda row, place=place: words(asked[row[0]][place] or None))
                for place, checklist in enumerate(filled)
            ),
        ],
        caption="What this run answers, and the items that ask for it",
        file_name="checklist-answers",
        page_only=True,
    )


_SAID_ABOVE: dict[Topic, str] = {"limitations": "the caveats of the verdict", "choice of the model": "the rule below the verdict"}
"""What a page tells already, so that it is not told twice."""


def _left(checklist: Checklist, rows: Sequence[FilledItem]) -> Block:
    return table_of(
        [row for row in rows if row.state != "answered by this run"],
        [
            (Column("Item"), lambda row: words(row.item.number)),
            (Column("Topic"), lambda row: words(row.item.topic)),
            (Column("Still open"), lambda row: words(row.yours or "all of it")),
        ],
        caption=f"What {checklist.title} asks and this run cannot say",
        file_name=f"{checklist.name}-open",
        page_only=True,
    )


def filled_checklist(directories: Sequence[Path], name: str, *, as_table: bool) -> str:
    """The text of the file.

    Args:
        directories: Folders of runs; an item is answered where any of them answers it.
        name: Name of the checklist.
        as_table: CSV instead of Markdown.

    Raises:
        UnknownNameError: There is no checklist of this name.
        RunDirectoryError: One is no run.
        DataError: A record is damaged.
    """
    checklist = CHECKLISTS.get(name)
    sources = [read_run(directory) for directory in directories]
    filled = fill(checklist, answers_of([(source, kind_of(source).answers) for source in sources]))
    return as_csv(filled) if as_table else as_markdown(checklist, filled)
