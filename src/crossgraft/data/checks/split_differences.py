"""Facts of the images that are distributed differently in train and in the rows that a result is measured on."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from crossgraft.data.checks.record import FindingRecord, SplitDifferenceRecord
from crossgraft.data.checks.survey import Survey, finding
from crossgraft.data.decoding import IMAGE_EXTENSIONS
from crossgraft.data.medical.formats import MEDICAL_EXTENSIONS, file_extension
from crossgraft.data.splits import Split
from crossgraft.statistics import Quantity, holm, largest_difference, largest_gap, total_variation, two_sample_tests
from crossgraft.words.formatting import counted, percent

SIGNIFICANT = 0.01
"""Adjusted p-value, over all facts and splits, up to which a difference is taken as more than chance."""
MATTERS = 0.2
"""Effect from which a difference of the images is worth a warning: two normal distributions half a deviation apart."""
CLASSES_MATTER = 0.1
"""The same for the shares of the classes, which predictive values and calibration follow directly."""

_NAME = "split_differences"
_TRAIN, _OTHERS = "train", ("val", "test")
_LEAST_IMAGES = 20
_LEAST_UNITS = 10
_NUM_BINS = 32
_CLASSES = "shares of the classes"


class _Fact(NamedTuple):
    """One property of the images, cut into few values.

    Attributes:
        name: Property in words.
        marks: (n, num_values) 1 where an image has the value.
        effect: Difference of two arrays of shares.
        describe: What the rows of two parts have, in words; takes the names of the parts and masks of their rows.
    """

    name: str
    marks: np.ndarray
    effect: Callable[[np.ndarray, np.ndarray], np.ndarray]
    describe: Callable[[str, np.ndarray, str, np.ndarray], str]


def measure_split_differences(survey: Survey) -> list[SplitDifferenceRecord]:
    """How much val and test differ from train in each fact of the images; the largest difference of each first.

    Only for splits that somebody else made: of one that was drawn here, chance is known to be the reason. Whole groups are
    permuted. Empty for fewer than 20 images or 10 groups in a part.
    """
    if survey.splits is None or (isinstance(survey.split, Split) and survey.split.seed is not None):
        return []
    differences: list[SplitDifferenceRecord] = []
    for split in _OTHERS:
        differences += _compare(survey, survey.splits, split)
    adjusted = holm([difference.p_value for difference in differences])
    differences = [_adjusted(difference, p_value) for difference, p_value in zip(differences, adjusted, strict=True)]
    return sorted(differences, key=lambda difference: (_OTHERS.index(difference.split), -difference.effect))


def _adjusted(difference: SplitDifferenceRecord, p_value: float) -> SplitDifferenceRecord:
    least = CLASSES_MATTER if difference.fact == _CLASSES else MATTERS
    matters = p_value <= SIGNIFICANT and difference.effect >= least
    return difference.model_copy(update={"p_value": p_value, "matters": matters})


def check_split_differences(survey: Survey, differences: list[SplitDifferenceRecord]) -> list[FindingRecord]:
    """Advisory: what ``measure_split_differences`` found, in words; nothing where nothing could be compared."""
    findings: list[FindingRecord] = []
    for split in dict.fromkeys(difference.split for difference in differences):
        here = [difference for difference in differences if difference.split == split]
        large = [difference for difference in here if difference.matters]
        units = "images" if survey.groups is None else f"whole groups of {survey.group_column}"
        if large:
            text = f"{split} differs from {_TRAIN} in {'; '.join(map(_in_words, large))} (permutation tests of {units})."
            advice = (
                f"A result on {split} then measures this difference as well. If it is meant (another clinic, another "
                "scanner), say so beside the result; if not, draw another split."
            )
            findings.append(finding(_NAME, f"Train and {split} differ", "warning", text, advice=advice))
        else:
            text = (
                f"{counted(len(here), 'fact')} of the images compared in {_TRAIN} and {split}: none differs by more than "
                f"chance and enough to matter. Most differs {_in_words(here[0])}."
            )
            findings.append(finding(_NAME, f"Train against {split}", "passed", text))
    return findings


def _in_words(difference: SplitDifferenceRecord) -> str:
    return f"{difference.fact} ({difference.found}; effect {difference.effect:.2f}, p = {difference.p_value:.2g})"


def _compare(survey: Survey, splits: np.ndarray, split: str) -> list[SplitDifferenceRecord]:
    """All facts of train and one other split, with p-values that are not adjusted yet."""
    readable = survey.readable_rows
    rows = readable[np.isin(splits[readable], (_TRAIN, split))]
    is_other = splits[rows] == split
    if min(is_other.sum(), (~is_other).sum()) < _LEAST_IMAGES:
        return []
    unit_of_row, in_second = _units(None if survey.groups is None else survey.groups[rows], is_other)
    if min(in_second.sum(), (~in_second).sum()) < _LEAST_UNITS:
        return []
    facts = [fact for fact in _facts(survey, rows) if fact.marks.shape[1] > 1]
    tests = two_sample_tests(
        [Quantity(_sum_by(unit_of_row, fact.marks), fact.effect) for fact in facts],
        np.bincount(unit_of_row).astype(np.float64),
        in_second,
    )
    return [
        SplitDifferenceRecord(
            split=split,
            fact=fact.name,
            effect=test.effect,
            p_value=test.p_value,
            found=fact.describe(_TRAIN, ~is_other, split, is_other),
            matters=False,
        )
        for fact, test in zip(facts, tests, strict=True)
    ]


def _units(groups: np.ndarray | None, is_other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is permuted: unit of each row, and whether a unit is in the other split.

    A group with images in both parts, which is a finding of its own, counts as one unit in each.
    """
    if groups is None:
        return np.arange(len(is_other)), is_other
    _, codes = np.unique(groups, return_inverse=True)
    units, unit_of_row = np.unique(2 * codes + is_other, return_inverse=True)
    return unit_of_row, units % 2 == 1


