"""A result as it ends in the terminal: sections of its page, as far as their kind declares them for it, as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crossgraft.records.base import CheckRecord, Record
from crossgraft.report.blocks import Block, Checks, Code, Facts, Folded, Heading, Items, Paragraph, Section, Verdict
from crossgraft.report.kinds import KINDS
from crossgraft.report.plots.svg import figures_left_out
from crossgraft.report.source import Source
from crossgraft.report.tables import Table
from crossgraft.result import Result
from crossgraft.words.formatting import count
from crossgraft.words.text_table import place, sentence_width, text_table, wrap
from crossgraft.words.visible import visible

MOST_ROWS = 20
_SEVERITY_WIDTH = len("not assessed") + 2
_LEAST_BESIDE = 24
"""Columns that facts need beside their names; on fewer they stand below them."""
_USE = "Research use, not a medical device."


def result_as_text(result: Result[Any]) -> str:
    """What was found, the answer last, and where the rest is; only the summary of a plan, or where a record has no page."""
    is_plan = result.found is None  # which has no page in any room, so that none is looked into
    body = None if is_plan else record_as_text(result.shown, out=result.out, command_line=result.command_line)
    text = result.summary() if body is None else f"{body}\n\n{_USE}"
    written = "\n".join(place(what, path) for what, path in result.places().items())
    return text if not written else f"{text}\n{written}"


def record_as_text(record: Record, *, out: Path | None = None, command_line: str | None = None) -> str | None:
    """A record by its kind; None for one that has no page.

    Args:
        record: What a verb measured.
        out: Its run directory.
        command_line: What was typed for it.
    """
    source = Source(record, out=out, command_line=command_line)
    kind = KINDS.find(str(getattr(record, "kind", "")), room=source.typed.verb)
    if kind is None:
        return None
    with figures_left_out():
        sections = [section for builder in kind.terminal if (section := builder(source)) is not None]
    return sections_as_text(kind.heading(source), sections)


def sections_as_text(heading: Heading, sections: Sequence[Section]) -> str:
    """Heading and sections in lines that fit the terminal; what is said twice stands where it is said last."""
    printed: set[str] = set()
    parts: list[str] = []
    for section in reversed(sections):
        text = _section(section, printed)
        parts += [text] if text else []
    return "\n\n".join([f"{wrap(heading.title)}\n{wrap(heading.summary)}", *reversed(parts)])


def _section(section: Section, printed: set[str]) -> str:
    """Its blocks under an underlined title, which the answer needs not; the answer itself comes last."""
    title = visible(section.title)
    blocks: list[str] = []
    answer_last = sorted(section.blocks, key=_is_answer)
    for block in reversed(answer_last):
        texts = [text for key, text in _texts(block) if key not in printed]
        printed.update(key for key, _ in _texts(block))
        blocks += ["\n".join(texts).removeprefix(f"{title}:\n")] if texts else []
    body = "\n\n".join(reversed(blocks))
    return body if section.part == "verdict" or not body else f"{title}\n{'-' * min(len(title), sentence_width())}\n{body}"


def _is_answer(block: Block) -> bool:
    return isinstance(block, Verdict) or (isinstance(block, Paragraph) and block.tone == "lead")


def _texts(block: Block) -> list[tuple[str, str]]:
    """The paragraphs of a block, each with what it is about; none of what only a page can show."""
    if isinstance(block, Checks):
        return _checks(block)
    if isinstance(block, Folded) and not block.page_only:
        return [text for inner in block.blocks for text in _texts(inner)]
    return [(text, text) for text in _plain(block)]


def _plain(block: Block) -> list[str]:
    if isinstance(block, Paragraph) and block.tone != "quiet" and not block.page_only:
        return [wrap(block.text)]
    if isinstance(block, Verdict):
        return _verdict(block)
    if isinstance(block, Items):
        return _first([wrap(item, first="- ", indent="  ") for item in block.items])
    if isinstance(block, Facts):
        return _facts(block)
    if isinstance(block, Code):
        return [f"  {visible(line)}" for line in block.text.splitlines()]  # to be copied, so not broken
    if isinstance(block, Table) and not block.page_only:
        return [_table(block)]
    return []


def _verdict(block: Verdict) -> list[str]:
    caveat = [] if block.caveat is None else [wrap(block.caveat, first="Caveat: ", indent="  ")]
    following = [] if block.following is None else [wrap(f"Next, {block.purpose}:"), f"  {visible(block.following)}"]
    return ["\n".join([wrap(block.answer), *caveat, *following])]


def _first(texts: Sequence[str]) -> list[str]:
    return [*texts[:MOST_ROWS], *_left_out(len(texts))]


def _left_out(number: int) -> list[str]:
    return [f"… and {count(number - MOST_ROWS)} more in the report"] if number > MOST_ROWS else []


def _facts(block: Facts) -> list[str]:
    rows = [(visible(name), value) for name, value in block.rows if block.essential is None or name in block.essential]
    width = max((len(name) for name, _ in rows), default=0) + 2
    if sentence_width() - width < _LEAST_BESIDE:
        return [f"{wrap(name)}\n{wrap(value, first='  ', indent='  ')}" for name, value in rows]
    return [wrap(value, first=name.ljust(width), indent=" " * width) for name, value in rows]


def _checks(block: Checks) -> list[tuple[str, str]]:
    """What needs attention, each with its severity in a column of its own; checks that passed by name only."""
    lines = [(check.title, check.severity, _check(check)) for check in block.checks if check.severity != "passed"]
    passed = "; ".join(check.title.lower() for check in block.checks if check.severity == "passed")
    lines += [(passed, "passed", f"{passed}.")] if passed else []
    return [
        (title, wrap(text, first=severity.ljust(_SEVERITY_WIDTH), indent=" " * _SEVERITY_WIDTH))
        for title, severity, text in lines
    ]


def _check(check: CheckRecord) -> str:
    """Title and text; the text alone where it begins with the title, or the title is only the severity."""
    title = check.title.casefold()
    return check.text if title == check.severity or check.text.casefold().startswith(title) else f"{check.title}: {check.text}"


def _table(block: Table) -> str:
    shown = [index for index, column in enumerate(block.columns) if not column.page_only]
    header = [block.columns[index].title for index in shown]
    right = [column.title for column in block.columns if column.numeric]
    rows = [[row[index].text for index in shown] for row in block.rows]
    table = text_table(header, rows[:MOST_ROWS], right=right)
    notes = _first([wrap(note) for note in block.notes])
    return "\n".join([wrap(f"{block.caption}:"), table, *_left_out(len(rows)), *notes])
