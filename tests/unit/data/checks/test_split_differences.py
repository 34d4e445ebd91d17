"""Train and test that were made by somebody else: a difference that matters is said, chance is not."""

from dataclasses import replace

import numpy as np
import pytest

from crossgraft import check_data
from crossgraft.data import make_split
from crossgraft.data.checks.record import SplitDifferenceRecord
from crossgraft.data.checks.split_differences import _adjusted, measure_split_differences
from crossgraft.data.checks.survey import survey_rows
from crossgraft.data.inspection import ImageFacts

PARTS = ["train"] * 60 + ["val"] * 30 + ["test"] * 30
CLASSES = [0, 1] * 60


def pictures(seed, number=120, sizes=(6, 7, 8)):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 200, (rng.choice(sizes), rng.choice(sizes), 1), dtype=np.uint8) for _ in range(number)]


def by_fact(found, split="test"):
    return {each.fact: each for each in found.record.split_differences if each.split == split}


def test_one_distribution_passes(check):
    found = check(pictures(0), CLASSES, splits=PARTS)
    assert found["Train against test"].severity == found["Train against val"].severity == "passed"
    assert "none differs by more than chance and enough to matter" in found["Train against test"].text
    assert set(by_fact(found)) == {"height", "width", "mean intensity", "contrast", "shares of the classes"}


def test_brighter_test_images_are_a_warning_with_medians_and_effect(check):
    images = [image + np.uint8(50 if part == "test" else 0) for image, part in zip(pictures(0), PARTS, strict=True)]
    found = check(images, CLASSES, splits=PARTS)
    finding, measured = found["Train and test differ"], by_fact(found)["mean intensity"]
    assert finding.severity == "warning" and found.result.is_sound
    assert found["Train against val"].severity == "passed"
    assert finding.text.startswith("test differs from train in mean intensity (median 0.39 in train, 0.59 in test; effect 0.98")
    assert "(permutation tests of images)" in finding.text
    assert measured.effect > 0.9 and measured.p_value == pytest.approx(10 / 2000) and measured.matters
    assert not by_fact(found)["height"].matters
    assert "train and test differ" in found.record.verdict


