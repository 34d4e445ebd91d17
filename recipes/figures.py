"""Figures of a page: SVGs that are the same bytes from the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

SMALL = {"font.size": 8}


@contextmanager
def figure(path: Path, size: tuple[float, float], salt: str | None = None, style: dict[str, object] = SMALL) -> Iterator[Figure]:
    """An empty figure of a size in inches, which is written at the end; ``salt`` of its identifiers: the name of the file."""
    with mpl.rc_context({"svg.hashsalt": salt or path.stem, "svg.fonttype": "none", **style}):
        drawn = Figure(figsize=size, layout="constrained")
        yield drawn
        drawn.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def legend(drawn: Figure, panels: Iterable[Axes], where: str = "outside lower center", columns: int = 1) -> None:
    """Each label of all panels once."""
    shown = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    drawn.legend(shown.values(), shown.keys(), loc=where, ncols=columns, frameon=False)
