"""All checks in order, what they come to, and how long they will take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from crossgraft.data.checks.class_counts import (
    check_alike_classes,
    check_alike_groups,
    check_class_counts,
    check_classes_of_splits,
    check_ordered_classes,
)
from crossgraft.data.checks.label_leakage import check_groups_across_splits, check_label_leakage, measure_columns
from crossgraft.data.checks.near_duplicates import (
    check_conflicting_labels,
    check_identical_across,
    check_identical_within,
    check_near_duplicates,
    check_pictures_of_two_groups,
    find_near_duplicates,
)
from crossgraft.data.checks.odd_images import check_constant_images, check_files_read, check_image_sizes, check_readable_images
from crossgraft.data.checks.record import DataCheckRecord, FindingRecord
from crossgraft.data.checks.split_differences import check_split_differences, measure_split_differences
from crossgraft.data.checks.survey import LOOKING, Survey, survey_rows
from crossgraft.data.dataset import Dataset
from crossgraft.data.describe import describe_dataset
from crossgraft.data.inspection import THUMBNAIL_SIDE, inspect_images
from crossgraft.errors import DataError
from crossgraft.progress import Piece, Reporter, TypicalClock
from crossgraft.records.base import MOST_SEVERE_FIRST, CheckRecord, Reference
from crossgraft.seeding import generator
from crossgraft.words.formatting import counted

CHECKING = "checking"
"""The part of the work that follows."""

_SHARE, _MOST_IMAGES = 32, 64
_FEW = 1000
_EXPONENT = 1.3
"""The search grows like n at first and like n² in the end; see Checking data in docs/results/benchmarks.md."""


def foresee(names: Sequence[str], decode: Callable[[int], np.ndarray], *, num_threads: int | None, reporter: Reporter) -> None:
    """Say how long the check of these images will take.

    Args:
        names: Name of each row.
        decode: Pixels of one row.
        num_threads: As in ``inspect_images``.
        reporter: Reporter of the estimate.

    Cost: about 3 % of looking at all images, and some hundredths of a second.
    """
    if not reporter.wants_forecast:
        return
    number = len(names)
    rows = np.linspace(0, number - 1, max(1, min(_MOST_IMAGES, number // _SHARE)), dtype=int)
    now = TypicalClock()
    start = now()
    inspect_images(
        [names[int(row)] for row in rows],
        lambda number: decode(int(rows[number])),
        for_check=True,
        num_threads=num_threads,
        reporter=Reporter(quiet=True),
    )
    looking = (now() - start) / len(rows) * number
    pieces = [Piece((LOOKING,), looking, LOOKING), Piece((CHECKING,), _seconds_of_search(number), CHECKING)]
    reporter.expect(pieces, f"{counted(number, 'image')}, each looked at once and compared with the others")


def _seconds_of_search(number: int) -> float:
    few = min(number, _FEW)
    thumbnails = generator(0, "made-up thumbnails").integers(0, 256, (few, THUMBNAIL_SIDE, THUMBNAIL_SIDE), np.uint8)
    now = TypicalClock()
    start = now()
    find_near_duplicates(thumbnails)
    return (now() - start) * (number / few) ** _EXPONENT


_CHECKS_OF_ROWS = (
    check_conflicting_labels,
    check_pictures_of_two_groups,
    check_identical_within,
    check_constant_images,
    check_ordered_classes,
)
"""Checks that need only some rows of the data, and no thumbnails: what a command can ask of the rows that it uses."""
_CHECKS_OF_ALL = (
    check_files_read,
    check_readable_images,
    check_class_counts,
    check_alike_classes,
    check_alike_groups,
    check_groups_across_splits,
    check_identical_across,
    *_CHECKS_OF_ROWS,
    check_near_duplicates,
    check_image_sizes,
)
REFERENCES = [
    Reference(
        key="Perceptual hash",
        text="Zauner, Implementation and Benchmarking of Perceptual Image Hash Functions, thesis, FH Hagenberg, 2010; here "
        "each frequency is compared with its median over the data set.",
    ),
    Reference(
        key="Leakage by patients and copies",
        text="Kapoor and Narayanan, Leakage and the reproducibility crisis in machine-learning-based science, Patterns 4(9), "
        "2023.",
    ),
]


def assess(survey: Survey, *, show_names: bool) -> DataCheckRecord:
    """Run every check on all rows."""
    columns, differences = measure_columns(survey), measure_split_differences(survey)
    unordered = [finding for check in _CHECKS_OF_ALL for finding in check(survey)]
    unordered += [*check_label_leakage(survey, columns), *check_split_differences(survey, differences)]
    findings = _ordered(unordered)
    mentioned = {row for finding in findings for group in finding.images for row in group}
    return DataCheckRecord(
        dataset=describe_dataset(survey, show_names=show_names),
        split_names=survey.split_names,
        split_counts=[survey.counts_in(split) for split in survey.split_names],
        is_sound=not any(finding.severity == "unsound" for finding in findings),
        verdict=write_verdict(findings),
        findings=findings,
        columns=columns,
        split_differences=differences,
        image_names={row: survey.image_name(row - 1) for row in sorted(mentioned)} if show_names else {},
        references=REFERENCES,
    )


def findings_of_rows(dataset: Dataset, *, is_part: bool = False) -> list[FindingRecord]:
    """What can be said about the rows of an open data set alone; opens no other row and decodes no image again.

    Args:
        dataset: The rows.
        is_part: Whether ``findings_across_splits`` is asked about the whole, which need not be said of a part again.
    """
    survey = survey_rows(dataset)
    checks = _CHECKS_OF_ROWS if is_part else (check_alike_groups, *_CHECKS_OF_ROWS)
    findings = [finding for check in checks for finding in check(survey)]
    return _ordered([*findings, *check_label_leakage(survey, measure_columns(survey))])


def findings_across_splits(dataset: Dataset) -> list[FindingRecord]:
    """Groups and pictures of an open data set that are in several of its ``splits``, and classes that one of these lacks."""
    survey = survey_rows(dataset)
    checks = (check_alike_groups, check_groups_across_splits, check_identical_across, check_classes_of_splits)
    return _ordered([finding for check in checks for finding in check(survey)])


def _ordered(findings: Sequence[FindingRecord]) -> list[FindingRecord]:
    return sorted(findings, key=lambda finding: MOST_SEVERE_FIRST.index(finding.severity))


def write_verdict(findings: Sequence[FindingRecord]) -> str:
    """The answer first: what is unsound, or that nothing is; then what was not assessed."""
    of_severity = {severity: [f for f in findings if f.severity == severity] for severity in MOST_SEVERE_FIRST}
    unsound, warnings = of_severity["unsound"], of_severity["warning"]
    if unsound:
        answer = f"Not sound. {unsound[0].text}"
        if len(unsound) > 1:
            answer += " Also unsound: "
            answer += "; ".join(finding.title.lower() for finding in unsound[1:]) + "."
        return answer
    answer = "Nothing unsound was found"
    if warnings:
        answer += f", but {counted(len(warnings), 'warning')}: "
        answer += "; ".join(dict.fromkeys(finding.title.lower() for finding in warnings))
    open_questions = dict.fromkeys(finding.title.lower() for finding in of_severity["not assessed"])
    return answer + "." + (f" Not assessed: {'; '.join(open_questions)}." if open_questions else "")


def check_rows(dataset: Dataset, *, strict: bool, reporter: Reporter, part: str = "") -> list[CheckRecord]:
    """What the checks of single rows find, for the report; warnings are shown at once, and no other row is opened.

    Args:
        dataset: The rows.
        strict: Whether what is unsound is refused.
        reporter: Reporter of warnings.
        part: What these rows are of all that the report is about, in words; each title says it. Empty: all of it.

    Raises:
        DataError: Something is unsound, and ``strict`` is on.
    """
    findings = findings_of_rows(dataset, is_part=bool(part))
    named = [entry.model_copy(update={"title": f"{entry.title} ({part})"}) for entry in findings] if part else findings
    return _tell(named, strict=strict, reporter=reporter)


def check_splits(dataset: Dataset, *, strict: bool, reporter: Reporter) -> list[CheckRecord]:
    """What of one part of ``dataset.splits`` is also in another (groups, copies of images), and which classes one lacks.

    Raises:
        DataError: Something is in two parts, and ``strict`` is on.
    """
    return _tell(findings_across_splits(dataset), strict=strict, reporter=reporter)


def _tell(findings: Sequence[FindingRecord], *, strict: bool, reporter: Reporter) -> list[CheckRecord]:
    unsound = [finding for finding in findings if finding.severity == "unsound"]
    if strict and unsound:
        raise DataError(
            f"The data are unsound: {' '.join(finding.text for finding in unsound)} Run crossgraft check to see the images, "
            "or leave out --strict to go on."
        )
    for entry in findings:
        if entry.severity in ("unsound", "warning"):
            reporter.warn(f"{entry.title}: {entry.text} {entry.advice}")
    return [
        CheckRecord(title=entry.title, severity=entry.severity, text=f"{entry.text} {entry.advice}".strip()) for entry in findings
    ]
