"""Put the page together: records in, one HTML file out, and no sentence twice."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from crossgraft.paths import real_path
from crossgraft.report.blocks import (
    Block,
    Checks,
    Code,
    Facts,
    Figure,
    Folded,
    Heading,
    Items,
    Literature,
    Paragraph,
    Section,
    Verdict,
)
from crossgraft.report.explorer import Explorer
from crossgraft.report.kinds import kind_of, read_run
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, Table, words
from crossgraft.version import __version__
from crossgraft.words.visible import visible

_WHOLE = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]|[−+]?\d[\d.]* %")
_WORD = re.compile(r"\S+")
_LONG_WORD = re.compile(r"\S{20,}")
_JOINT = re.compile(r"(?<=[a-zA-Z0-9][._/:])(?=\w)")


def prose(text: str) -> Markup:
    """Running text, whose flags and percentages stay whole; a browser breaks ``--no-images`` after each hyphen.

    >>> prose("add --keep 0.8 <b>")
    Markup('add <span class="whole">--keep</span> 0.8 &lt;b&gt;')
    """
    return _spans(visible(text), _WHOLE, "whole")


def breakable(text: str) -> Markup:
    """A title or the text of a cell, whose long names may break between their parts instead of anywhere.

    >>> breakable("mobilenetv2_100.imagenet on a_b")
    Markup('mobilenetv2_<wbr>100.<wbr>imagenet on a_b')
    """
    safe = escape(visible(text))
    return Markup(_LONG_WORD.sub(lambda word: _JOINT.sub("<wbr>", word.group()), safe))


def code_line(text: str) -> Markup:
    r"""One line of a listing, with its line feed, each word of it an element.

    >>> code_line("tune DATA")
    Markup('<span class="line"><span class="word">tune</span> <span class="word">DATA</span>\n</span>')
    """
    return Markup('<span class="line">{}\n</span>').format(_spans(visible(text), _WORD, "word"))


def _spans(text: str, pattern: re.Pattern[str], name: str) -> Markup:
    """``text`` with an element of class ``name`` around all that the pattern finds, everything escaped."""
    parts: list[Markup] = []
    end = 0
    for match in pattern.finditer(text):
        parts += [escape(text[end : match.start()]), Markup('<span class="{}">{}</span>').format(name, match.group())]
        end = match.end()
    return Markup("").join([*parts, escape(text[end:])])


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


_REPLICATES = "jackknife_values"


@dataclass(frozen=True)
class RunPart:
    """One run on the page.

    Args:
        command: The command that made it.
        heading: Heading before its sections.
        sections: Its sections in order.
        prefix: Keeps its anchors apart from those of other runs.
        has_images: Whether it shows images.
        has_replicates: Whether its record holds jackknife replicates, which the page leaves out.
        record_json: Its record, safe inside a script element.
    """

    command: str
    heading: Heading
    sections: Sequence[Section]
    prefix: str
    has_images: bool
    has_replicates: bool
    record_json: Markup

    @property
    def parts(self) -> list[tuple[str, list[Section]]]:
        """Sections under the part of the page they belong to, in order."""
        names = dict.fromkeys(section.part for section in self.sections)
        return [(name, [section for section in self.sections if section.part == name]) for name in names]


def render_page(directories: Sequence[Path], *, at: Path | None = None) -> str:
    """The HTML of one page for ``directories``; see ``write_report``.

    Args:
        directories: Folders of runs.
        at: Folder that the page is for; links to files of a run are left out elsewhere. None: that of the only run.
    """
    prefixes = [""] if len(directories) == 1 else [f"run-{index}-" for index in range(1, len(directories) + 1)]
    is_at_home = len(directories) == 1 and (at is None or real_path(at) == real_path(directories[0]))
    sources = [
        read_run(directory, prefix=prefix, is_at_home=is_at_home) for directory, prefix in zip(directories, prefixes, strict=True)
    ]
    parts = [_run_part(source) for source in sources]
    script = _static("report.js")
    return (
        _environment()
        .get_template("page.html")
        .render(
            parts=parts,
            comparison=_side_by_side(parts) if len(parts) > 1 else None,
            together=_together(sources),
            title=" · ".join(part.heading.title for part in parts),
            version=__version__,
            style=Markup(_static("report.css")),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


def _run_part(source: Source[Any]) -> RunPart:
    kind = kind_of(source)
    sections = said_once([section for builder in kind.builders if (section := builder(source)) is not None])
    document = source.record.model_dump_json()
    return RunPart(
        command="" if source.run is None else source.run.command,
        heading=kind.heading(source),
        sections=sections,
        prefix=source.prefix,
        has_images=bool(source.thumbnails),
        has_replicates=f'"{_REPLICATES}":' in document,
        record_json=_script_json(document, {_REPLICATES, *kind.only_in_the_file}),
    )


def _side_by_side(parts: Sequence[RunPart]) -> Table:
    return Table(
        caption="The runs on this page",
        columns=[Column("Run"), Column("Data and models"), Column("Verdict")],
        rows=[
            [
                words(f"{index}. {part.heading.title}", href=f"#{part.prefix}run"),
                words(part.heading.summary),
                words(part.heading.advice),
            ]
            for index, part in enumerate(parts, start=1)
        ],
        file_name="runs",
    )


def _together(sources: Sequence[Source[Any]]) -> list[Block]:
    """What runs of one kind show in one figure, kind by kind; nothing where one stands alone."""
    blocks: list[Block] = []
    for kind in dict.fromkeys(kind_of(source) for source in sources):
        alike = {number: source for number, source in enumerate(sources, start=1) if kind_of(source) is kind}
        if kind.together is not None and len(alike) > 1:
            blocks += kind.together(alike)
    return blocks


def _script_json(document: str, left_out: Collection[str]) -> Markup:
    """A record as JSON that cannot end its script element: no ``<``, ``>`` or ``&`` stays in it."""
    shown = _without(json.loads(document), left_out)
    text = json.dumps(shown, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _without(value: object, left_out: Collection[str]) -> object:
    if isinstance(value, dict):
        items = cast("dict[str, object]", value).items()
        return {key: _without(item, left_out) for key, item in items if key not in left_out}
    if isinstance(value, list):
        return [_without(item, left_out) for item in cast("list[object]", value)]
    return value


@cache
def _environment() -> Environment:
    """Made once: it keeps what it compiled of the templates, for all pages of a command that writes several."""
    environment = Environment(
        loader=PackageLoader("crossgraft.report"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(prose=prose, breakable=breakable, code_line=code_line)
    return environment


def _shown(value: object) -> object:
    """Names cannot turn the text around them; what is markup already was made of visible text."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _static(name: str) -> str:
    return resources.files("crossgraft.report").joinpath("static", name).read_text(encoding="utf-8")


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
