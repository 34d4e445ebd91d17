"""What ``split_data`` returns: the parts of a data set, and the file that holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crossgraft.data.record import DataSplitRecord, SplitRow
from crossgraft.data.rows import ImageRows
from crossgraft.data.selection import is_leakage_known, leakage_in_words
from crossgraft.data.sources import SourceRows
from crossgraft.data.splits import PARTS, Part, Split
from crossgraft.errors import DataError, StorageError, UsageError
from crossgraft.result import Result
from crossgraft.storage.atomic import describe_os_error, refuse_to_replace
from crossgraft.tasks import task_of
from crossgraft.types import Targets

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class DataSplit(Result[DataSplitRecord]):
    """The parts of a data set.

    Attributes:
        split: Row numbers of each part; ``split.save(path)`` writes them.
    """

    split: Split | None = None

    def summary(self) -> str:
        """How many images each part has, and what the split is known by."""
        record = self.record
        sizes = ", ".join(f"{row.num_images} {row.name}" for row in record.splits)
        return f"{record.name}: {sizes} (split {record.split_fingerprint}). {record.leakage}"

    def to_frame(self) -> pd.DataFrame:
        """One row per part: ``part``, ``images``, ``groups`` and one column of counts per class."""
        import pandas as pd

        record = self.record
        rows = [
            {"part": row.name, "images": row.num_images, "groups": row.num_groups}
            | dict(zip(record.class_names, row.class_counts, strict=True))
            for row in record.splits
        ]
        return pd.DataFrame(rows)

    def places(self) -> Mapping[str, object]:
        """The file."""
        return {} if self.out is None else {"Split": self.out}

    def write(self, file: Path, *, overwrite: bool) -> DataSplit:
        """Write the split to a file, where it may be already.

        Raises:
            UsageError: The file holds something else, or another split and ``overwrite`` is off.
            StorageError: The file cannot be written.
        """
        if self.split is None:
            raise UsageError("There is no split to write.")
        refuse_to_replace(file, Split.is_in, what="a split")
        if file.exists() and not overwrite and not _holds(file, self.split):
            raise UsageError(f"{file} holds another split. Choose another file with --out, or replace it with --overwrite.")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"Cannot make the folder {file.parent}: {describe_os_error(error)}.") from error
        self.split.save(file, overwrite=True)
        return replace(self, out=file)


def _holds(file: Path, split: Split) -> bool:
    """Whether the file holds these rows, however it words where they come from; one without content holds no others."""
    words: dict[str, object] = {"method": "", "origins": {}}
    try:
        return not file.read_bytes() or Split.load(file).model_copy(update=words) == split.model_copy(update=words)
    except DataError:
        return False


def describe_split(
    split: Split, rows: SourceRows | ImageRows, source: str, targets: Targets, class_names: Sequence[str]
) -> DataSplitRecord:
    """A split of listed rows as a record.

    Args:
        split: Split of these rows.
        rows: All rows.
        source: Kind of their source.
        targets: (n,) class of each row, or (n, L) of 0 and 1.
        class_names: Names of the classes.
    """
    task, groups = task_of(targets, len(class_names)), rows.groups
    rows_of: dict[Part, np.ndarray] = {part: split.rows(part) for part in PARTS}
    shown = [
        SplitRow(
            name=part,
            num_images=len(members),
            num_groups=None if groups is None else len(np.unique(groups[members])),
            class_counts=[int(task.members(targets[members], index).sum()) for index in range(len(class_names))],
            origin=split.origins.get(part, split.method),
        )
        for part, members in rows_of.items()
        if members.size
    ]
    absent = {row.name: [n for n, c in zip(class_names, row.class_counts, strict=True) if c == 0] for row in shown}
    parts = [list(rows_of.values())]
    return DataSplitRecord(
        name=rows.name,
        source=source,
        num_images=len(targets),
        task=task.recorded,
        class_names=list(class_names),
        splits=shown,
        split_method=split.method,
        split_fingerprint=rows.fingerprint_of_split(rows_of["train"]),
        seed=split.seed,
        leakage=leakage_in_words(groups, rows.group_column, parts),
        leakage_checked=is_leakage_known(groups, parts),
        missing=[f"No image in {part} has the {task.noun} {', '.join(names)}." for part, names in absent.items() if names],
    )
