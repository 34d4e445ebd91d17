"""``edit_data``: a data set with edited images, as a folder that every other command opens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crossgraft.choice import spell
from crossgraft.data import Dataset
from crossgraft.data.describe import describe_dataset, thumbnails_of_rows
from crossgraft.data.opening import open_divided
from crossgraft.edit.edits import AskedEdits
from crossgraft.edit.options import EditOptions
from crossgraft.edit.record import EditedClassRow, EditRecord
from crossgraft.edit.source_editing import merge_labels
from crossgraft.edit.words import answer_in_words
from crossgraft.edit.writing import CLASSES, TABLE, labels_table, own_images, read_merging, write_images
from crossgraft.errors import DataError
from crossgraft.options._option import configuration
from crossgraft.progress import Reporter
from crossgraft.records.base import Thumbnail
from crossgraft.result import Result
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import RunDirectory
from crossgraft.running.verb import Run, verb

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 6
"""Edited images on the page, each beside what it was."""


@dataclass(frozen=True, eq=False, repr=False)
class EditedData(Result[EditRecord]):
    """A data set with edited images: ``record`` says what was done.

    Attributes:
        dataset: The edited data, under the classes that they had.
        edited: (n,) which images were edited.
    """

    dataset: Dataset | None = field(default=None, kw_only=True)
    edited: np.ndarray | None = field(default=None, kw_only=True)

    def summary(self) -> str:
        """What was done to how many images."""
        return answer_in_words(self.record)

    def to_frame(self) -> pd.DataFrame:
        """One row per edit."""
        import pandas as pd

        return pd.DataFrame([row.model_dump() for row in self.record.edits])


@verb("edit", EditOptions)
def edit_data(data: str | Path | Dataset, options: EditOptions, run: Run) -> EditedData:
    """Write a data set again with edited images: an artefact in some of them, or cues taken away from all.

    Labels, splits, groups and other columns stay. The folder has ``images/`` and ``labels.csv``, which every command opens;
    images that were not drawn go the same way without an edit, so that nothing but the edit tells them apart.

    Args:
        data: As in ``open_dataset``, or an open ``Dataset``.
        {options}

    Returns:
        What was done; with ``out`` the folder, and ``report.html``, ``report.json`` and ``run.json`` there. Without, ``dataset``
        is there to go on with.

    Raises:
        DataError: Something is wrong with the images or labels, or an edit cannot be done to an image.
        UsageError: An argument is wrong.
        UnknownNameError: There is no such edit or class; the message gives the nearest names.
        UnreadableImageError: An image cannot be decoded, and ``skip_unreadable`` is off.
        StorageError: The folder cannot be written.

    Cost: each image is decoded, edited and written once; where edited images take more than a gigabyte, the rest is edited again
    when it is written.
    """
    reporter = run.reporter
    asked = AskedEdits.of(
        options.edits, share=options.share, among=options.among, unit=options.unit, strength=options.strength, seed=options.seed
    )
    resolved = {"edits": [spell(edit) for edit in asked.edits]}
    typed = {**configuration(options), **resolved}
    location = data.name if isinstance(data, Dataset) else data
    with run.directory(location, typed=typed, resolved=resolved, out=options.out) as directory:
        dataset = open_divided(data, options, use_split=None, default_split=False, reporter=reporter)
        merged = None if options.classes is None else _merged(dataset, Path(options.classes))
        carriers = asked.carriers(dataset, dataset.splits)
        edited = asked.apply(dataset, carriers, reporter)
        record = EditRecord(
            dataset=describe_dataset(dataset),
            edits=edited.editing.facts(),
            classes=_classes(dataset, carriers, merged),
            num_edited=int(carriers.sum()),
            share=options.share,
            strength=options.strength,
            unit=options.unit,
            seed=options.seed,
            fingerprint=edited.dataset.fingerprint,
            table=TABLE,
            references=edited.editing.references(),
        )
        result = EditedData(record, dataset=edited.dataset, edited=carriers)
        return result if directory is None else _write(result, dataset, merged, directory, reporter, options)


def _merged(dataset: Dataset, table: Path) -> np.ndarray:
    """The coarser class of each image."""
    if not dataset.task.partitions:
        raise DataError("--classes merges classes, and these images have several labels each.")
    merged = merge_labels([dataset.class_names[int(target)] for target in dataset.targets], read_merging(table))
    if len(set(merged.tolist())) < 2:
        raise DataError(f"{table.name} merges all classes into {merged[0]}, so that nothing is left to tell apart.")
    return merged


def _classes(dataset: Dataset, carriers: np.ndarray, merged: np.ndarray | None) -> list[EditedClassRow]:
    members = [dataset.members(place) for place in range(len(dataset.class_names))]
    coarser = [None if merged is None else Counter(merged[own].tolist()).most_common(1) for own in members]
    return [
        EditedClassRow(
            class_name=name,
            num_images=int(own.sum()),
            num_edited=int((own & carriers).sum()),
            merged=None if not commonest else str(commonest[0][0]),
        )
        for name, own, commonest in zip(dataset.class_names, members, coarser, strict=True)
    ]


def _write(
    result: EditedData,
    before: Dataset,
    merged: np.ndarray | None,
    directory: RunDirectory,
    reporter: Reporter,
    options: EditOptions,
) -> EditedData:
    if result.dataset is None or result.edited is None:
        return result
    directory.describe_data(before.fingerprint)
    directory.own(*own_images(directory.path, len(before)))
    with reporter.stage("Writing images", total=len(before)) as stage:
        paths = write_images(result.dataset, directory.path, told=stage.advance)
    directory.write(TABLE, labels_table(result.dataset, paths, result.edited, merged))
    if merged is None:
        directory.write(CLASSES, "".join(f"{name}\n" for name in before.class_names))
    shown = np.flatnonzero(result.edited)[:SHOWN].tolist()

    def pairs() -> list[Thumbnail]:
        return _beside(before, result.dataset or before, shown)

    page = publish(directory, result.record, reporter, thumbnails=None if options.no_images else pairs)
    return replace(result, out=directory.path, report=page)


def _beside(before: Dataset, after: Dataset, rows: Sequence[int]) -> list[Thumbnail]:
    """Each image as it was and as it is now."""
    return [
        thumbnail.model_copy(update={"class_name": what, "row": None})
        for what, images in (("before", before), ("after", after))
        for thumbnail in thumbnails_of_rows(images, [row + 1 for row in rows])
    ]
