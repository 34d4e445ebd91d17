"""Blocks of a page as Markdown, for the pages of the documentation that are generated from records."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.report.blocks import (
    Block,
    Checks,
    Code,
    Facts,
    Figure,
    Folded,
    Items,
    Literature,
    Paragraph,
    Section,
    Verdict,
)
from crossgraft.report.tables import Table


def sections_as_markdown(sections: Sequence[Section]) -> str:
    """Each section under a heading of its own."""
    return "\n\n".join(f"## {section.title}\n\n{blocks_as_markdown(section.blocks)}" for section in sections)


def blocks_as_markdown(blocks: Sequence[Block]) -> str:
    """Every block as Markdown but galleries; figures become their captions."""
    return "\n\n".join(text for block in blocks if (text := _markdown(block)))


def _markdown(block: Block) -> str:
    if isinstance(block, Verdict):
        return _verdict(block)
    if isinstance(block, Paragraph):
        return block.text
    if isinstance(block, Items):
        return _list(block.items)
    if isinstance(block, Facts):
        return _list([f"{name}: {value}" for name, value in block.rows])
    if isinstance(block, Checks):
        return _list([f"{check.severity}: {check.title}. {check.text}" for check in block.checks])
    if isinstance(block, Literature):
        return _list([f"{paper.key}: {paper.text}" for paper in block.references])
    if isinstance(block, Code):
        return f"```\n{block.text}\n```"
    if isinstance(block, Figure):
        return block.caption
    if isinstance(block, Folded):
        return blocks_as_markdown(block.blocks)
    if isinstance(block, Table):
        head = [column.title for column in block.columns]
        rule = ["---:" if column.numeric else "---" for column in block.columns]
        lines = [head, rule, *([cell.text.replace("|", "\\|") for cell in row] for row in block.rows)]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n\n".join([f"**{block.caption}**", table, *block.notes])
    return ""


def _verdict(block: Verdict) -> str:
    parts = [block.answer]
    if block.caveat is not None:
        parts.append(f"Caveat: {block.caveat}")
    if block.following is not None:
        parts.append(f"Next, {block.purpose}:\n\n```\n{block.following}\n```")
    return "\n\n".join(parts)


def _list(items: Sequence[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
