"""A result as it ends in the terminal, as plain text: its verdict in ten lines, or the sections that its kind declares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crossgraft.records.base import CheckRecord, Record
from crossgraft.report.blocks import Block, Checks, Code, Facts, Folded, Heading, Items, Paragraph, Section, Verdict
from crossgraft.report.kinds import KINDS
from crossgraft.report.plots.svg import figures_left_out
from crossgraft.report.source import Source
from crossgraft.report.tables import Table
from crossgraft.words.formatting import count
from crossgraft.words.text_table import place, sentence_width, terminal_width, text_table, wrap, wrap_in
from crossgraft.words.visible import visible

MOST_ROWS = 20
_SEVERITY_WIDTH = len("not assessed") + 2
_LEAST_BESIDE = 24
"""Columns that facts need beside their names; on fewer they stand below them."""
MOST_LINES = 10
"""Lines of a result, unless ``--verbose`` asks for all of it."""
USE = "Research use, not a medical device."
_MORE = "All tables: --verbose."


def verdict_of(source: Source[Any]) -> Verdict | None:
    """The verdict of a record; None where its tables are what was asked for, or it has no page."""
    kind = KINDS.find(str(getattr(source.record, "kind", "")), room=source.typed.verb)
    if kind is None or kind.tables_answer:
        return None
    with figures_left_out():
        sections = (section for builder in reversed(kind.terminal) if (section := builder(source)) is not None)
        blocks = next((section.blocks for section in sections if section.part == "verdict"), ())
    return next((block for block in blocks if isinstance(block, Verdict)), None)


def in_brief(verdict: Verdict, places: Mapping[str, object], *, num_lines: int = MOST_LINES) -> str:
    """Answer and caveat share the lines that the next command and the places leave, whole sentences each.

    Args:
        verdict: What was found.
        places: Where what was written lies, by what it is.
        num_lines: Lines of the terminal, which breaks a long command.
    """
    then = _following(verdict)
    end = [*_where(places), *wrap(f"{USE} {_MORE}").split("\n")]
    room = max(2, num_lines - sum(map(_height, [*then, *end])))
    caveat_alone = [] if verdict.caveat is None else _caveat(verdict.caveat, room)
    answer = wrap_in(max(room - len(caveat_alone), (room + 1) // 2), verdict.answer)
    caveat = [] if verdict.caveat is None else _caveat(verdict.caveat, max(1, room - len(answer)))
    return "\n".join([*answer, *caveat, *then, *end])


def _caveat(text: str, num_lines: int) -> list[str]:
    return wrap_in(num_lines, text, first="Caveat: ", indent="  ")


def _height(line: str) -> int:
    """Lines that a terminal makes of one that is not broken here."""
    return max(1, math.ceil(len(line) / terminal_width()))


def _where(places: Mapping[str, object]) -> list[str]:
    """Page and other files; those in the folder of the page, or in one below it, on its line."""
    page = places.get("Report")
    if page is None:
        return [place(what, path) for what, path in places.items()]
    folder = Path(str(page)).parent
    beside = {
        what: Path(str(path)).relative_to(folder) for what, path in places.items() if Path(str(path)).is_relative_to(folder)
    }
    others = [place(what, path) for what, path in places.items() if what not in beside]
    named = [visible(str(path)) for what, path in beside.items() if what != "Report"]
    return [*others, place("Report", page) + (f" (beside it: {', '.join(named)})" if named else "")]


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
    return ["\n".join([wrap(block.answer), *caveat, *_following(block)])]


def _following(block: Verdict) -> list[str]:
    if block.following is None:
        return []
    return [*wrap(f"Next, {block.purpose}:").split("\n"), f"  {visible(block.following)}"]


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
    shown.sort(key=lambda index: block.columns[index].place)
    header = [block.columns[index].title for index in shown]
    right = [column.title for column in block.columns if column.numeric]
    rows = [[row[index].text for index in shown] for row in block.rows]
    table = text_table(header, rows[:MOST_ROWS], right=right)
    notes = _first([wrap(note) for note in block.notes])
    return "\n".join([wrap(f"{block.caption}:"), table, *_left_out(len(rows)), *notes])
