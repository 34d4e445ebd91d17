"""How many images each class has."""

from __future__ import annotations

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from crossgraft.data.record import DatasetRecord
from crossgraft.report.plots.style import FONT_PIXELS, INK, OKABE_ITO, SMALL_PIXELS, shortened
from crossgraft.report.plots.svg import draw
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
