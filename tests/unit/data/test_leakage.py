"""A patient who is known under two spellings, one in train and one in test, never passes the check of patient leakage."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import crossgraft
from crossgraft.data import dataset_from_arrays
from crossgraft.data.checks.assess import findings_across_splits
from crossgraft.data.selection import is_leakage_known, leakage_in_words

CERTAIN = ("{}", "{}.0", "{:03d}")
GUESSED = ("{}", "{:02d}", "{:03d}", "P{}", "P{:02d}", "p{}", " P{}", "p{:03d} ")
PARTS = ("train", "test")


def divided(groups, parts):
    """One image per row; a group of its own in each part is there as well."""
    groups, parts = [*groups, "x-1", "x-2"], np.asarray([*parts, *PARTS])
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 255, (16, 16, 3), dtype=np.uint8) for _ in groups]
    dataset = dataset_from_arrays(images, [row % 2 for row in range(len(groups))], groups=groups)
    return replace(dataset, splits=parts), [[np.flatnonzero(parts == part) for part in PARTS]]


def severity(dataset):
    (found,) = [each for each in findings_across_splits(dataset) if each.title == "Patient leakage"]
    return found.severity


@settings(max_examples=60)
@given(number=st.integers(1, 99), spellings=st.permutations(CERTAIN))
def test_spellings_of_one_number_are_one_patient_in_two_parts(number, spellings):
    dataset, splits = divided([each.format(number) for each in spellings[:2]], PARTS)
    assert severity(dataset) == "unsound"
    assert leakage_in_words(dataset.groups, "patient", splits).startswith("Leakage: of the 3 groups")
    assert is_leakage_known(dataset.groups, splits)


@settings(max_examples=100)
@given(
    number=st.integers(1, 9),
    pair=st.permutations(GUESSED).map(lambda each: each[:2]),
    others=st.lists(st.sampled_from(GUESSED), max_size=3),
)
def test_neither_spelling_of_a_guess_passes(number, pair, others):
    names = [each.format(number) for each in (*pair, *others)]
    assume(len({"p" in each.casefold() for each in pair}) == 1)  # P3 is not 3
    dataset, splits = divided(names, [*PARTS, *["train"] * len(others)])
    assert severity(dataset) in ("unsound", "warning")
    words = leakage_in_words(dataset.groups, "patient", splits)
    assert words.startswith("Leakage") or not is_leakage_known(dataset.groups, splits)
    assert not words.startswith("No group is in two parts (")


@pytest.mark.parametrize("spellings", [("{:02d}", "{:03d}"), ("P{}", "P{:02d}")])
def test_the_record_of_a_split_does_not_say_that_a_guess_has_passed(spellings, tmp_path, write_image):
    lines = ["path,label,patient,split"]
    for number in range(1, 7):
        for spelling, part in zip(spellings, PARTS, strict=True):
            write_image(tmp_path / f"{number}-{part}.png", seed=number)
            lines.append(f"{number}-{part}.png,{'ab'[number % 2]},{spelling.format(number)},{part}")
    (tmp_path / "table.csv").write_text("\n".join(lines))
    record = crossgraft.split_data(tmp_path / "table.csv", val_fraction=0).record
    assert not record.leakage_checked
    assert "but 6 would be if names that look alike are one" in record.leakage
