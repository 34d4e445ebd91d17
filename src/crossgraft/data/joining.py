"""Several data sets as one: their rows one after the other, and a column that says which of them a row is from."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crossgraft.data.file_counts import FileCounts, describe_files, joined_counts
from crossgraft.data.sources import SourceRows
from crossgraft.data.sources._source import NO_LABEL
from crossgraft.errors import DataError, UsageError
from crossgraft.words.formatting import count, joined

SOURCE_COLUMN = "source"
"""Further column of joined data, as ``--domains`` wants it."""

JOINED = "joined"
"""What ``ImageRows.source`` says of them."""


class NamedSet(NamedTuple):
    """One of the sets.

    Attributes:
        name: What the column says, and what its images and groups are called after.
        rows: Its rows.
    """

    name: str
    rows: SourceRows


def refuse_twice(locations: Sequence[str]) -> None:
    """One image would be counted twice.

    Raises:
        UsageError: Two of the locations are one.
    """
    places = [location if not Path(location).exists() else str(Path(location).resolve()) for location in locations]
    for location, place in zip(locations, places, strict=True):
        if places.count(place) > 1:
            raise UsageError(f"--join: the data set {Path(location).name} is given twice. Name each data set once.")


def join_rows(listed: Sequence[SourceRows], locations: Sequence[str]) -> SourceRows:
    """The rows of several sets, in the order of the sets.

    A class is one by its name, whatever its number in a set. Groups of two sets are never one, even under one name. Columns
    that all sets have are kept. Images are called by set and name.

    Args:
        listed: Rows of each set.
        locations: Where each is; folders above tell sets of one name apart.

    Raises:
        DataError: A set has a column ``source``; one has several labels per image, or a split, and another has not; labels of
            several per image differ; or a set has no class in common with the others.
    """
    sets = [NamedSet(*each) for each in zip(_names(listed, locations), listed, strict=True)]
    for name, rows in sets:
        if SOURCE_COLUMN in (*rows.attributes, rows.group_column):
            raise DataError(
                f"{name} has a column {SOURCE_COLUMN} already, where --join says which data set an image is from. Rename it."
            )
    labelled, notices_of_labels = _with_labels_alike(sets)
    starts = [0, *accumulate(len(rows.labels) for _, rows in sets)]
    groups, known, notices_of_groups = _groups(sets)
    attributes, notices_of_columns = _attributes(sets)

    def decode(row: int) -> np.ndarray:
        place = bisect_right(starts, row) - 1
        return decoders[place](row - starts[place])

    decoders = [rows.decode for rows in listed]  # alone: what is kept to read images with holds no other column
    stamps = [rows.stamps for rows in listed if rows.stamps is not None]
    read = sum((Counter(rows.files.read) for rows in listed), Counter[tuple[str, str]]())
    files = FileCounts(read, joined_counts(skipped for rows in listed for skipped in rows.files.passed_over))
    of_each = {sentence for rows in listed for sentence in describe_files(rows.files)}
    reading = dict.fromkeys(sentence for rows in listed for sentence in rows.reading if sentence not in of_each)
    of_rows = np.repeat([name for name, _ in sets], [len(rows.labels) for rows in listed])
    return SourceRows(
        name=" + ".join(name for name, _ in sets),
        labels=np.concatenate([rows.labels for rows in labelled]),
        label_names=labelled[0].label_names,
        has_labels=labelled[0].has_labels,
        image_names=[f"{name}/{image}" for name, rows in sets for image in rows.image_names],
        decode=decode,
        splits=_splits(sets),
        split_names=_split_names(listed),
        split_method="; ".join(dict.fromkeys(rows.split_method for rows in listed)),
        groups=groups,
        group_column=" or ".join(dict.fromkeys(rows.group_column for rows in listed if rows.group_column is not None)) or None,
        groups_known=known,
        attributes={**attributes, SOURCE_COLUMN: of_rows},
        notices=(
            *(notice for rows in listed for notice in rows.notices),
            *notices_of_labels,
            *notices_of_groups,
            *notices_of_columns,
        ),
        reading=(*describe_files(files), *reading),
        files=files,
        problems=tuple(problem for rows in listed for problem in rows.problems),
        stamps=(lambda: tuple(stamp() for stamp in stamps)) if len(stamps) == len(listed) else None,
    )


def _names(listed: Sequence[SourceRows], locations: Sequence[str]) -> list[str]:
    """As the sets call themselves, behind as many folders as it takes to tell them apart."""
    folders = [Path(location).absolute().parent.parts for location in locations]
    for number in range(max(map(len, folders)) + 1):
        above = ["/".join(parts[len(parts) - number :]) for parts in folders]
        names = [f"{folder}/{rows.name}" if folder else rows.name for folder, rows in zip(above, listed, strict=True)]
        if len(set(names)) == len(names):
            return names
    return [f"{rows.name} {number}" for number, rows in enumerate(listed, 1)]


def _with_labels_alike(sets: Sequence[NamedSet]) -> tuple[list[SourceRows], list[str]]:
    """The sets with labels that mean the same in each, and what is to be said of classes that a set lacks."""
    listed = [rows for _, rows in sets]
    unlabelled = [name for name, rows in sets if not rows.has_labels]
    if unlabelled:
        nothing = [replace(r, labels=np.full(len(r.labels), NO_LABEL), label_names=None, has_labels=False) for r in listed]
        others = len(unlabelled) < len(sets)
        return nothing, [f"{joined(unlabelled)} has no labels, so those of the others are not used."] * others
    several = [name for name, rows in sets if rows.labels.ndim == 2]
    if several and len(several) < len(sets):
        single = next(name for name, rows in sets if rows.labels.ndim == 1)
        raise DataError(
            f"{several[0]} has several labels per image and {single} has one class for each, so they cannot be joined. Give "
            "both one kind of labels: one column of classes, or columns of 0 and 1."
        )
    if several:
        return _with_columns_alike(sets), []
    if all(rows.label_names is not None for rows in listed):
        names = list(dict.fromkeys(name for rows in listed for name in rows.label_names or ()))
        new = [np.array([names.index(name) for name in rows.label_names or ()]) for rows in listed]
        alike = [replace(r, labels=to[r.labels.astype(np.int64)], label_names=names) for r, to in zip(listed, new, strict=True)]
    elif all(rows.label_names is None and rows.labels.dtype.kind in "iu" for rows in listed):
        alike = listed
    else:
        alike = [replace(rows, labels=_as_words(rows), label_names=None) for rows in listed]
    classes = {name: set(_as_words(rows).tolist()) for name, rows in sets}
    for name, own in classes.items():
        others = set[str]().union(*(theirs for other, theirs in classes.items() if other != name))
        if not own & others:
            raise DataError(
                f"{name} has no class in common with the others ({_some(own)}; the others: {_some(others)}), so that a model "
                "would learn which data set an image is from. Give one class one name in all of them."
            )
    every = set[str]().union(*classes.values())
    lacking = [f"{name} has no {_some(every - own)}" for name, own in classes.items() if every - own]
    shared = count(len(set.intersection(*classes.values())))
    some = f"Joined data sets have other classes ({shared} of {count(len(every))} in all of them): {'; '.join(lacking)}."
    return alike, [some] * bool(lacking)


def _as_words(rows: SourceRows) -> np.ndarray:
    """(n,) name of each class."""
    if rows.label_names is not None:
        return np.asarray(rows.label_names)[rows.labels.astype(np.int64)].astype(str)
    is_whole = rows.labels.dtype.kind == "f" and bool(np.all(rows.labels % 1 == 0))
    return (rows.labels.astype(np.int64) if is_whole else rows.labels).astype(str)


_MOST_NAMED = 5


def _some(names: set[str]) -> str:
    ordered = sorted(names)
    return joined(ordered[:_MOST_NAMED]) + (" …" if len(ordered) > _MOST_NAMED else "")


def _with_columns_alike(sets: Sequence[NamedSet]) -> list[SourceRows]:
    """Columns of several labels per image in the order of the first set."""
    (first, rows), *others = sets
    names = _label_columns(rows)
    alike = [rows]
    for name, other in others:
        own = _label_columns(other)
        if differing := sorted(set(own) ^ set(names)):
            where = name if differing[0] in own else first
            raise DataError(
                f"The label {differing[0]} is one of {where} alone, and what the other data set would say of it is not known. "
                "Name the labels that both have with --label-column."
            )
        alike.append(replace(other, labels=other.labels[:, [own.index(label) for label in names]], label_names=names))
    return alike


def _label_columns(rows: SourceRows) -> list[str]:
    return list(rows.label_names if rows.label_names is not None else map(str, range(rows.labels.shape[1])))


def _splits(sets: Sequence[NamedSet]) -> np.ndarray | None:
    with_split = [name for name, rows in sets if rows.splits is not None]
    if not with_split:
        return None
    if len(with_split) < len(sets):
        without = next(name for name, rows in sets if rows.splits is None)
        raise DataError(
            f"{with_split[0]} has a split of its own and {without} has none, so that it is not known what part its images belong "
            "to. Give both a column split, or neither."
        )
    return np.concatenate([np.asarray(rows.splits).astype(str) for _, rows in sets])


def _split_names(listed: Sequence[SourceRows]) -> tuple[str, ...] | None:
    known = [rows.split_names for rows in listed if rows.split_names is not None]
    return tuple(dict.fromkeys(name for names in known for name in names)) if len(known) == len(listed) else None


def _groups(sets: Sequence[NamedSet]) -> tuple[np.ndarray | None, np.ndarray | None, list[str]]:
    """Groups, whether each is known, and what is to be said of them."""
    without = [name for name, rows in sets if rows.groups is None]
    if len(without) == len(sets):
        return None, None, []
    groups = [
        f"{name}: {group}"
        for name, rows in sets
        for group in (rows.groups if rows.groups is not None else [f"image {number}" for number in range(len(rows.labels))])
    ]
    known = np.concatenate(
        [
            np.full(len(rows.labels), rows.groups is not None) if rows.groups_known is None else rows.groups_known
            for _, rows in sets
        ]
    )
    said = [f"{joined(without)}: no groups are known, so each image counts as one of its own."] if without else []
    return np.asarray(groups), None if known.all() else known, said


def _attributes(sets: Sequence[NamedSet]) -> tuple[dict[str, np.ndarray], list[str]]:
    """Columns of all sets, and what is to be said of others."""
    columns = [rows.attributes for _, rows in sets]
    shared = [name for name in columns[0] if all(name in others for others in columns)]
    found = {name: _end_to_end([others[name] for others in columns]) for name in shared}
    partial = list(dict.fromkeys(name for own in columns for name in own if name not in shared))
    said = f"Columns that not all joined data sets have are left out: {', '.join(partial)}."
    return found, [said] * bool(partial)


def _end_to_end(columns: Sequence[np.ndarray]) -> np.ndarray:
    same = len({column.dtype.kind for column in columns}) == 1
    return np.concatenate(columns if same else [column.astype(str) for column in columns])
