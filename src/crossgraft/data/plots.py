"""Figures of a data set: images of each class, and how splits divide them."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from crossgraft.data.record import DatasetRecord
from crossgraft.report.plots.svg import FONT_PIXELS, INK, OKABE_ITO, SMALL_PIXELS, draw, shortened
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import count

_WIDTH = 380
_ROW_HEIGHT = 36
_BELOW = 46
_MOST_NAMED_CLASSES = 30  # more rows than this are a wall; the sorted profile says the same


def class_balance_figure(dataset: DatasetRecord, *, identifier: str) -> Markup:
    """Draw one bar per class with its name and count, or the sorted profile of more than 30 classes.

    Args:
        dataset: The images that were used.
        identifier: Unique on the page.
    """
    named = len(dataset.class_names) <= _MOST_NAMED_CLASSES
    middle = _ROW_HEIGHT * len(dataset.class_names) if named else 190
    height = middle + _BELOW + 8

    def paint(figure: Figure) -> None:
        left = 6 if named else 62
        axes = figure.add_axes((left / _WIDTH, _BELOW / height, (_WIDTH - left - 14) / _WIDTH, middle / height))
        if named:
            _draw_bars(axes, dataset)
        else:
            _draw_profile(axes, dataset)

    number, task = len(dataset.class_names), recorded_task(dataset)
    label = f"Number of images {task.among} each of {number} {task.nouns}."
    return draw(_WIDTH, height, paint, identifier=identifier, label=label)


def _draw_bars(axes: Axes, dataset: DatasetRecord) -> None:
    rows = range(len(dataset.class_names))
    axes.barh([row + 0.18 for row in rows], dataset.class_counts, height=0.26, color=OKABE_ITO[0])
    axes.set_ylim(len(dataset.class_names) - 0.5, -0.5)
    axes.set_xlim(0, max(1, max(dataset.class_counts)))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_xlabel("Images")
    for row, (name, images) in enumerate(zip(dataset.class_names, dataset.class_counts, strict=True)):
        across = axes.get_yaxis_transform()
        axes.text(0, row - 0.17, shortened(name, 44), transform=across, va="center", size=FONT_PIXELS)
        axes.text(1, row - 0.17, count(images), transform=across, va="center", ha="right", size=SMALL_PIXELS)


def _draw_profile(axes: Axes, dataset: DatasetRecord) -> None:
    counts = sorted(dataset.class_counts, reverse=True)
    axes.step(range(1, len(counts) + 1), counts, where="mid", color=OKABE_ITO[0], linewidth=1.8)
    axes.set_ylim(bottom=0)
    axes.axhline(sum(counts) / len(counts), color=INK, alpha=0.4, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xlabel(f"{recorded_task(dataset).nouns.capitalize()}, largest first")
    axes.set_ylabel("Images")


_SPLIT_COUNTS_WIDTH = 460
_SMALL_SCREEN = 340
_NAME_HEIGHT = 22
_BAR_HEIGHT = 17
_MOST_CLASSES = 20
_SPLIT_WIDTH = 60  # left of the bars, for the name of a split
_COUNT_WIDTH = 52  # right of them


def split_counts_figure(
    class_names: Sequence[str],
    split_names: Sequence[str],
    counts: Sequence[Sequence[int]],
    *,
    identifier: str,
    is_wide: bool = True,
) -> Markup:
    """Draw one bar per class and split, each with its count; the first 20 classes.

    Args:
        class_names: The classes.
        split_names: Names of at least one split.
        counts: Images of each class in each split, (splits, classes).
        identifier: Unique on the page.
        is_wide: Else for the screen of a phone.
    """
    width = _SPLIT_COUNTS_WIDTH if is_wide else _SMALL_SCREEN
    shown = class_names[:_MOST_CLASSES]
    block = _NAME_HEIGHT + _BAR_HEIGHT * len(split_names)
    middle = block * len(shown)
    height = middle + _BELOW + 8

    def paint(figure: Figure) -> None:
        bars = width - _SPLIT_WIDTH - _COUNT_WIDTH
        axes = figure.add_axes((_SPLIT_WIDTH / width, _BELOW / height, bars / width, middle / height))
        axes.set_ylim(middle, 0)
        axes.set_xlim(0, max(1, max(max(of_split[: len(shown)]) for of_split in counts)))
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.set_xlabel("Images")
        for number, name in enumerate(shown):
            of_class = [of_split[number] for of_split in counts]
            _draw_class(axes, name, split_names, of_class, top=block * number, bars=bars)

    label = f"Number of images of each of {len(class_names)} classes in {', '.join(split_names)}."
    return draw(width, height, paint, identifier=identifier, label=label)


def _draw_class(axes: Axes, name: str, split_names: Sequence[str], counts: Sequence[int], *, top: float, bars: float) -> None:
    """``bars``: pixels that the longest bar takes."""
    across = axes.get_yaxis_transform()
    left = -_SPLIT_WIDTH / bars
    axes.text(left, top + 0.55 * _NAME_HEIGHT, shortened(name, 60), transform=across, va="center", size=FONT_PIXELS)
    for number, (split, images) in enumerate(zip(split_names, counts, strict=True)):
        middle = top + _NAME_HEIGHT + (number + 0.5) * _BAR_HEIGHT
        colour = OKABE_ITO[number % len(OKABE_ITO)]
        axes.barh(middle, images, height=0.62 * _BAR_HEIGHT, color=colour)
        axes.text(left, middle, shortened(split, 8), transform=across, va="center", size=SMALL_PIXELS)
        right = 1 + _COUNT_WIDTH / bars
        axes.text(right, middle, count(images), transform=across, va="center", ha="right", size=SMALL_PIXELS)
