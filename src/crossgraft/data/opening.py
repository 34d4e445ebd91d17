"""Open a data set: list the rows to use, look at each of their images once, refuse labels that are no classes.

Of two mistakes, one in the data is said before one in the models.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crossgraft.data.class_names import name_classes
from crossgraft.data.dataset import Dataset
from crossgraft.data.fingerprint import ListedRows
from crossgraft.data.listing import list_rows, look_at_rows, make_request, tell_of_listing, warn_of_unreadable
from crossgraft.data.sampling import FewerRows, GivenShares
from crossgraft.data.selection import GIVEN, OF_ROWS, RowSelection
from crossgraft.data.sources import SourceRequest, SourceRows
from crossgraft.data.splits import PARTS, Part, Split
from crossgraft.errors import CrossgraftError, DataError, OtherImagesError, UntrustedCodeError, UsageError
from crossgraft.options._option import Options, narrowed, options_of
from crossgraft.options._values import checked
from crossgraft.options.data import VAL_SHARE, DatasetOptions, OpenOptions, SourceOptions
from crossgraft.plain_types import Uncertain
from crossgraft.progress import Reporter
from crossgraft.tasks import task_of

_NOT_THOSE = "have no split of their own, and are not what the model was fine-tuned on"
_ADVICE = "Leave out --use-split to predict every image."

FindSplit = Callable[[], Split | None]
"""Reads the split of the run when it is needed; None: the model was passed on without it."""


class ListedPart(NamedTuple):
    """Rows that were listed, and which of them are used.

    Attributes:
        source: Name of the source.
        rows: Listed rows.
        chosen: Numbers of those that are used.
        used: What they are, in words.
    """

    source: str
    rows: SourceRows
    chosen: np.ndarray
    used: str


def list_part(location: object, request: SourceRequest, reporter: Reporter, find_split: FindSplit | None = None) -> ListedPart:
    """The rows of ``request.use_split``: of the data's own split, or else of the split of the run.

    Args:
        location: What ``list_rows`` takes.
        request: What is asked for; None as ``use_split``: all rows.
        reporter: Reporter of notices.
        find_split: Finds the split of the run that made the model; None: there is no run.

    Raises:
        DataError: There are no such rows; or the split of the run is missing, damaged, or of other data or groups.
        UsageError: As of ``list_rows``.
    """
    part = request.use_split
    if find_split is None or part not in PARTS:
        return _own(*list_rows(location, request, reporter), part)
    failed: DataError | None = None
    try:
        source, rows = list_rows(location, request, reporter)
        if rows.splits is not None:
            return _own(source, rows, part)
    except DataError as error:  # most say that there is no such split
        failed = error
    labelled = replace(request, use_split=None, needs_labels=True)  # as the fine-tuning listed them
    try:
        source, rows = list_rows(location, labelled, Reporter(quiet=True))
    except CrossgraftError as error:
        raise failed or DataError(f"The data {_NOT_THOSE}: {error} {_ADVICE}") from error
    if failed is not None:
        if rows.splits is not None:
            raise failed
        tell_of_listing(rows, reporter)
    return ListedPart(source, rows, *part_of_run(rows, part, find_split()))


def _own(source: str, rows: SourceRows, part: str | None) -> ListedPart:
    return ListedPart(source, rows, np.arange(len(rows.labels)), "all rows" if part is None else f"split {part}")


def part_of_run(rows: ListedRows, part: Part, split: Split | None) -> tuple[np.ndarray, str]:
    """Numbers of the rows that had this part in a run, and what they are in words.

    Raises:
        DataError: There is no split, it is one of other data or other groups, or it leaves the part empty.
    """
    if split is None:
        raise DataError(
            f"{rows.name} has no split of its own, and there is no split.json beside the model: it was passed on without its "
            f"run, or is one of several folds. So its {part} rows are not known. Give the whole run directory of crossgraft "
            f"tune, or leave out --use-split to predict every image."
        )
    try:
        split.refuse_other_rows(rows)
    except OtherImagesError as error:
        raise OtherImagesError(f"The images of {rows.name} {_NOT_THOSE}: {error} {_ADVICE}") from error
    chosen = split.rows(part)
    if chosen.size == 0:
        raise DataError(f"The split of the run has no {part} rows ({split.method}). {_ADVICE}")
    return chosen, f"{part} rows of split {rows.fingerprint_of_split(split.rows('train'))}, that of the fine-tuning"


def open_dataset(
    location: str | Path,
    *,
    use_split: str | None = "train",
    default_split: bool = False,
    val_fraction: float = VAL_SHARE,
    join: str | Path | Sequence[str | Path] | None = None,
    label_column: str | Sequence[str] | None = None,
    label_separator: str | None = None,
    class_names: str | Path | Sequence[str] | None = None,
    ordinal: bool = False,
    group_column: str | None = None,
    path_column: str | None = None,
    image_root: str | Path | None = None,
    allow_outside: bool = False,
    uncertain: Uncertain | None = None,
    none_label: str | None = None,
    group_from: str | None = None,
    window: str | None = None,
    slices: str | None = None,
    allow_download: bool = False,
    keep_masks: bool = False,
    skip_unreadable: bool = False,
    split: str | Path | None = None,
    holdout: float | None = None,
    folds: int | None = None,
    fold: int = 0,
    limit: int | None = None,
    per_class: int | None = None,
    class_shares: GivenShares | None = None,
    pair_by: str | None = None,
    seed: int = 0,
    num_threads: int | None = None,
    reporter: Reporter | None = None,
) -> Dataset:
    """Open images with labels, and decode every image that will be used once.

    Args:
        location: A folder with one sub-folder per class, a ``.csv``, ``.tsv`` or ``.jsonl`` table, an ``.npz`` file, a folder
            written by ``save_to_disk`` of Hugging Face datasets, ``hf:OWNER/NAME``, the word ``digits``, or what an installed
            plug-in opens.
        use_split: Split of which the rows are used, where the data have splits; images of other rows are not
            opened and have no influence on anything. Without splits, all rows are used. None: all rows,
            whatever their split; where one is read or drawn (``split``, ``holdout``, ``folds``), ``Dataset.splits``
            then names the part of each row.
        default_split: Whether parts that are missing are drawn, as every command does (``complete_split``).
        val_fraction: Share of the training rows that becomes val in a split that is drawn; 0: none.
        join: Further data sets that are joined with the first (``data.joining``); all that is said here holds for each of them.
        label_column: Column of the labels, if its name is not a usual one. Several columns (a sequence, or one text with
            commas) are several labels per image.
        label_separator: Separator of the labels in one cell, where an image may have several.
        class_names: Names of the classes in order, or a text file with one name per line. Where labels are whole
            numbers, name k belongs to label k; where they are words, the list gives their order.
        ordinal: Whether the order of the classes has a meaning, as with grades; reports then say what does not
            use it.
        group_column: Column of the patient, writer or lesion; by default one with a usual name. ``none``: there are no
            groups.
        path_column: Column of the image files.
        image_root: Folder that the image files of a table are relative to; by default the folder of the
            table.
        allow_outside: Whether paths of a table (or of a Hugging Face dataset) may lead out of that folder.
        uncertain: What becomes of labels that are not known (-1, blank, NA): ``zeros``, ``ones`` or ``leave-out``; by default
            they are refused. Where an image may have several labels, blank ones are 0 under each of these.
        none_label: Name of a label that says that an image has none of the others, such as ``No Finding``.
        group_from: Regular expression whose parentheses find the group of an image in its path.
        window: Intensities of DICOM and NIfTI images that become black and white.
        slices: Slices of volumes and frames of multi-frame files that are images.
        allow_download: Whether data may be fetched, where the location names data on a hub.
        keep_masks: Whether masks and other pictures that were derived from an image beside them are images.
        skip_unreadable: Leave out images that cannot be decoded, and list them.
        split: File of a saved split; only its train rows are used.
        holdout: Share of the images that becomes test in a new split, of which only the train rows are used; whole groups
            stay together. 0: every image is a training image, and no split is drawn.
        folds: Make this many folds and use all but one of them.
        fold: Number of the fold that is set aside, from 0.
        limit: Use at most this many images; classes keep their shares.
        per_class: Use this many images of each class.
        class_shares: Use as many images as there can be with these shares of the classes (``malignant=0.3``), in each part;
            classes that are not named divide the rest as they do in the data.
        pair_by: Use as many images of every class from each group of this column, such as the patient; groups without an image
            of every class are left out, counted and said.
        seed: Random seed of ``holdout``, ``folds``, ``limit``, ``per_class``, ``class_shares`` and ``pair_by``.
        num_threads: Threads that decode images; by default one per core, at most 8.
        reporter: Reporter of progress, notices and warnings.

    Raises:
        DataError: The data are missing, empty, damaged or unsound; the message names the file or the row.
        UnreadableImageError: An image cannot be decoded, and ``skip_unreadable`` is off.
        MissingExtraError: The images have a format that this version cannot read.
        UsageError: An option has no meaning for this kind of data, or a value that it cannot have.
    """
    options = checked(OpenOptions, locals())
    location, use_split, default_split = options.location, options.use_split, options.default_split
    reporter = options.reporter if options.reporter is not None else Reporter(quiet=True)
    selection = RowSelection.of(options, by_default=default_split, val_share=options.val_fraction)
    source, rows = list_rows(location, make_request(options, use_split=use_split), reporter)
    if rows.splits is not None and use_split is not None and _divides_others(selection.split, rows):
        source, rows = list_rows(location, make_request(options, use_split=None), Reporter(quiet=True))
    elsewhere = _other_parts(location, rows, options, use_split) if default_split and selection.keeps_official else ()
    if rows.problems:
        raise DataError(rows.problems[0])
    classes = name_classes(rows.labels, rows.label_names, options.class_names)
    task = task_of(classes.targets, len(classes.names), ordinal=options.ordinal)
    task.refuse_useless(classes.targets, classes.names, rows.name)
    for notice in classes.notices:
        reporter.warn(notice)
    drawn = selection.make_split(rows, classes.targets, classes.names, elsewhere=elsewhere)
    if drawn is not None:
        is_as_given = drawn.seed is None and selection.keeps_official
        rows = replace(
            rows,
            split_method=rows.split_method if is_as_given else drawn.method,
            splits=drawn.part_names() if use_split is None else rows.splits,
        )
    chosen = np.arange(len(rows.labels)) if drawn is None or use_split is None else drawn.rows("train")
    train = chosen if drawn is None else drawn.rows("train")
    used = _rows_in_words(rows, use_split, drawn)
    fewer = selection.fewer(rows, chosen, classes.targets[chosen], classes.names, whole=use_split is None)
    if fewer is not None:
        chosen, used = chosen[fewer.numbers], _said_of(fewer, used, reporter)
    dataset = look_at_rows(
        source,
        rows,
        chosen,
        classes=classes,
        split=None if elsewhere else drawn,
        split_fingerprint=None if drawn is None and rows.splits is None else rows.fingerprint_of_split(train),
        rows_used=used,
        ordinal=options.ordinal,
        skip_unreadable=options.skip_unreadable,
        num_threads=options.num_threads,
        reporter=reporter,
    ).seen_as(Dataset)
    _refuse_emptied_classes(dataset)
    warn_of_unreadable(dataset, reporter)
    return dataset.readable()


def _divides_others(split: Path | None, rows: SourceRows) -> bool:
    """Whether a saved split is one of all rows, as ``split_data`` and ``fine_tune`` write it, and not of these alone."""
    return split is not None and Split.load(split).num_images != len(rows.labels)


def _other_parts(location: str | Path, rows: SourceRows, options: SourceOptions, use_split: str | None) -> tuple[str, ...]:
    """Parts that the data have, of which no row was asked for; that they are there is all that is known of them."""
    if rows.splits is None or use_split is None:
        return ()
    names = rows.split_names
    if names is None:  # a source of another package, which has to list all rows to say so
        listed = list_rows(location, make_request(options, use_split=None), Reporter(quiet=True))[1].splits
        names = () if listed is None else tuple(np.unique(listed).tolist())
    return tuple(name for name in names if name != use_split)


def open_divided(
    data: str | Path | Dataset,
    options: Options,
    *,
    use_split: str | None,
    default_split: bool = True,
    val_fraction: float = VAL_SHARE,
    reporter: Reporter,
) -> Dataset:
    """Rows of data that a verb was given, each with its part: the one that comes with the data, was saved, or is drawn.

    Args:
        data: Location as in ``open_dataset``, or an open ``Dataset``, whose rows are divided in the same way.
        options: Options of a verb; those of ``DatasetOptions`` that it lacks are at their defaults.
        use_split: The part whose rows are used, or None: all rows, and ``Dataset.splits`` names the part of each.
        default_split: As in ``open_dataset``.
        val_fraction: As in ``open_dataset``.
        reporter: Reporter of progress, notices and warnings.

    Raises:
        DataError: As in ``open_dataset``; or the data have no rows of the part.
        UsageError: An option belongs to opening the data, but an open data set was given.
    """
    keywords = {name: getattr(options, name) for name in DATA_OPTIONS if hasattr(options, name)}
    if not isinstance(data, Dataset):
        keywords["fold"] = keywords.get("fold") or 0
        return open_dataset(
            data, use_split=use_split, default_split=default_split, val_fraction=val_fraction, reporter=reporter, **keywords
        )
    others = [name for name, value in keywords.items() if value and name not in {*OF_ROWS, "allow_download"}]
    if others:
        raise UsageError(f"{others[0]} belongs to opening the data, but an open Dataset was given; pass it to open_dataset.")
    selection = RowSelection.of(options, by_default=default_split, val_share=val_fraction)
    return _divide(data, selection, use_split, reporter)


def _divide(dataset: Dataset, selection: RowSelection, use_split: str | None, reporter: Reporter) -> Dataset:
    split = selection.make_split(dataset, dataset.targets, dataset.class_names)
    if split is not None:
        known = dataset.fingerprint_of_split(split.rows("train"))
        dataset = replace(dataset, splits=split.part_names(), split=split, split_method=split.method, split_fingerprint=known)
    if use_split is not None and dataset.splits is not None:
        chosen = dataset.splits == use_split
        if not chosen.any():
            listed = ", ".join(sorted(set(dataset.splits.tolist()) - {""}))
            raise DataError(f"{dataset.name} has the splits {listed} but no split {use_split}.")
        dataset = dataset.take(chosen, rows_used=_part_in_words(use_split, split))
    everything = np.arange(len(dataset))
    fewer = selection.fewer(dataset, everything, dataset.targets, dataset.class_names, whole=use_split is None)
    if fewer is None or len(fewer.numbers) == len(dataset):
        return dataset
    return dataset.take(fewer.numbers, rows_used=_said_of(fewer, dataset.rows_used, reporter))


def _said_of(fewer: FewerRows, used: str, reporter: Reporter) -> str:
    """What rows are used, in words, and a warning of what pairing left out."""
    if fewer.left_out is not None:
        reporter.warn(fewer.left_out)
    return f"{used}, {fewer.said}" if fewer.said else used


DATA_OPTIONS = tuple(options_of(DatasetOptions))
"""What a user may say about data; every command that opens data takes these arguments and flags."""


def _rows_in_words(rows: SourceRows, use_split: str | None, split: Split | None) -> str:
    if use_split is not None and (split is not None or rows.splits is not None):
        return _part_in_words(use_split, split)
    return "all rows (no split given)" if rows.splits is None else "all rows of all splits"


def _part_in_words(part: str, split: Split | None) -> str:
    """Rows of one part; those of a split that came with the data are called so."""
    is_drawn = split is not None and split.origins.get("train") != GIVEN
    return f"{part} rows of the split" if is_drawn else f"split {part}"


def _refuse_emptied_classes(dataset: Dataset) -> None:
    """No class may be left without any image that can be decoded."""
    for index, name in enumerate(dataset.class_names):
        members = np.flatnonzero(dataset.members(index))
        if members.size and not np.isin(members, dataset.readable_rows).any():
            raise DataError(
                f"No image of the class {name} can be decoded ({len(dataset.unreadable)} unreadable images in all, the first "
                f"is {dataset.image_name(next(iter(dataset.unreadable)))}). Repair them or remove the class."
            )


@contextmanager
def data_errors_first(data: str | Path | Dataset, options: Options) -> Generator[None]:
    """Where the body fails, list the rows of ``data``, so that a wrong path or column is what the user hears of first.

    Names of models are looked up before the data, which costs less; but who mistyped both must correct the data anyway, and
    nothing is listed twice where nothing is wrong. No image is decoded, and nothing is fetched.

    Args:
        data: As in ``open_dataset``, or an open data set.
        options: Options with those of ``SourceOptions``.

    Raises:
        CrossgraftError: That of the data, else that of the body.
    """
    try:
        yield
    except UntrustedCodeError:
        raise  # what may run is decided before anything is read
    except CrossgraftError as error:
        source = narrowed(SourceOptions, options)
        if not isinstance(data, Dataset) and not source.allow_download:  # with it listing could fetch the data
            try:
                list_rows(data, make_request(source, use_split=None), Reporter(quiet=True))
            except CrossgraftError as wrong:
                raise wrong from error
        raise
