"""``split_data``: the split that every command uses, as a file."""

from __future__ import annotations

from pathlib import Path

from crossgraft.data import Dataset
from crossgraft.data.checks.class_counts import ADVICE, find_alike_groups
from crossgraft.data.class_names import name_classes
from crossgraft.data.listing import list_rows, make_request
from crossgraft.data.selection import RowSelection
from crossgraft.errors import DataError, UsageError
from crossgraft.options._option import narrowed
from crossgraft.options.data import SourceOptions
from crossgraft.running.verb import Run, verb
from crossgraft.running.written_files import refuse_file_of_a_run
from crossgraft.split.options import SplitOptions
from crossgraft.split.result import DataSplit, describe_split
from crossgraft.tasks import task_of


@verb("split", SplitOptions)
def split_data(data: str | Path | Dataset, options: SplitOptions, run: Run) -> DataSplit:
    """Divide a data set into train, val and test as every other command does, and write the split to a file.

    Parts that come with the data are kept. A missing test part is a fifth of the rows, a missing val part a fifth of the
    others; groups stay together and classes keep their shares. ``rank``, ``tune`` and ``check`` draw the same split from the
    same data, groups and seed, so the file is needed only where other programs, or another seed, should use it.

    Args:
        data: Folder, table, ``.npz`` file, ``digits``, or an open ``Dataset``.
        {options}

    Returns:
        The parts with their classes; ``split`` holds the row numbers.

    Raises:
        DataError: The rows cannot be listed, or not be split as asked.
        UsageError: An argument is wrong or contradicts another; or ``out`` holds another split.
        StorageError: The file cannot be written.

    Cost:
        Rows are listed; no image is opened.
    """
    selection = RowSelection.of(options, by_default=True, val_share=options.val_fraction)
    if not 0 <= options.val_fraction < 1:
        raise UsageError(f"--val-fraction must lie between 0 and 1 (0: no validation rows), not {options.val_fraction:g}.")
    if isinstance(data, Dataset):
        source, rows, targets, class_names = data.source, data, data.targets, data.class_names
    else:
        request = make_request(narrowed(SourceOptions, options), use_split=None)
        source, rows = list_rows(data, request, run.reporter)
        if rows.problems:
            raise DataError(rows.problems[0])
        classes = name_classes(rows.labels, rows.label_names, options.class_names)
        targets, class_names = classes.targets, classes.names
    task_of(targets, len(class_names), ordinal=options.ordinal).refuse_useless(targets, class_names, rows.name)
    alike = find_alike_groups(rows)
    if alike.rows:
        run.reporter.warn(f"{alike.text} {ADVICE}")
    split = selection.make_split(rows, targets, class_names)
    if split is None:
        raise UsageError("With --holdout 0 there is nothing to split. Leave it out, or give a share.")
    result = DataSplit(describe_split(split, rows, source, targets, class_names), split=split)
    if options.out is None:
        return result
    refuse_file_of_a_run(options.out)
    return result.write(Path(options.out), overwrite=options.overwrite)