def _sum_by(unit_of_row: np.ndarray, marks: np.ndarray) -> np.ndarray:
    sums = np.zeros((int(unit_of_row.max()) + 1, marks.shape[1]))
    np.add.at(sums, unit_of_row, marks)
    return sums


def _facts(survey: Survey, rows: np.ndarray) -> list[_Fact]:
    facts = [survey.facts[int(row)] for row in rows]
    return [
        _ordered("height", np.asarray([fact.height for fact in facts]), ".0f"),
        _ordered("width", np.asarray([fact.width for fact in facts]), ".0f"),
        _ordered("mean intensity", np.asarray([fact.intensity for fact in facts], dtype=np.float64), ".2f"),
        _ordered("contrast", np.asarray([fact.contrast for fact in facts], dtype=np.float64), ".2f"),
        _unordered("channels and bit depth", np.asarray([fact.kind.partition(" ")[2] for fact in facts])),
        _unordered("type of the file", np.asarray([_file_type(survey.image_name(int(row))) for row in rows])),
        _of_classes(survey, rows),
    ]


def _file_type(name: str) -> str:
    """A usual extension. What else ends a name is part of it, as the last number of the unique identifier of a DICOM file."""
    extension = file_extension(name)
    return extension if extension in (*IMAGE_EXTENSIONS, *MEDICAL_EXTENSIONS) else "no usual extension"


def _ordered(name: str, values: np.ndarray, decimals: str) -> _Fact:
    """Numbers, cut at up to 31 quantiles."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, _NUM_BINS + 1)[1:-1], method="lower"))

    def describe(first: str, in_first: np.ndarray, second: str, in_second: np.ndarray) -> str:
        medians = (float(np.median(values[part])) for part in (in_first, in_second))
        return "median " + ", ".join(
            f"{median:{decimals}} in {part}" for median, part in zip(medians, (first, second), strict=True)
        )

    return _Fact(name, _one_hot(np.searchsorted(edges, values, side="left")), largest_gap, describe)


def _unordered(name: str, values: np.ndarray) -> _Fact:
    distinct, codes = np.unique(values, return_inverse=True)
    return _Fact(name, _one_hot(codes), total_variation, _describe_shares(distinct.tolist(), _one_hot(codes)))


def _of_classes(survey: Survey, rows: np.ndarray) -> _Fact:
    marks = np.stack([survey.members(index)[rows] for index in range(len(survey.class_names))], axis=1).astype(np.float64)
    effect = total_variation if survey.task.partitions else largest_difference
    return _Fact(_CLASSES, marks, effect, _describe_shares([f"{survey.task.noun} {name}" for name in survey.class_names], marks))


def _describe_shares(names: list[str] | tuple[str, ...], marks: np.ndarray) -> Callable[[str, np.ndarray, str, np.ndarray], str]:
    """Says the value whose share differs most."""

    def describe(first: str, in_first: np.ndarray, second: str, in_second: np.ndarray) -> str:
        shares = [marks[part].mean(axis=0) for part in (in_first, in_second)]
        most = int(np.argmax(np.abs(shares[0] - shares[1])))
        return f"{names[most]}: {percent(shares[0][most])} in {first}, {percent(shares[1][most])} in {second}"

    return describe


def _one_hot(codes: np.ndarray) -> np.ndarray:
    """Columns for the values that occur."""
    _, columns = np.unique(codes, return_inverse=True)
    marks = np.zeros((len(columns), int(columns.max()) + 1))
    marks[np.arange(len(columns)), columns] = 1
    return marks
