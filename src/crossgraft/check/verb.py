"""``check_data``: what is in a data set, and whether it is sound."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from crossgraft.check.options import CheckOptions
from crossgraft.data.checks.assess import CHECKING, assess, foresee
from crossgraft.data.checks.odd_images import strips_of_classes
from crossgraft.data.checks.record import DataCheckRecord
from crossgraft.data.checks.survey import DataCheck, Survey, show_groups, survey_again, survey_location
from crossgraft.data.dataset import Dataset
from crossgraft.data.selection import RowSelection
from crossgraft.errors import UsageError
from crossgraft.options._option import configuration, narrowed, options_of
from crossgraft.options.data import OpeningOptions, SourceOptions, Splits
from crossgraft.progress import Reporter
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import RunDirectory
from crossgraft.running.verb import PLAIN_PAGE, Run, verb


@verb("check", CheckOptions, page=PLAIN_PAGE)
def check_data(data: str | Path | Dataset, options: CheckOptions, run: Run) -> DataCheck:
    """Look at all rows of all splits and say what is wrong with them.

    A finding is *unsound* when it makes results wrong (a picture or a patient on both sides of a split, one picture with
    two labels, images that cannot be read, classes without images); everything else is advice.

    Args:
        data: Folder, table, ``.npz`` file, ``digits``, or an open ``Dataset``.
        {options}

    Returns:
        The findings; with ``out`` also ``report.html``, ``report.json``, ``run.json`` and ``findings.csv`` there.

    Raises:
        DataError: The rows cannot even be listed, or not be split as asked. Unsound data raise nothing.
        UsageError: An argument is wrong or contradicts another.
        RunDirectoryError: ``out`` is in use or holds another run.

    Cost:
        Decodes every image once; near duplicates are searched in buckets, a few seconds for 50 000 images.
    """
    location = data.name if isinstance(data, Dataset) else data
    with run.directory(location, typed=configuration(options), resolved={}, out=options.out) as directory:
        survey = _survey(data, options, run.reporter)
        with run.reporter.part(CHECKING):
            record = assess(survey, show_names=options.show_names)
        _name_files(survey, record, run.reporter)
        return _finish(record, survey, directory, run.reporter, no_images=options.no_images)


def _survey(data: str | Path | Dataset, options: CheckOptions, reporter: Reporter) -> Survey:
    selection = RowSelection.of(options, by_default=True)
    announce = partial(foresee, num_threads=options.workers, reporter=reporter)
    if not isinstance(data, Dataset):
        return survey_location(
            data,
            narrowed(SourceOptions, options),
            selection,
            class_names=options.class_names,
            ordinal=options.ordinal,
            num_threads=options.workers,
            foresee=announce,
            reporter=reporter,
        )
    of_rows = {*options_of(Splits), "allow_download"}
    of_opening = [name for name in options_of(OpeningOptions) if getattr(options, name) and name not in of_rows]
    if of_opening:
        raise UsageError(f"{of_opening[0]} belongs to opening the data, but an open Dataset was given; pass it to open_dataset.")
    return survey_again(data, selection, num_threads=options.workers, foresee=announce, reporter=reporter)


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
    page = publish(
        run,
        record,
        reporter,
        tables={"findings.csv": check.csv()},
        split=survey.split,
        thumbnails=None if no_images else lambda: [*show_groups(survey, record.findings), *strips_of_classes(survey)],
    )
    return replace(check, out=run.path, report=page)
