"""A result in a notebook: verdict and first figure of its page, and the most important rows; no script, no widget."""

from __future__ import annotations

import hashlib
import math
from html import escape
from typing import TYPE_CHECKING, Any

from crossgraft.errors import NotApplicable
from crossgraft.report.blocks import Block, Figure, Verdict
from crossgraft.report.kinds import KINDS, Kind
from crossgraft.report.source import Source
from crossgraft.words.notebook import Plot, in_notebook
from crossgraft.words.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from crossgraft.records.base import Record

_MOST_BUILDERS = 4
"""Sections that are looked through for a figure: each is made for it."""
_MOST_ROWS, _MOST_COLUMNS = 10, 8
_LONG = 60
"""Characters of a text that gets room."""


def record_as_html(record: Record, *, summary: str, frame: pd.DataFrame | None) -> str:
    """The answer and its caveat, a figure, and the first rows of ``frame``; ``summary`` where there is no page to take them from.

    Nothing in it says where files lie: a notebook is handed on. So the next command, which would, is left out.
    """
    verdict, figure = verdict_and_figure(record)
    if verdict is None:
        lines = [f"<p>{escape(visible(summary, keep=chr(10)))}</p>"]
    else:
        lines = [f'<p class="lead">{escape(visible(verdict.answer))}</p>']
        if verdict.caveat is not None:
            lines.append(f'<p class="caveat"><strong>Caveat.</strong> {escape(visible(verdict.caveat))}</p>')
    if figure is not None:
        lines.append(_figure(figure))
    if frame is not None:
        lines.append(_rows(frame.head(_MOST_ROWS)))
        if len(frame) > _MOST_ROWS:
            lines.append(f'<p class="quiet">… and {len(frame) - _MOST_ROWS} more</p>')
    return in_notebook(*lines)


def plot_of(record: Record) -> Plot:
    """The first figure of the page of a record.

    Raises:
        NotApplicable: Its page has none.
    """
    _, figure = verdict_and_figure(record)
    if figure is None:
        raise NotApplicable("This result has no figure. Look at .to_frame(), or at its page: .report.")
    return Plot(str(figure.drawings[0]), figure.caption)


def verdict_and_figure(record: Record) -> tuple[Verdict | None, Figure | None]:
    """What the page of a record says and shows first; None each where it has none. Ids in the figure are this record's own."""
    kind = KINDS.find(str(getattr(record, "kind", "")))
    if kind is None:
        return None, None
    prefix = f"r{hashlib.sha256(record.model_dump_json().encode()).hexdigest()[:8]}-"  # ids stay apart in one document
    verdict: Verdict | None = None
    for block in _blocks(kind, Source(record, prefix=prefix)):
        if verdict is None and isinstance(block, Verdict):
            verdict = block
        if isinstance(block, Figure):
            return verdict, block
    return verdict, None


def _blocks(kind: Kind, source: Source[Any]) -> Iterator[Block]:
    for builder in kind.builders[:_MOST_BUILDERS]:
        section = builder(source)
        yield from () if section is None else section.blocks


def _figure(figure: Figure) -> str:
    return f"<figure>{figure.drawings[0]}<figcaption>{escape(visible(figure.caption))}</figcaption></figure>"


def _rows(frame: pd.DataFrame) -> str:
    """The first columns that say something, long texts last; numbers to the right."""
    shown = [name for name in frame.columns if bool(frame[name].notna().to_numpy().any())][:_MOST_COLUMNS]
    shown.sort(key=lambda name: max(len(_text(value)) for value in frame[name].astype(object)) > _LONG)
    numeric = {name for name in shown if frame[name].dtype.kind in "iuf"}

    kinds = {name: ' class="number"' if name in numeric else "" for name in shown}
    head = "".join(f"<th{kind}>{escape(visible(str(name)))}</th>" for name, kind in kinds.items())
    rows = "".join(
        f"<tr>{''.join(_cell(kind, value) for kind, value in zip(kinds.values(), row, strict=True))}</tr>"
        for row in frame[shown].astype(object).itertuples(index=False, name=None)
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cell(kind: str, value: object) -> str:
    text = _text(value)
    long = ' class="long"' if len(text) > _LONG else ""
    return f"<td{kind or long}>{escape(visible(text))}</td>"


def _text(value: object) -> str:
    import pandas as pd

    if isinstance(value, float):
        return "—" if math.isnan(value) else f"{value:.3f}"
    return "—" if value is None or value is pd.NA or value is pd.NaT else str(value)
