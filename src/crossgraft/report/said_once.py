"""No sentence stands twice on a page: what was said above is left out below."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from crossgraft.report.blocks import Block, Checks, Facts, Figure, Folded, Items, Paragraph, Section, Verdict
from crossgraft.report.explorer import Explorer
from crossgraft.report.tables import Table

_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9])")
_LEAST_WORDS = 5
"""Sentences of fewer words may stand anywhere."""
_ABOVE = "See above."


def said_once(sections: Sequence[Section]) -> list[Section]:
    """The sections without sentences that stand in an earlier block; a check or fact whose text is left out says so."""
    said: set[str] = set()
    return [replace(section, blocks=_blocks(section.blocks, said)) for section in sections]


def _blocks(blocks: Sequence[Block], said: set[str]) -> list[Block]:
    return [new for block in blocks if (new := _block(block, said)) is not None]


def _block(block: Block, said: set[str]) -> Block | None:
    if isinstance(block, Verdict):
        _add(block.answer, said)
        return replace(block, caveat=None if block.caveat is None else _new(block.caveat, said) or None)
    if isinstance(block, Paragraph):
        text = _new(block.text, said)
        return replace(block, text=text) if text else None
    if isinstance(block, Items):
        items = [text for item in block.items if (text := _new(item, said))]
        return replace(block, items=items) if items else None
    if isinstance(block, Facts):
        return replace(block, rows=[(name, _new(value, said) or _ABOVE) for name, value in block.rows])
    if isinstance(block, Checks):
        return replace(block, checks=[each.model_copy(update={"text": _new(each.text, said) or _ABOVE}) for each in block.checks])
    if isinstance(block, Figure):
        return replace(block, caption=_new(block.caption, said))
    if isinstance(block, Explorer):
        return replace(block, caption=_new(block.caption, said))
    if isinstance(block, Table):
        return replace(block, notes=[text for note in block.notes if (text := _new(note, said))])
    if isinstance(block, Folded):
        inner = _blocks(block.blocks, said)
        return replace(block, blocks=inner) if inner else None
    return block


def _add(text: str, said: set[str]) -> None:
    """Put what ``text`` says among what was said; a check that became a caveat has its title before it."""
    for sentence in _END.split(text):
        said |= {part.casefold() for part in (sentence, sentence.partition(": ")[2]) if len(part.split()) >= _LEAST_WORDS}


def _new(text: str, said: set[str]) -> str:
    """As much of ``text`` as is new, which is said from now on."""
    kept: list[str] = []
    for sentence in _END.split(text):
        if sentence.casefold() not in said:
            kept.append(sentence)
            _add(sentence, said)
    return " ".join(kept)
