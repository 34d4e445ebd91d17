"""``check_data``: what is in this data set, and is it sound?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crossgraft.data.checks.assess import assess
from crossgraft.data.checks.data_check import DataCheck
from crossgraft.data.checks.picture_groups import show_groups
from crossgraft.data.checks.survey import Survey, survey_dataset, survey_location, with_thumbnails
from crossgraft.data.dataset import Dataset
from crossgraft.data.opening import location_text, make_request
from crossgraft.data.selection import RowSelection
from crossgraft.errors import UsageError
from crossgraft.progress import Reporter
from crossgraft.records import DataCheckRecord
from crossgraft.report import finish_run
from crossgraft.runs import RunDirectory, open_command_run
from crossgraft.words.csv_cells import frame_csv

NOT_CONFIGURATION = {"out", "overwrite", "reporter", "workers", "data"}
"""Arguments that are not meant to change a finding."""

_REQUEST = (
    "label_column", "label_separator", "group_column", "path_column", "image_root", "allow_outside", "window", "slices",
    "allow_download",
)  # fmt: skip


def check_data(
    data: str | Path | Dataset,
    *,
    label_column: str | Sequence[str] | None = None,
    label_separator: str | None = None,
    class_names: str | Path | Sequence[str] | None = None,
    ordinal: bool = False,
    group_column: str | None = None,
    path_column: str | None = None,
    image_root: str | Path | None = None,
    allow_outside: bool = False,
    window: str | None = None,
    slices: str | None = None,
    split: str | Path | None = None,
    holdout: float | None = None,
    folds: int | None = None,
    fold: int = 0,
    allow_download: bool = False,
    no_images: bool = False,
    show_names: bool = False,
    seed: int = 0,
    workers: int | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    reporter: Reporter | None = None,
) -> DataCheck:
    """Look at all rows of all splits and say what is wrong with them.

    A finding is *unsound* when it makes results wrong (a picture or a patient on both sides of a split, one picture with
    two labels, images that can not be read, classes without images); everything else is advice.

    Args:
        data: Folder, table, ``.npz`` file, ``digits``, or an open ``Dataset``.
        label_column: Column of labels of a table; several columns are several labels an image.
        label_separator: What stands between the labels of one cell, where an image may have several.
        class_names: Names of the classes in order, or a text file with one a line.
        ordinal: The order of the classes means something, as with grades.
        group_column: Column of patients (or lesions, writers …).
        path_column: Column of image paths of a table.
        image_root: Folder that the paths of a table start from.
        allow_outside: May paths of a table lead out of the folder that they start from?
        window: Which intensities of DICOM and NIfTI images become black and white.
        slices: Which slices of volumes and frames of multi-frame files are images.
        split: JSON file of a saved split, which is looked at instead of the one of the data.
        holdout: Draw a split that sets this share aside as ``test``, as the other commands do, and look at it.
        folds: Draw this many folds and look at one of them against the others.
        fold: Which fold is held out, from 0.
        allow_download: Let data of a hub be fetched.
        no_images: Put no thumbnails into the report.
        show_names: Write names of image files into the run directory.
        seed: Of the split that is drawn.
        workers: Threads that decode images; one a core by default, at most 8.
        out: Run directory; nothing is written when None.
        overwrite: Replace another run in ``out``.
        reporter: Where progress goes; silent when None.

    Returns:
        The findings; with ``out`` also ``report.html``, ``report.json``, ``run.json`` and ``findings.csv`` there.

    Raises:
        DataError: The rows can not even be listed, or not be split as asked. Unsound data raise nothing.
        UsageError: An argument is wrong or contradicts another.
        RunDirectoryError: ``out`` is in use or holds another run.

    Cost:
        Decodes every image once; near duplicates are searched in buckets, a few seconds for 50 000 images.
    """
    call = {name: value for name, value in locals().items() if name not in NOT_CONFIGURATION}
    reporter = reporter or Reporter(quiet=True)
    if workers is not None and workers < 1:
        raise UsageError(f"`workers` must be at least 1 thread, found {workers}.")
    location = data.name if isinstance(data, Dataset) else location_text(data)
    run_of_call = open_command_run(
        check_data, "check", data=location, call=call, resolved={}, out=out, overwrite=overwrite
    )
    with run_of_call as run:
        survey = _survey(data, call, num_threads=workers, reporter=reporter)
        record = assess(survey, show_names=show_names)
        _name_files(survey, record, reporter)
        return _finish(record, survey, run, reporter, no_images=no_images)


def _survey(data: str | Path | Dataset, call: dict[str, Any], *, num_threads: int | None, reporter: Reporter) -> Survey:
    request = make_request(use_split=None, **{name: call[name] for name in _REQUEST})
    selection = RowSelection(
        split=None if call["split"] is None else Path(call["split"]),
        holdout=call["holdout"],
        folds=call["folds"],
        fold=call["fold"],
        seed=call["seed"],
    )
    if not isinstance(data, Dataset):
        return survey_location(
            location_text(data),
            request,
            selection,
            class_names=call["class_names"],
            ordinal=call["ordinal"],
            num_threads=num_threads,
            reporter=reporter,
        )
    options = (*_REQUEST, "class_names", "ordinal", "split", "holdout", "folds", "fold")
    given = [name for name in options if call[name] and name != "allow_download"]
    if given:
        raise UsageError(
            f"{given[0]} belongs to opening the data, but an open Dataset was given; pass it to open_dataset."
        )
    return with_thumbnails(survey_dataset(data), num_threads=num_threads, reporter=reporter)


def _name_files(survey: Survey, record: DataCheckRecord, reporter: Reporter) -> None:
    """On stderr, where names may be shown: the user has to find the files."""
    for finding in record.findings:
        if finding.images and finding.severity in ("unsound", "warning") and finding.check != "groups_across_splits":
            between = " ≈ " if finding.check == "near_duplicates" else " = "
            shown = [between.join(survey.image_name(row - 1) for row in group[:4]) for group in finding.images[:5]]
            more = f" … and {finding.num_groups - 5} more" if finding.num_groups > 5 else ""
            reporter.say(f"{finding.title}: {'; '.join(shown)}{more}")


def _finish(
    record: DataCheckRecord, survey: Survey, run: RunDirectory | None, reporter: Reporter, *, no_images: bool
) -> DataCheck:
    check = DataCheck(record)
    if run is None:
        return check
    # A check is repeated after the data were repaired, so another fingerprint is no reason to refuse the directory.
    run.update(data_fingerprint=record.dataset.fingerprint)
    run.write_record("report.json", record)
    run.write("findings.csv", frame_csv(check.to_frame()))
    if survey.split is not None:
        run.write_record("split.json", survey.split)
    page = finish_run(run, reporter, thumbnails=None if no_images else lambda: show_groups(survey, record.findings))
    return DataCheck(record, out=run.path, report=page)
