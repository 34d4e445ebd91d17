"""Rows that train, rows that select the model, and rows that are only used when everything is decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from crossgraft.data import DATA_OPTIONS, Dataset, Split, k_folds, limit_rows, make_split, open_dataset, take_per_class
from crossgraft.data.selection import RowSelection
from crossgraft.data.splits import PARTS
from crossgraft.errors import DataError, UsageError
from crossgraft.options import TuneOptions
from crossgraft.options.data import VAL_SHARE
from crossgraft.progress import Reporter
from crossgraft.seeding import derive_seed
from crossgraft.tune.parts import FoldRows, Rows, TuningRows

TEST_SHARE = 0.2
"""Share of the images that is set aside as test where the data have no test rows; the rest are train and val."""

GIVEN = "given with the data"
_OF_ROWS = ("split", "holdout", "folds", "fold", "limit", "per_class", "seed")
"""Options that choose rows, among those that open data."""


def open_rows(data: str | Path | Dataset, options: TuneOptions, reporter: Reporter) -> TuningRows:
    """Open the data and give every row its part.

    Parts that come with the data (or a saved split) are used. A missing test part is taken from the training rows at
    random, then a missing val part; whole groups stay together, and classes keep their shares. With folds, every row is a
    test row once, and each fold takes its val rows from the others. ``per_class`` leaves val and test whole.

    Args:
        data: Location as in ``open_dataset``, or an open ``Dataset``.
        options: Options of ``fine_tune``.
        reporter: Reporter of notices about the data.

    Raises:
        DataError: The data are wrong, or too few rows are left for a part; the message names it.
        UsageError: Options contradict each other, the data have a split already, or have no column of the subgroups.
    """
    RowSelection(
        split=None if options.split is None else Path(options.split),
        holdout=options.holdout,
        folds=options.folds,
        fold=options.fold or 0,
        limit=options.limit,
        per_class=options.per_class,
        seed=options.seed,
    )
    share, seed, per_class = options.val_fraction, options.seed, options.per_class
    if not 0 <= share < 1:
        raise UsageError(f"--val-fraction must lie between 0 and 1 (0: no validation rows), not {share:g}.")
    dataset = _open(data, options, reporter)
    rows = _folds(dataset, options.folds, options) if options.folds else _one_split(dataset, share, seed)
    if per_class is not None:
        rows = replace(rows, parts=tuple(_fewer(dataset, parts, per_class, seed) for parts in rows.parts))
        rows.origins["train"] += f", {per_class} images of each class"
    for parts in rows.parts:
        _refuse_missing_classes(dataset, parts)
        _refuse_empty_test(dataset, parts)
    columns_of(dataset, options.subgroups)
    return rows


def training_rows(dataset: Dataset, *, val_fraction: float = VAL_SHARE, seed: int = 0) -> TuningRows:
    """All rows train, except a random share that selects the model; none is set aside as test.

    For somebody who has split the images already, and measures the result by their own means.
    Whole groups stay together; with a share of 0 there are no val rows.

    Raises:
        DataError: Too few rows are left for a part.
        UsageError: The share is not in [0, 1).
    """
    if not 0 <= val_fraction < 1:
        raise UsageError(f"The share of validation rows must lie between 0 and 1 (0: none), not {val_fraction:g}.")
    train, val, origin = np.arange(len(dataset)), _NO_ROWS, "none"
    if val_fraction > 0:
        train, val = _draw(dataset, train, val_fraction, seed, "val")
        origin = f"{val_fraction:.0%} of the rows, {_how(dataset)}"
    parts = FoldRows(train, val, _NO_ROWS)
    _refuse_missing_classes(dataset, parts)
    named = replace(dataset, splits=_part_names(len(dataset), parts))
    return TuningRows(named, (parts,), {"train": "all other rows", "val": origin, "test": "none"})


def _open(data: str | Path | Dataset, options: TuneOptions, reporter: Reporter) -> Dataset:
    """All rows, with ``splits`` where there are parts already."""
    split, holdout, limit, seed = options.split, options.holdout, options.limit, options.seed
    reading = {name: getattr(options, name) for name in DATA_OPTIONS if name not in _OF_ROWS}
    if not isinstance(data, Dataset):
        return open_dataset(
            data, use_split=None, split=split, holdout=holdout, limit=limit, seed=seed, reporter=reporter, **reading
        )
    given = [name for name, value in reading.items() if value and name != "allow_download"]
    if given:
        raise UsageError(
            f"{given[0]} belongs to opening the data, but an open Dataset was given; pass it to open_dataset."
        )
    if split is not None:
        saved = Split.load(Path(split))
        saved.refuse_other_rows(data)
        data = replace(data, splits=saved.part_names())
    if holdout is not None:
        if data.splits is not None:
            raise UsageError(f"{data.name} has a split of its own, which is kept. Leave out --holdout.")
        rest, test = _draw(data, np.arange(len(data)), holdout, seed, "test")
        data = replace(data, splits=_part_names(len(data), FoldRows(rest, _NO_ROWS, test)))
    return data if limit is None else data.take(limit_rows(data.targets, limit, seed=seed))


_NO_ROWS = np.zeros(0, dtype=np.int64)


def _one_split(dataset: Dataset, val_fraction: float, seed: int) -> TuningRows:
    splits = np.full(len(dataset), "train") if dataset.splits is None else dataset.splits
    train, val, test = (np.flatnonzero(splits == part) for part in PARTS)
    if train.size == 0:
        names = ", ".join(sorted({str(name) for name in splits} - {""}))
        raise DataError(f"{dataset.name} has the splits {names} but no split train, so there is nothing to train on.")
    ranked = None if dataset.splits is None else train
    given = GIVEN if dataset.split is None else dataset.split_method
    origins = dict.fromkeys(PARTS, given) if dataset.splits is not None else {"train": "all other rows"}
    if test.size == 0:
        train, test = _draw(dataset, train, TEST_SHARE, seed, "test")
        origins["test"] = f"{TEST_SHARE:.0%} of the training rows, {_how(dataset)}"
    if val.size == 0 and val_fraction > 0:
        train, val = _draw(dataset, train, val_fraction, seed, "val")
        origins["val"] = f"{val_fraction:.0%} of the training rows, {_how(dataset)}"
    elif val.size == 0:
        origins["val"] = "none"
    parts = FoldRows(train, val, test)
    named = replace(dataset, splits=_part_names(len(dataset), parts))
    return TuningRows(named, (parts,), {part: origins[part] for part in PARTS}, ranked=ranked)


def _folds(dataset: Dataset, num_folds: int, options: TuneOptions) -> TuningRows:
    val_fraction, seed = options.val_fraction, options.seed
    if dataset.splits is not None:
        raise UsageError(f"{dataset.name} has a split of its own, which is kept. Leave out --folds.")
    drawn = k_folds(dataset.targets, dataset.groups, num_folds=num_folds, seed=seed, class_names=dataset.class_names)
    parts: list[FoldRows] = []
    for number, split in enumerate(drawn):
        if options.fold not in (None, number):
            continue
        train, val = split.rows("train"), _NO_ROWS
        if val_fraction > 0:
            train, val = _draw(dataset, train, val_fraction, seed, f"val of fold {number}")
        parts.append(FoldRows(train, val, split.rows("test"), fold=number))
    how = _how(dataset)
    val = f"{val_fraction:.0%} of the rows of the other folds, {how}" if val_fraction else "none"
    origins = {"train": "the other folds", "val": val, "test": f"one of {num_folds} folds, {how}"}
    return TuningRows(dataset, tuple(parts), origins, num_folds=num_folds)


def _draw(dataset: Dataset, rows: Rows, share: float, seed: int, purpose: str) -> tuple[Rows, Rows]:
    """``rows`` without the drawn ones, and the drawn ones, both ascending."""
    split = make_split(
        dataset.targets[rows],
        None if dataset.groups is None else dataset.groups[rows],
        fractions={"train": 1 - share, "test": share},
        seed=derive_seed(seed, "rows of", purpose),
        class_names=dataset.class_names,
    )
    return rows[split.rows("train")], rows[split.rows("test")]


def _fewer(dataset: Dataset, parts: FoldRows, per_class: int, seed: int) -> FoldRows:
    chosen = take_per_class(dataset.targets[parts.train], per_class, seed=seed, class_names=dataset.class_names)
    return replace(parts, train=parts.train[chosen])


def _refuse_missing_classes(dataset: Dataset, parts: FoldRows) -> None:
    """Every class must be there to be learned; a label of several needs images with it and images without it."""
    where = "" if parts.fold is None else f" of fold {parts.fold}"
    if len(dataset.class_names) < dataset.task.fewest_classes:
        raise DataError(
            f"All {len(dataset)} images of {dataset.name} have the class {', '.join(dataset.class_names)}, so there is nothing "
            "to tell apart. Give images of a second class, or look whether the labels were read from the right column."
        )
    for index, name in enumerate(dataset.class_names):
        here = int(dataset.members(index)[parts.train].sum())
        if here == 0 or (not dataset.task.partitions and here == len(parts.train)):
            extent, what = "no" if here == 0 else "every", f"{dataset.task.noun} {name}"
            raise DataError(
                f"Among the {len(parts.train)} training rows{where} of {dataset.name}, {extent} image has the {what}, so it "
                "cannot be learned. Give more images, leave it out, or choose another split."
            )


def _refuse_empty_test(dataset: Dataset, parts: FoldRows) -> None:
    where = "" if parts.fold is None else f" of fold {parts.fold}"
    if parts.test.size == 0:
        raise DataError(f"{dataset.name} has no test rows{where}, so nothing can be said about the result.")


def _how(dataset: Dataset) -> str:
    return "drawn by image" if dataset.groups is None else f"drawn by {dataset.group_column}"


def _part_names(num_rows: int, parts: FoldRows) -> np.ndarray:
    names = np.full(num_rows, "", dtype="U5")
    for part in PARTS:
        names[parts.rows(part)] = part
    return names


def columns_of(dataset: Dataset, names: str | Sequence[str] | None) -> dict[str, np.ndarray]:
    """The attribute columns to report subgroups of.

    Raises:
        UsageError: A column does not exist.
    """
    wanted = names.split(",") if isinstance(names, str) else list(names or ())
    wanted = [name.strip() for name in wanted if name.strip()]
    for name in wanted:
        if name not in dataset.attributes:
            known = ", ".join(dataset.attributes) or "none"
            raise UsageError(f"--subgroups {name}: {dataset.name} has no such further column (it has: {known}).")
    return {name: dataset.attributes[name] for name in wanted}
