"""The images: how many, of which classes, split and grouped how."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from crossgraft.data.describe import describe_groups
from crossgraft.data.plots import class_balance_figure
from crossgraft.data.record import DatasetRecord
from crossgraft.records.base import Thumbnail
from crossgraft.report.blocks import Block, Facts, Figure, Folded, Gallery, Items, Paragraph, Section
from crossgraft.report.source import Source
from crossgraft.report.verdict import Caveat, Gravity
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import count, counted, short_fingerprint

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
