"""All checks in order, and what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from crossgraft.data.checks._finding import finding
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
)
from crossgraft.data.checks.record import DataCheckRecord, FindingRecord
from crossgraft.data.checks.split_differences import check_split_differences, measure_split_differences
from crossgraft.data.checks.survey import Survey, survey_rows
from crossgraft.data.dataset import Dataset
from crossgraft.data.describe import describe_dataset
from crossgraft.data.inspection import describe_dark, summarise_kinds
from crossgraft.errors import DataError
from crossgraft.progress import Reporter
from crossgraft.records.base import CheckRecord, Reference, Severity
from crossgraft.words.formatting import count, counted, joined, percent

USUAL_INPUT = 224
"""Pixels a side that most pretrained models were trained on."""
_LONG = 1.3  # longer side / shorter side of the 5 % longest images, from which a square input is worth a thought
_VERY_LONG = 2.0
_ENLARGED = 3.5  # 64 pixels become 224


def check_image_sizes(survey: Survey) -> list[FindingRecord]:
    """Never unsound: what a model will see of images that are long, small, or of several kinds."""
    facts = [survey.facts[row] for row in survey.readable_rows]
    if not facts:
        return []
    heights, widths = np.asarray([fact.height for fact in facts]), np.asarray([fact.width for fact in facts])
    return [_kinds(survey), *_shapes(heights, widths), *_small(np.minimum(heights, widths))]


def _kinds(survey: Survey) -> FindingRecord:
    facts = [survey.facts[row] for row in survey.readable_rows]
    kinds = summarise_kinds(fact.kind for fact in facts)
    depths = {" ".join(kind.split(" ")[1:]) for kind in kinds}
    grey = sum(fact.kind.split(" ")[1] == "RGB" and fact.digest != fact.picture for fact in facts)
    text = "; ".join(f"{kind} ({counted(number, 'image')})" for kind, number in kinds.items()) + "."
    if grey:
        text += f" {counted(grey, 'RGB image')} {'holds' if grey == 1 else 'hold'} a plainer picture (grey, or 8 bits)."
    if len(depths) < 2:
        return finding("image_kinds", "Kinds of images", "passed", text)
    advice = "Where kinds come from different scanners or clinics, a model may learn them instead of the disease."
    return finding("image_kinds", "Several kinds of images", "notice", text, advice=advice)


def _shapes(heights: np.ndarray, widths: np.ndarray) -> list[FindingRecord]:
    """How far from square, for the typical image and for the 5 % that are longest."""
    ratios = np.maximum(heights, widths) / np.minimum(heights, widths)
    typical, longest = float(np.median(ratios)), float(np.quantile(ratios, 0.95))
    if longest < _LONG:
        text = "All images are square."
        if ratios.max() > 1:
            text = f"In 95 % of the images the longer side is at most {longest:.2f} times the shorter one."
        return [finding("image_shapes", "Shapes of images", "passed", text)]
    both = abs(longest - typical) > 0.05
    text = (
        f"The longer side is {typical:.2f} times the shorter one{f' ({longest:.2f} for the longest 5 %)' if both else ''}. "
        f"For a square input, crop cuts off {_shares(typical, longest, both)} of the picture, squash stretches it by that "
        f"factor, and pad fills {_shares(typical, longest, both)} of the input with black."
    )
    advice = "Choose with --resize-policy, and look at what is cut off."
    severity = "warning" if longest >= _VERY_LONG else "notice"
    return [finding("image_shapes", "Images far from square", severity, text, advice=advice)]


def _shares(typical: float, longest: float, both: bool) -> str:
    """The share of a long rectangle that lies outside of its central square; also of a square that it leaves empty."""
    return percent(1 - 1 / typical) + (f" ({percent(1 - 1 / longest)})" if both else "")


def _small(sides: np.ndarray) -> list[FindingRecord]:
    side = float(np.median(sides))
    factor = USUAL_INPUT / side
    if factor < _ENLARGED:
        return []
    text = (
        f"The shorter side has {side:.0f} pixels (median); a model with {USUAL_INPUT}-pixel inputs sees it enlarged "
        f"{factor:.0f} times."
    )
    advice = "Detail that is not there cannot be used; --image-size gives smaller inputs to models that allow it."
    return [finding("image_sizes", "Small images", "notice", text, advice=advice)]


def check_constant_images(survey: Survey) -> list[FindingRecord]:
    """A warning: an empty slice or a failed export, not a picture."""
    rows = [[int(row)] for row in survey.readable_rows if survey.facts[row].is_constant]
    if not rows:
        return [finding("constant_images", "Constant images", "passed", "Every image has more than one value.")]
    text = f"{counted(len(rows), 'image')} {'has' if len(rows) == 1 else 'have'} one value in all pixels."
    advice = "Look at them: an empty slice or a failed export teaches nothing but its label."
    return [finding("constant_images", "Constant images", "warning", text, advice=advice, images=rows)]


_MOST_REASONS = 3


def check_readable_images(survey: Survey) -> list[FindingRecord]:
    """Unreadable images are unsound; 16-bit images that use little of their range are a warning."""
    dark = describe_dark(survey.facts)
    found = [] if dark is None else [finding("sample_range", "Dark 16-bit images", "warning", dark)]
    if not survey.unreadable:
        text = f"All {count(len(survey))} images can be read."
        return [*found, finding("readable_images", "Readable images", "passed", text)]
    text = f"{counted(len(survey.unreadable), 'image')} cannot be read: {_in_words(survey.unreadable.values())}."
    advice = "Repair or remove them; --skip-unreadable leaves them out of a run."
    rows = [[row] for row in survey.unreadable]
    reasons = list(survey.unreadable.values())
    title = "Unreadable images"
    return [*found, finding("readable_images", title, "unsound", text, advice=advice, images=rows, reasons=reasons)]


def _in_words(reasons: Iterable[str]) -> str:
    """The commonest reasons, with their numbers where there is more than one."""
    counts = Counter(reasons).most_common()
    if len(counts) == 1:
        return counts[0][0]
    shown = [f"{reason} ({count(number)})" for reason, number in counts[:_MOST_REASONS]]
    others = sum(number for _, number in counts[_MOST_REASONS:])
    return "; ".join([*shown, f"other reasons ({count(others)})"] if others else shown)


_MOST_SHOWN = 8


def check_files_read(survey: Survey) -> list[FindingRecord]:
    """Files by kind and class: a warning where images lack a reader, else a notice; nothing where all are of one kind."""
    files, passed_over = survey.files, survey.files.passed_over
    kinds = joined([f"{count(number)} {kind}" for kind, number in files.kinds_read.most_common()])
    if not passed_over:
        text = f"{counted(files.total, 'file')}: {kinds}."
        return [finding("files_read", "Files read", "passed", text)] if len(files.kinds_read) > 1 else []
    shown = [
        f"{count(each.number)} {each.kind}{f' in {each.place}' if each.place else ''} ({each.reason})"
        for each in passed_over[:_MOST_SHOWN]
    ]
    if len(passed_over) > _MOST_SHOWN:
        shown.append(f"{count(sum(each.number for each in passed_over[_MOST_SHOWN:]))} of other kinds")
    text = f"{counted(files.total, 'file')}: {kinds or 'none'} are read; passed over: {', '.join(shown)}."
    lost = any(each.is_image for each in passed_over)
    advice = "Save them as PNG, or install their reader." if lost else ""
    return [finding("files_read", "Files passed over", "warning" if lost else "notice", text, advice=advice)]


MOST_SEVERE_FIRST: tuple[Severity, ...] = ("unsound", "warning", "notice", "not assessed", "passed")

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
    found = [finding for check in _CHECKS_OF_ALL for finding in check(survey)]
    found += [*check_label_leakage(survey, columns), *check_split_differences(survey, differences)]
    findings = _ordered(found)
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
    found = [finding for check in checks for finding in check(survey)]
    return _ordered([*found, *check_label_leakage(survey, measure_columns(survey))])


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
    found = findings_of_rows(dataset, is_part=bool(part))
    named = [each.model_copy(update={"title": f"{each.title} ({part})"}) for each in found] if part else found
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
    for told in findings:
        if told.severity in ("unsound", "warning"):
            reporter.warn(f"{told.title}: {told.text} {told.advice}")
    return [CheckRecord(title=told.title, severity=told.severity, text=f"{told.text} {told.advice}".strip()) for told in findings]
