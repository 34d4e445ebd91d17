"""Figures of a training: loss and metric by epoch, norms of gradients by step, domains that were left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

from crossgraft.report.plots.intervals import BELOW_PIXELS, axes_of_rows
from crossgraft.report.plots.scatter import TICK_STEPS, Interval
from crossgraft.report.plots.svg import INK, OKABE_ITO, PAPER, SMALL_PIXELS, draw, framed_axes, shortened
from crossgraft.words.formatting import NumberFormat

_WIDTH, _WIDE, _HEIGHT = 400, 828, 270  # two beside each other are as wide as a wide one
_MARGINS = (52, 14, 56, 46)
_LEGEND_ROW, _LEGEND_HANDLE, _SHARE_OF_SIZE = 18, 40, 0.55  # pixels, pixels, mean width of a character
_MOST_MARKED = 40  # epochs; more dots than this are a thick line


class LearningCurve(NamedTuple):
    """One quantity, one value per epoch or step; those without a value leave a gap."""

    name: str
    values: Sequence[float | None]
    faint: bool = False


def learning_curves_figure(
    curves: Sequence[LearningCurve],
    *,
    y_label: str,
    best_epoch: int | None,
    head_epochs: int,
    identifier: str,
    is_wide: bool = False,
    target: float | None = None,
    steps: Sequence[int] | None = None,
) -> Markup:
    """Draw ``curves`` over the epochs, which count from 1, or over steps.

    Args:
        curves: Curves, at most twelve that are not faint; faint ones are drawn thin, without a name.
        y_label: Quantity and unit.
        best_epoch: Gets a vertical line: its weights were kept. None: no line.
        head_epochs: The first epochs, shaded: only the head was trained. 0: none.
        identifier: Unique on the page.
        is_wide: Whether the drawing stands alone.
        target: Value with a dotted horizontal line: it was asked for. None: no line.
        steps: Step of each value, where they are not epochs.
    """
    width, unit = _WIDE if is_wide else _WIDTH, "step" if steps else "epoch"
    named = [len(curve.name) for curve in curves if not curve.faint]
    most = max([*named, 1]) * SMALL_PIXELS * _SHARE_OF_SIZE + _LEGEND_HANDLE
    columns = max(1, min(3, int((width - _MARGINS[0]) / most)))
    above = _LEGEND_ROW * max(0, math.ceil(len(named) / columns) - 2)  # two rows fit as it is
    margins, height = (*_MARGINS[:2], _MARGINS[2] + above, _MARGINS[3]), _HEIGHT + above

    def paint(figure: Figure) -> None:
        axes = framed_axes(figure, width, height, margins, title=y_label, x_label=unit.capitalize())
        axes.xaxis.set_major_locator(MaxNLocator(6 * width // _WIDTH, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=TICK_STEPS))
        if head_epochs:
            axes.axvspan(0.5, head_epochs + 0.5, color=INK, alpha=0.07, linewidth=0)
        if best_epoch is not None:
            axes.axvline(best_epoch, color=INK, alpha=0.5, linewidth=1, linestyle=(0, (4, 3)))
        if target is not None:
            axes.axhline(target, color=INK, alpha=0.6, linewidth=1.2, linestyle=(0, (1, 2)))
        further = [(colour, "D") for colour in OKABE_ITO]
        styles = iter([(OKABE_ITO[0], "o"), (OKABE_ITO[1], "s"), *((c, "^") for c in OKABE_ITO[2:]), *further])
        for curve in curves:
            _draw_curve(axes, curve, steps or range(1, len(curve.values) + 1), ("", "") if curve.faint else next(styles))
        axes.set_xlim(0.5, max(steps[-1] if steps else len(curve.values) for curve in curves) + 0.5)
        if any(not curve.faint for curve in curves):
            axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=columns, borderaxespad=0, handlelength=1.6)

    names = ", ".join(curve.name for curve in curves if not curve.faint)
    return draw(width, height, paint, identifier=identifier, label=f"{y_label} by {unit}: {names}.")


def _draw_curve(axes: Axes, curve: LearningCurve, epochs: Sequence[int], style: tuple[str, str]) -> None:
    heights = [math.nan if value is None or not math.isfinite(value) else value for value in curve.values]
    if curve.faint:
        axes.plot(epochs, heights, color=INK, alpha=0.25, linewidth=1)
        return
    colour, marker = style
    marked = marker if len(curve.values) <= _MOST_MARKED else ""
    axes.plot(
        epochs,
        heights,
        color=colour,
        marker=marked,
        markersize=4.5,
        markeredgecolor=PAPER,
        markeredgewidth=0.6,
        linewidth=1.6,
        label=shortened(curve.name, 24),
    )


_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 28, 46  # pixels, of norms of gradients
_NAME_HEIGHT, _NAMES_WIDTH = 16, 190
_NAMES_IN_ROW = 2  # on a narrow screen
MOST_NAMED_BLOCKS = 24
"""Blocks that are named; with more, those at regular distances."""
_BLUE, _RED, _GREEN, _, _ORANGE, _ = OKABE_ITO
_DASHES: tuple[Any, ...] = ("solid", (0, (5, 1.5)), (0, (1.5, 1.5)))


class BlockCurve(NamedTuple):
    """One block: its name, and one value per step that is drawn; None and 0 leave a gap."""

    name: str
    values: Sequence[float | None]


def gradient_norms_figure(
    curves: Sequence[BlockCurve], steps: Sequence[int], *, y_label: str, identifier: str, is_wide: bool = True
) -> Markup:
    """Draw ``curves`` over ``steps`` on a logarithmic axis.

    Colours run from the first block to the last, and neighbours differ in their dashes.

    Args:
        curves: Curves from the first block to the last; of more than ``MOST_NAMED_BLOCKS``, some have no name.
        steps: Steps of the values.
        y_label: Quantity.
        identifier: Unique on the page.
        is_wide: Whether names stand beside the drawing; on a narrow screen they stand below it.
    """
    styles = _styles(len(curves))
    named = _named(len(curves))
    width = _WIDE if is_wide else _WIDTH
    names_height = _NAME_HEIGHT * (len(named) if is_wide else math.ceil(len(named) / _NAMES_IN_ROW))
    plot_height = max(_HEIGHT, names_height) if is_wide else _HEIGHT
    right, below = (_RIGHT + _NAMES_WIDTH, _BOTTOM) if is_wide else (_RIGHT, _BOTTOM + names_height)
    height, plot_width = _TOP + plot_height + below, width - _LEFT - right

    def paint(figure: Figure) -> None:
        axes = framed_axes(figure, width, height, (_LEFT, right, _TOP, below), title=y_label, x_label="Step")
        for curve, (colour, dashes) in zip(curves, styles, strict=True):
            heights = [value if value is not None and value > 0 else math.nan for value in curve.values]
            axes.plot(steps, heights, color=colour, linestyle=dashes, linewidth=1.5)
        _scale(axes, curves, steps)
        axes.legend(
            [Line2D([], [], color=styles[place][0], linestyle=styles[place][1]) for place in named],
            [shortened(curves[place].name, 20) for place in named],
            loc="upper left" if is_wide else "lower left",
            bbox_to_anchor=(1.02, 1.01) if is_wide else (-_LEFT / plot_width, -below / plot_height),
            ncols=1 if is_wide else _NAMES_IN_ROW,
            borderaxespad=0,
            handlelength=2.2,
            labelspacing=0.25,
            columnspacing=0.8,
        )

    label = f"{y_label} by step: {', '.join(curve.name for curve in curves)}."
    return draw(width, height, paint, identifier=identifier, label=label)


def _styles(number: int) -> list[tuple[str, Any]]:
    """Colour and dashes of each block; the middle of the range is neither pale on white nor dark on black."""
    colours = LinearSegmentedColormap.from_list("blocks", [_BLUE, _GREEN, _ORANGE, _RED])
    shares = [place / max(number - 1, 1) for place in range(number)]
    return [(to_hex(colours(share)), _DASHES[place % len(_DASHES)]) for place, share in enumerate(shares)]


def _named(number: int) -> list[int]:
    step = math.ceil(number / MOST_NAMED_BLOCKS)
    return list(range(0, number, step))


def _scale(axes: Axes, curves: Sequence[BlockCurve], steps: Sequence[int]) -> None:
    axes.set_yscale("log")
    known = [value for curve in curves for value in curve.values if value is not None and value > 0]
    if known:
        low, high = min(known), max(known)
        room = max((high / low) ** 0.05, 1.1)
        axes.set_ylim(low / room, high * room)
        decades = math.log10(high / low)
        subs = (1, 1.5, 2, 3, 4, 5, 7) if decades < 0.7 else (1, 2, 5) if decades < 1.5 else (1,)
        axes.yaxis.set_major_locator(LogLocator(subs=subs))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlim(steps[0], max(steps[-1], steps[0] + 1))


_ROW, _ABOVE_ROWS = 50, 28  # pixels, of domains
_UNSEEN, _SEEN = (OKABE_ITO[0], "o"), (OKABE_ITO[1], "s")
_AT = (0.12, 0.30)
"""Where the two lines of a row lie below its middle."""


class DomainRow(NamedTuple):
    """One domain, or the mean over all."""

    name: str
    unseen: Interval
    seen: Interval | None


def domains_figure(rows: Sequence[DomainRow], *, x_label: str, identifier: str, guess: float | None = None) -> Markup:
    """Draw in each row two dots with their lines: the domain that was not seen above images of those that were.

    Args:
        rows: Rows from top to bottom.
        x_label: Quantity and unit.
        identifier: Unique on the page.
        guess: What guessing gives, which a line marks.
    """
    height = _ABOVE_ROWS + _ROW * len(rows) + BELOW_PIXELS
    as_text = NumberFormat.for_column(
        [row.unseen.value for row in rows],
        interval_widths=[ends[1] - ends[0] for row in rows if (ends := row.unseen.ends) is not None],
    )

    def paint(figure: Figure) -> None:
        axes = axes_of_rows(figure, len(rows), row_pixels=_ROW, figure_pixels=(_WIDTH, height), x_label=x_label)
        if guess is not None:
            axes.axvline(guess, color=INK, alpha=0.5, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        across = axes.get_yaxis_transform()
        for position, row in enumerate(rows):
            axes.text(0, position - 0.22, shortened(row.name, 36), transform=across, va="center")
            seen = "" if row.seen is None or row.seen.value is None else f" · {as_text(row.seen.value)}"
            shown = "no value" if row.unseen.value is None else as_text(row.unseen.value)
            axes.text(1, position - 0.22, shown + seen, transform=across, va="center", ha="right", size=SMALL_PIXELS)
            for below, (colour, marker), value in zip(_AT, (_UNSEEN, _SEEN), (row.unseen, row.seen), strict=True):
                at = position + below
                if value is None or value.value is None:
                    continue
                if (ends := value.ends) is not None:
                    axes.plot(ends, (at, at), color=colour, linewidth=1.8, solid_capstyle="butt")
                axes.plot(value.value, at, marker, color=PAPER, zorder=3)
                axes.plot(value.value, at, marker, color=colour, zorder=4)
        entries = [(_UNSEEN, "never seen")] + ([(_SEEN, "seen")] if any(row.seen is not None for row in rows) else [])
        handles = [Line2D([], [], color=colour, marker=marker, linestyle="none") for (colour, marker), _ in entries]
        figure.legend(
            handles,
            [name for _, name in entries],
            loc="upper left",
            bbox_to_anchor=(0, 1),
            ncols=2,
            handletextpad=0.2,
            borderaxespad=0.2,
        )

    names = ", ".join(row.name for row in rows)
    return draw(_WIDTH, height, paint, identifier=identifier, label=f"{x_label} with intervals, never seen and seen: {names}.")
