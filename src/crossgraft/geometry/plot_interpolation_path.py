"""Loss and similarity on the line between two networks, point by point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from crossgraft.geometry.record import InterpolationPathRecord
from crossgraft.report.plots.scatter import TICK_STEPS
from crossgraft.report.plots.style import INK, OKABE_ITO, PAPER
from crossgraft.report.plots.svg import draw

_LEFT, _RIGHT, _TOP, _BOTTOM, _LEGEND = 52, 16, 30, 46, 18  # pixels
_PANEL_HEIGHT = 250
Curve = Sequence[float | None]


def interpolation_path_figure(record: InterpolationPathRecord, *, identifier: str, is_wide: bool = True) -> Markup:
    """Two panels over the share of the end: the loss, and CKA to the start with both estimates.

    Points are joined where the record says that they may be; where not, nothing is drawn between them.

    Args:
        record: The line.
        identifier: Unique on the page.
        is_wide: Whether the panels stand beside each other.
    """
    width, height = (828, _PANEL_HEIGHT) if is_wide else (340, 2 * _PANEL_HEIGHT)
    panel = width / 2 if is_wide else width
    alphas = [point.alpha for point in record.points]
    joined = [record.is_joined(place) for place in range(len(alphas) - 1)]

    def place(figure: Figure, number: int) -> Axes:
        left = (panel * number if is_wide else 0) + _LEFT
        bottom = (0 if is_wide else _PANEL_HEIGHT * (1 - number)) + _BOTTOM
        size = (panel - _LEFT - _RIGHT, _PANEL_HEIGHT - _TOP - _BOTTOM - _LEGEND)
        return figure.add_axes((left / width, bottom / height, size[0] / width, size[1] / height))

    def paint(figure: Figure) -> None:
        loss, alike = place(figure, 0), place(figure, 1)
        _draw(loss, alphas, [point.loss for point in record.points], joined, OKABE_ITO[1], "o", "loss")
        _draw(alike, alphas, [point.cka for point in record.points], joined, OKABE_ITO[0], "o", "CKA")
        debiased = [point.cka_debiased for point in record.points]
        _draw(alike, alphas, debiased, joined, OKABE_ITO[2], "s", "CKA, debiased")
        alike.legend(loc="lower left", bbox_to_anchor=(-0.03, 1), ncols=2, borderaxespad=0, handletextpad=0.4)
        for axes, title in ((loss, "Loss"), (alike, "Similarity to the start")):
            axes.set_title(title, loc="left", pad=_LEGEND + 8)
            axes.set_xlabel("Share of the end, α")
            axes.set_xlim(-0.03, 1.03)
            axes.yaxis.set_major_locator(MaxNLocator(5, steps=TICK_STEPS))
            axes.margins(y=0.08)

    label = f"Loss and similarity of {len(alphas)} networks between {record.start} and {record.end}."
    return draw(width, height, paint, identifier=identifier, label=label)


def _draw(
    axes: Axes, alphas: Sequence[float], values: Curve, joined: Sequence[bool], colour: str, marker: str, name: str
) -> None:
    """Dots at what was measured; of the end points a thin level line, between which Proposition 8 looks."""
    look: dict[str, Any] = {"color": colour, "linewidth": 1.6, "zorder": 2}
    for place, is_joined in enumerate(joined):
        pair = values[place : place + 2]
        if is_joined and all(_is_finite(value) for value in pair):
            axes.plot(alphas[place : place + 2], [value or 0.0 for value in pair], **look)
    known = [
        (alpha, value) for alpha, value in zip(alphas, values, strict=True) if value is not None and _is_finite(value)
    ]
    axes.plot(
        [alpha for alpha, _ in known],
        [value for _, value in known],
        marker,
        color=colour,
        markersize=5.5,
        markeredgecolor=PAPER,
        markeredgewidth=0.6,
        zorder=4,
        label=name,
    )
    for value in (values[0], values[-1]):
        if value is not None and _is_finite(value):
            axes.axhline(value, color=INK, alpha=0.18, linewidth=0.8, zorder=0)


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
