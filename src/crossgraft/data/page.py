"""The images: how many, of which classes, split and grouped how; in words and in figures."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from crossgraft.data.describe import describe_groups
from crossgraft.data.record import DatasetRecord
from crossgraft.records.base import Thumbnail
from crossgraft.report.blocks import Block, Facts, Figure, Folded, Gallery, Items, Paragraph, Section
from crossgraft.report.plots.plain import PlainDrawing
from crossgraft.report.plots.svg import FONT_PIXELS, OKABE_ITO, shortened
from crossgraft.report.source import Source
from crossgraft.report.verdict import Caveat, Gravity
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import count, counted, short_fingerprint

_WIDTH = 380
_ROW_HEIGHT = 36
_ABOVE = 8
_BELOW = 46
_MOST_NAMED_CLASSES = 30  # more rows than this are a wall; the sorted profile says the same


def class_balance_figure(dataset: DatasetRecord, *, identifier: str) -> Markup:
    """Draw one bar per class with its name and count, or the sorted profile of more than 30 classes."""
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


FEW_LEFT_OUT = 0.01
"""A share of all images; leaving out so few changes no share by more."""
_MOST_IMAGE_CHARACTERS = 700_000  # of base64: a third of the two megabytes that a page may have


def data_section(source: Source[Any]) -> Section:
    """Counts, split, groups, kinds of images, files left out, class balance and thumbnails."""
    dataset = source.record.dataset
    blocks: list[Block] = [Facts(data_facts(dataset)), _balance(source)]
    if dataset.skipped_unreadable:
        skipped = f"{counted(len(dataset.skipped_unreadable), 'unreadable file')} left out"
        blocks.append(Folded(skipped, [Items(dataset.skipped_unreadable)]))
    blocks += data_gallery(source.thumbnails)
    return Section(name="data", title="Data", part="checks", blocks=blocks)


def data_gallery(thumbnails: Sequence[Thumbnail]) -> list[Block]:
    """The first images of every class, as many as keep the page small; or that there are none."""
    if not thumbnails:
        return [Paragraph("No images are shown: none were kept with this run (--no-images).", tone="quiet")]
    by_class: defaultdict[str, list[str]] = defaultdict(list)
    examples = [thumbnail for thumbnail in thumbnails if thumbnail.row is None]
    for thumbnail in examples:
        by_class[thumbnail.class_name].append(thumbnail.png_base64)
    shown: defaultdict[str, list[str]] = defaultdict(list)
    characters = 0
    for one_of_each in itertools.zip_longest(*by_class.values()):
        for name, image in zip(by_class, one_of_each, strict=True):
            if image is not None and characters + len(image) <= _MOST_IMAGE_CHARACTERS:
                shown[name].append(image)
                characters += len(image)
    left_out = len(examples) - sum(map(len, shown.values()))
    note = f"{counted(left_out, 'image')} more are not shown, to keep the page below 2 MB."
    return [Gallery(dict(shown)), *([Paragraph(note, tone="quiet")] if left_out else [])]


def unreadable_files(source: Source[Any]) -> Caveat | None:
    """Files that are in no number; a few of many take little from it."""
    data: DatasetRecord | None = source.record.dataset
    number = 0 if data is None else data.num_skipped_unreadable
    if data is None or not number:
        return None
    total = data.num_images + number
    gravity = Gravity.HARM if number > FEW_LEFT_OUT * total else Gravity.LIMITED
    return Caveat(f"{count(number)} of {counted(total, 'image')} could not be read and are left out.", gravity)


def data_facts(dataset: DatasetRecord) -> list[tuple[str, str]]:
    """Counts, split, groups, kinds of images."""
    kinds = sorted(dataset.image_kinds.items(), key=lambda item: -item[1])
    return [
        ("Images", f"{count(dataset.num_images)} from {dataset.source.replace('_', ' ')}"),
        (recorded_task(dataset).nouns.capitalize(), _classes(dataset)),
        ("Rows used", dataset.rows_used),
        ("Split", split_in_words(dataset)),
        ("Groups", describe_groups(dataset)),
        ("Kinds of images", "; ".join(f"{kind} ({counted(number, 'image')})" for kind, number in kinds)),
        *([("How files were read", " ".join(dataset.reading))] if dataset.reading else []),
        ("Unreadable files left out", count(dataset.num_skipped_unreadable)),
        ("Fingerprint", short_fingerprint(dataset.fingerprint)),
    ]


def split_in_words(dataset: DatasetRecord) -> str:
    """How the split came about, with its fingerprint, by which pages of one split are known."""
    known = "" if dataset.split_fingerprint is None else f"{dataset.split_fingerprint} – "
    return f"{known}{dataset.split_method}"


def _classes(dataset: DatasetRecord) -> str:
    number, task = count(len(dataset.class_names)), recorded_task(dataset)
    if not task.partitions:
        return f"{number}; an image may have several, or none"
    return f"{number}, in an order" if task.in_order else number


def _balance(source: Source[Any]) -> Figure:
    dataset = source.record.dataset
    counts = dataset.class_counts
    task = recorded_task(dataset)
    caption = f"Images in each class, {count(sum(counts))} in all."
    if not task.partitions:
        caption = f"Images with each label; {count(dataset.num_images)} images have {count(sum(counts))} labels in all."
    if len(counts) > 1 and 0 < min(counts) < max(counts):
        ratio = max(counts) / min(counts)
        caption += f" The largest {task.noun} has {ratio:.1f} times as many images as the smallest."
    return Figure([class_balance_figure(dataset, identifier=f"{source.prefix}classes")], caption=caption)


def data_of(source: Source[Any]) -> str:
    """Name, kind and fingerprint of the images."""
    data = source.record.dataset
    kind, classes = data.source.replace("_", " "), counted(len(data.class_names), "class", "classes")
    fingerprint = short_fingerprint(data.fingerprint)
    return f"{counted(data.num_images, 'image')} in {classes} from {data.name} ({kind}; fingerprint {fingerprint})"


def rows_of(source: Source[Any]) -> str | None:
    """Which rows of the data were used; None where that was not recorded."""
    return source.record.dataset.rows_used or None


def images_read(source: Source[Any]) -> str:
    """How many images were left out because they cannot be decoded."""
    number = source.record.dataset.num_skipped_unreadable
    return f"{counted(number, 'image')} left out as unreadable" if number else "no image was left out as unreadable"


def reading_of(source: Source[Any], description: str) -> str:
    """How files of scanners were read, and how images became the input of the network (``description``)."""
    return "; ".join([*(text.rstrip(".") for text in source.record.dataset.reading), description])


def software(source: Source[Any]) -> str | None:
    """Versions of all packages that a run names; None where there is no run."""
    run = source.run
    if run is None:
        return None
    versions = {"crossgraft": run.crossgraft_version, **run.versions}
    return ", ".join(f"{name} {version}" for name, version in versions.items())
