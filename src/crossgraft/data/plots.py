"""Figures of a data set: images of each class, and how splits divide them."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from crossgraft.data.record import DatasetRecord
from crossgraft.report.plots.plain import PlainDrawing
from crossgraft.report.plots.svg import FONT_PIXELS, OKABE_ITO, shortened
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import count

_WIDTH = 380
_ROW_HEIGHT = 36
_ABOVE = 8
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
    number, task = len(dataset.class_names), recorded_task(dataset)
    label = f"Number of images {task.among} each of {number} {task.nouns}."
    drawing = PlainDrawing(_WIDTH, _ABOVE + middle + _BELOW, identifier=identifier, label=label)
    if named:
        _draw_bars(drawing, dataset, bottom=_ABOVE + middle)
    else:
        _draw_profile(drawing, dataset, bottom=_ABOVE + middle)
    return drawing.markup()


def _draw_bars(drawing: PlainDrawing, dataset: DatasetRecord, *, bottom: float) -> None:
    left, right = 6, _WIDTH - 14
    most = max(1, *dataset.class_counts)
    for row, (name, images) in enumerate(zip(dataset.class_names, dataset.class_counts, strict=True)):
        middle = _ABOVE + (row + 0.5) * _ROW_HEIGHT
        drawing.words(left, middle - 0.17 * _ROW_HEIGHT, shortened(name, 44), size=FONT_PIXELS)
        drawing.words(right, middle - 0.17 * _ROW_HEIGHT, count(images), anchor="end")
        top = middle + 0.05 * _ROW_HEIGHT
        drawing.bar(left, top, (right - left) * images / most, 0.26 * _ROW_HEIGHT, colour=OKABE_ITO[0])
    drawing.counts_below(left, right, bottom, first=0, last=most, title="Images")


def _draw_profile(drawing: PlainDrawing, dataset: DatasetRecord, *, bottom: float) -> None:
    left, right = 62, _WIDTH - 14
    counts = sorted(dataset.class_counts, reverse=True)
    most = max(1, counts[0]) * 1.05
    class_width = (right - left) / len(counts)
    heights = [bottom - (bottom - _ABOVE) * images / most for images in counts]
    ends = [(left + class_width * (place + end), y) for place, y in enumerate(heights) for end in (0, 1)]
    drawing.line(ends, colour=OKABE_ITO[0], width=1.8)
    mean = bottom - (bottom - _ABOVE) * sum(counts) / len(counts) / most
    drawing.line([(left, mean), (right, mean)], width=1, more="; stroke-opacity: 0.4; stroke-dasharray: 4 3")
    drawing.counts_beside(left, _ABOVE, bottom, last=most, title="Images")
    nouns = recorded_task(dataset).nouns.capitalize()
    drawing.counts_below(left, right, bottom, first=0.5, last=len(counts) + 0.5, title=f"{nouns}, largest first")


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
    bottom = _ABOVE + block * len(shown)
    label = f"Number of images of each of {len(class_names)} classes in {', '.join(split_names)}."
    drawing = PlainDrawing(width, bottom + _BELOW, identifier=identifier, label=label)
    most = max(1, *(max(of_split[: len(shown)]) for of_split in counts))
    left, right = _SPLIT_WIDTH, width - _COUNT_WIDTH
    for number, name in enumerate(shown):
        top = _ABOVE + block * number
        drawing.words(0, top + 0.55 * _NAME_HEIGHT, shortened(name, 60), size=FONT_PIXELS)
        for place, (split, of_split) in enumerate(zip(split_names, counts, strict=True)):
            middle = top + _NAME_HEIGHT + (place + 0.5) * _BAR_HEIGHT
            size = (right - left) * of_split[number] / most, 0.62 * _BAR_HEIGHT
            drawing.bar(left, middle - 0.31 * _BAR_HEIGHT, *size, colour=OKABE_ITO[place % len(OKABE_ITO)])
            drawing.words(0, middle, shortened(split, 8))
            drawing.words(width, middle, count(of_split[number]), anchor="end")
    drawing.counts_below(left, right, bottom, first=0, last=most, title="Images")
    return drawing.markup()
