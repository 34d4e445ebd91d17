"""What results look like in a notebook: one small style, which takes ink and paper from whatever is around it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from crossgraft.storage.atomic import write_atomically
from crossgraft.words.visible import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

STYLE = """<style>
.crossgraft { --paper: var(--jp-layout-color0, var(--vscode-editor-background, Canvas)); max-width: 46rem; line-height: 1.45; }
.crossgraft p { margin: 0 0 0.5rem; white-space: pre-wrap; }
.crossgraft .lead { font-size: 1.1em; font-weight: 600; }
.crossgraft .caveat { border-left: 3px solid #d55e00; padding-left: 0.6rem; }
.crossgraft .quiet { opacity: 0.7; }
.crossgraft .scroll { overflow-x: auto; }
.crossgraft table { border-collapse: collapse; border: 0; margin: 0.5rem 0; font-size: 0.9em; }
.crossgraft caption { text-align: left; font-weight: 600; padding: 0 0 0.25rem; }
.crossgraft.crossgraft th, .crossgraft.crossgraft td { border: 0; background: none; padding: 0.2rem 0.8rem 0.2rem 0; }
.crossgraft.crossgraft th, .crossgraft.crossgraft td { text-align: left; vertical-align: baseline; }
.crossgraft.crossgraft tr { border: 0; border-bottom: 1px solid rgb(128 128 128 / 30%); background: none; }
.crossgraft.crossgraft td.number, .crossgraft.crossgraft th.number { text-align: right; font-variant-numeric: tabular-nums; }
.crossgraft.crossgraft td.long { min-width: 16rem; }
.crossgraft svg { max-width: 100%; height: auto; }
.crossgraft figure { margin: 0.5rem 0; }
.crossgraft figcaption { font-size: 0.85em; opacity: 0.7; }
</style>"""
"""Ink and paper are those of the notebook, light or dark; its own rules for tables are why the class stands there twice. Where
styles are taken out, it reads as well."""


def in_notebook(*parts: str) -> str:
    """Pieces of HTML under the style, so that nothing outside of them changes."""
    return f'{STYLE}<div class="crossgraft">{"".join(parts)}</div>'


def facts_table(title: str, facts: Mapping[str, object]) -> str:
    """Names and values for a notebook; facts that are None are left out.

    >>> facts_table("a <b>", {"images": 3, "groups": None}).removeprefix(STYLE)
    '<div class="crossgraft"><table><caption>a &lt;b&gt;</caption><tr><th>images</th><td>3</td></tr></table></div>'
    """
    rows = "".join(
        f"<tr><th>{escape(visible(name))}</th><td>{escape(visible(str(fact)))}</td></tr>"
        for name, fact in facts.items()
        if fact is not None
    )
    return in_notebook(f"<table><caption>{escape(visible(title))}</caption>{rows}</table>")


@dataclass(frozen=True)
class Plot:
    """A figure of a page, which shows itself in a notebook.

    Attributes:
        svg: The drawing; its ink and its paper are those of what is around it.
        caption: What to see.
    """

    svg: str
    caption: str

    def _repr_html_(self) -> str:
        return in_notebook(f"<figure>{self.svg}<figcaption>{escape(visible(self.caption))}</figcaption></figure>")

    def save(self, path: str | Path) -> Path:
        """Write the drawing as an SVG file, in black on white.

        Raises:
            StorageError: It cannot be written.
        """
        drawing = self.svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
        drawing = drawing.replace('style="', 'style="color: #1d2126; --paper: #ffffff; font-family: sans-serif; ', 1)
        return write_atomically(Path(path), drawing)