@pytest.mark.parametrize(
    ("fact", "words", "change"),
    [
        ("width", "median 7 in train, 14 in test", lambda image: np.repeat(image, 2, axis=1)),
        ("contrast", "median", lambda image: image // 2 + np.uint8(50)),
        ("channels and bit depth", "RGB 8-bit: 0\xa0% in train, 100\xa0% in test", lambda image: np.repeat(image, 3, axis=2)),
    ],
)
def test_other_facts_of_the_images(check, fact, words, change):
    images = [change(image) if part == "test" else image for image, part in zip(pictures(1), PARTS, strict=True)]
    found = check(images, CLASSES, splits=PARTS)
    assert fact in found["Train and test differ"].text and words in by_fact(found)[fact].found
    assert [each for each, measured in by_fact(found).items() if measured.matters] == [fact]


@pytest.mark.parametrize(
    ("fact", "effect", "p_value", "matters"),
    [
        ("contrast", 0.2, 0.01, True),
        ("contrast", 0.19, 0.001, False),
        ("contrast", 0.9, 0.011, False),
        ("shares of the classes", 0.1, 0.01, True),
        ("shares of the classes", 0.09, 0.001, False),
    ],
)
def test_a_warning_needs_certainty_and_size(fact, effect, p_value, matters):
    record = SplitDifferenceRecord(split="test", fact=fact, effect=effect, p_value=0.5, found="", matters=False)
    adjusted = _adjusted(record, p_value)
    assert (adjusted.p_value, adjusted.matters) == (p_value, matters)


def test_shares_of_classes(check):
    classes = [int(row % 2 == 0 if part != "test" else row % 10 == 0) for row, part in enumerate(PARTS)]
    found = check(pictures(2), classes, splits=PARTS)
    assert "shares of the classes (class 0: 50\xa0% in train, 90\xa0% in test" in found["Train and test differ"].text


def test_shares_of_several_labels(make_dataset):
    labels = np.stack([np.arange(120) % 2, np.asarray([part == "test" for part in PARTS]) | (np.arange(120) % 3 == 0)], 1)
    dataset = replace(make_dataset(pictures(2), CLASSES, splits=PARTS), targets=labels, labels=labels, class_names=("a", "b"))
    (measured,) = [
        each for each in check_data(dataset).record.split_differences if each.matters and each.fact == "shares of the classes"
    ]
    assert measured.effect == pytest.approx(2 / 3) and measured.found.startswith("label b: 33")


def test_types_of_files_name_no_part_of_a_name(make_dataset):
    """The last number of a DICOM identifier looks like an extension."""
    dataset = make_dataset(pictures(3), CLASSES, splits=PARTS)
    names = [f"1.2.840.{row}" if part == "test" else f"{row}.PNG" for row, part in enumerate(PARTS)]
    dataset = replace(dataset, _images=replace(dataset._images, names=names))
    record = check_data(dataset).record
    (measured,) = [each for each in record.split_differences if each.fact == "type of the file" and each.split == "test"]
    assert measured.found == ".png: 100\xa0% in train, 0\xa0% in test" and measured.matters
    assert "1.2.840" not in record.model_dump_json()


def test_few_rows_and_drawn_splits_say_nothing(check, make_dataset):
    few = ["train"] * 60 + ["test"] * 19
    found = check([image + np.uint8(50 * (row >= 60)) for row, image in enumerate(pictures(0, 79))], CLASSES[:79], splits=few)
    assert found.record.split_differences == [] and "Train against test" not in found
    assert "Train and test differ" not in found
    dataset = make_dataset(pictures(0), CLASSES)
    drawn = make_split(dataset.targets, fractions={"train": 0.5, "test": 0.5}, seed=0)
    dataset = replace(dataset, splits=drawn.part_names(), split=drawn)
    assert check_data(dataset).record.split_differences == []
    given = replace(dataset, split=drawn.model_copy(update={"seed": None}))  # saved from an official split
    assert check_data(given).record.split_differences


def test_whole_patients_are_permuted(check):
    """Twelve patients a part, three bright ones and seven: a difference by image, and none by patient."""
    parts = ["train"] * 60 + ["test"] * 60
    patients = np.arange(120) // 5
    bright = np.isin(patients, [0, 3, 6, 12, 13, 15, 16, 18, 20, 22])
    images = [image + np.uint8(50 * shift) for image, shift in zip(pictures(4), bright, strict=True)]
    by_image = by_fact(check(images, CLASSES, splits=parts))["mean intensity"]
    found = check(images, CLASSES, splits=parts, groups=patients)
    by_patient = by_fact(found)["mean intensity"]
    assert by_image.effect == by_patient.effect > 0.2
    assert by_image.matters and not by_patient.matters
    found = check(images, CLASSES, splits=parts, groups=np.arange(120) // 7)  # nine whole patients in test
    assert found.record.split_differences == []


class _Facts:
    """As many surveys as a test wants, without an image."""

    def __init__(self, dataset):
        self.survey = survey_rows(dataset)

    def drawn(self, rng, groups):
        number = len(self.survey)
        base = np.zeros(number) if groups is None else rng.normal(size=number)[groups]
        facts = [
            ImageFacts(kind=f"{height}×8 {kind} 8-bit", height=int(height), width=8, intensity=float(a), contrast=float(b))
            for height, kind, a, b in zip(
                rng.integers(8, 12, number),
                rng.choice(["grey", "RGB"], number),
                base + rng.normal(size=number),
                base + rng.random(number),
                strict=True,
            )
        ]
        survey = replace(self.survey, groups=groups, targets=rng.integers(0, 2, number))
        vars(survey)["facts"] = facts
        part_of_unit = rng.permutation(np.repeat(["train", "test"], [number // 2, number - number // 2]))
        splits = part_of_unit if groups is None else part_of_unit[groups]
        return replace(survey, splits=splits), facts


@pytest.mark.parametrize("grouped", [False, True])
def test_random_splits_are_reported_less_than_once_in_twenty(make_dataset, grouped):
    """Families of tests, Holm-adjusted: of 100 random splits at most 13 hold anything at 0.05 and 5 at 0.01 (binomial bounds)."""
    made = _Facts(make_dataset(pictures(5, 80), [0, 1] * 40))
    rng = np.random.default_rng(0)
    groups = np.arange(80) // 2 if grouped else None
    significant = warned = 0
    for _ in range(100):
        survey, facts = made.drawn(rng, groups)
        vars(survey)["facts"] = facts
        found = measure_split_differences(survey)
        significant += any(each.p_value <= 0.05 for each in found)
        warned += any(each.matters for each in found)
    assert significant <= 13 and warned < 5
