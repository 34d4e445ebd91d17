"""The images: how many, of which classes, split and grouped how."""

from __future__ import annotations

from crossgraft.records import DatasetRecord, RankingRecord
from crossgraft.report.blocks import Block, Facts, Figure, Folded, Gallery, Items, Paragraph, Section
from crossgraft.report.formatting import count, counted, short_fingerprint
from crossgraft.report.plots import class_balance_figure
from crossgraft.report.sections.verdict import describe_groups
from crossgraft.report.source import Source


def data_section(source: Source[RankingRecord]) -> Section:
    """Counts, split, groups, kinds of images, files left out, class balance and thumbnails."""
    dataset = source.record.dataset
    blocks: list[Block] = [_facts(dataset), _balance(source)]
    if dataset.skipped_unreadable:
        skipped = f"{counted(len(dataset.skipped_unreadable), 'unreadable file')} left out"
        blocks.append(Folded(skipped, [Items(dataset.skipped_unreadable)]))
    if source.thumbnails:
        blocks.append(Gallery(source.thumbnails))
    else:
        blocks.append(Paragraph("No images are shown: none were kept with this run (--no-images).", tone="quiet"))
    return Section(name="data", title="Data", part="checks", blocks=blocks)


def _facts(dataset: DatasetRecord) -> Facts:
    kinds = sorted(dataset.image_kinds.items(), key=lambda item: -item[1])
    return Facts(
        [
            ("Images", f"{count(dataset.num_images)} from {dataset.source}"),
            ("Classes", count(len(dataset.class_names))),
            ("Rows used", dataset.rows_used),
            ("Split", dataset.split_method),
            ("Groups", describe_groups(dataset)),
            ("Kinds of images", "; ".join(f"{kind}: {count(number)}" for kind, number in kinds)),
            ("Unreadable files left out", count(len(dataset.skipped_unreadable))),
            ("Fingerprint", short_fingerprint(dataset.fingerprint)),
        ]
    )


def _balance(source: Source[RankingRecord]) -> Figure:
    dataset = source.record.dataset
    counts = dataset.class_counts
    caption = f"Images in each class, {count(sum(counts))} in all."
    if len(counts) > 1 and min(counts) > 0:
        ratio = max(counts) / min(counts)
        caption += f" The largest class has {ratio:.1f} times as many images as the smallest."
    return Figure([class_balance_figure(dataset, identifier=f"{source.prefix}classes")], caption=caption)
