"""Which images train, pick and measure where a domain is left out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.progress import Reporter
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning.rows import open_rows
from support.domains import HOSPITALS, four_hospitals, of_hospitals
from support.rows import rows_of

PARTS = ("train", "val", "test", "seen")


def left_out(data, domain="each", **options):
    return rows_of(data, domains="hospital", leave_out=domain, **options)


def warnings_of(data, domain="each", **options):
    said = []

    class Listening(Reporter):
        def warn(self, message):
            said.append(message)

    open_rows(data, TuneOptions(model="x", domains="hospital", leave_out=domain, **options), Listening(quiet=True))
    return said


def rows_by_part(fold):
    return {part: getattr(fold, part).tolist() for part in PARTS}


def test_each_domain_is_tested_once_and_the_others_are_divided_in_the_same_way_whatever_is_left_out():
    data = four_hospitals(20)
    rows = left_out(data)
    assert [fold.domain for fold in rows.parts] == list(HOSPITALS)
    assert [fold.name for fold in rows.parts] == [f"without {name}" for name in HOSPITALS]
    hospital = data.attributes["hospital"]
    for fold in rows.parts:
        assert fold.test.tolist() == np.flatnonzero(hospital == fold.domain).tolist()
        for name in set(HOSPITALS) - {fold.domain}:
            here = hospital == name
            assert [int(here[getattr(fold, part)].sum()) for part in ("seen", "val", "train")] == [4, 4, 12]
            assert np.bincount(data.targets[fold.seen[here[fold.seen]]]).tolist() == [2, 2]
    part_of = {part: [set(getattr(fold, part).tolist()) for fold in rows.parts] for part in ("train", "val", "seen")}
    for sets in part_of.values():  # what is left of a part without a domain is that part of all, less that domain
        everything = set().union(*sets)
        for fold, of_fold in zip(rows.parts, sets, strict=True):
            assert of_fold == everything - set(fold.test.tolist())


def test_one_domain_alone_has_the_rows_that_it_has_among_each():
    data = four_hospitals(20, groups=np.arange(80) // 2)
    of_each = left_out(data, seed=3).parts[2]
    alone = left_out(data, "LYON", seed=3)
    (fold,) = alone.parts
    assert rows_by_part(fold) == rows_by_part(of_each)
    assert (fold.fold, of_each.fold) == (None, 2)
    assert alone.split_record().rows("test").tolist() == fold.test.tolist()
    assert [row.name for row in alone.split_rows()] == ["train", "val", "test", "seen"]
    assert [row.name for row in left_out(data).split_rows()] == [f"test without {name}" for name in HOSPITALS]


def test_the_split_without_a_domain_is_one_of_all_rows_unreadable_ones_too(tmp_path):
    lines = ["image,label,hospital"]
    for number in range(24):
        lines.append(f"{number}.png,{number % 2},{HOSPITALS[number // 12]}")
        Image.new("L", (16, 16), number).save(tmp_path / f"{number}.png")
    (tmp_path / "scans.csv").write_text("\n".join(lines))
    for number in (0, 13, 23):
        (tmp_path / f"{number}.png").write_bytes(b"broken")
    data = tmp_path / "scans.csv"
    drawn = left_out(data, "BONN", skip_unreadable=True)
    split = drawn.split_record()
    assert split.num_images == 24
    assert not {0, 13, 23} & {row for part in ("train", "val", "test") for row in split.rows(part).tolist()}
    split.save(tmp_path / "split.json")
    (again,) = rows_of(data, split=tmp_path / "split.json", skip_unreadable=True).parts
    (before,) = drawn.parts
    for part in ("train", "val", "test"):
        assert again.rows(part).tolist() == before.rows(part).tolist()


@st.composite
def collections(draw):
    """Hospitals, classes and patients in any mixture, patients in several hospitals among them."""
    number = draw(st.integers(24, 60))
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    hospitals = rng.choice(HOSPITALS[: draw(st.integers(2, 4))], number)
    hospitals[:2] = HOSPITALS[:2]
    labels = rng.integers(0, draw(st.integers(2, 3)), number)
    groups = rng.integers(0, draw(st.integers(6, 40)), number) if draw(st.booleans()) else None
    return hospitals, labels, groups, seed


@given(collections(), st.booleans(), st.sampled_from([0.0, 0.2, 0.5]))
@settings(max_examples=20)
def test_no_image_of_the_left_out_domain_or_its_patients_trains_picks_or_is_seen(drawn, oracle, holdout):
    hospitals, labels, groups, seed = drawn
    data = of_hospitals(hospitals, labels, groups=groups, size=2)
    options = {"seed": seed, "holdout": holdout, "oracle": oracle}
    try:
        rows = left_out(data, **options)
    except DataError:
        return
    for fold in rows.parts:
        away = set(np.flatnonzero(hospitals == fold.domain).tolist())
        parts = rows_by_part(fold)
        assert sum(map(len, parts.values())) == len(set().union(*parts.values()))  # nothing is in two parts
        assert not away & {*parts["train"], *parts["seen"]}
        assert set(parts["test"]) | (set(parts["val"]) if oracle else set()) == away
        if not oracle:
            assert not away & set(parts["val"])
        if groups is not None:
            patients = {part: set(groups[rows].tolist()) for part, rows in parts.items() if rows}
            names = list(patients)
            for one in names:
                assert not any(patients[one] & patients[other] for other in names if other != one), (one, parts)
            excluded = np.isin(groups, groups[sorted(away)]) & (hospitals != fold.domain)
            assert fold.num_excluded == excluded.sum()
        if not oracle:
            assert sum(map(len, parts.values())) + fold.num_excluded == len(data)
        assert (holdout == 0) <= (not parts["seen"])
    again = left_out(data, **options)
    assert [rows_by_part(fold) for fold in again.parts] == [rows_by_part(fold) for fold in rows.parts]


@given(collections(), st.integers(0, 99))
@settings(max_examples=12)
def test_labels_of_the_left_out_domain_change_no_row_of_its_training(drawn, noise):
    hospitals, labels, groups, seed = drawn
    away = hospitals == "BONN"
    poisoned = np.where(away, np.random.default_rng(noise).permutation(labels), labels)
    names = [str(number) for number in range(labels.max() + 1)]
    try:
        before, after = (
            left_out(replace(of_hospitals(hospitals, each, groups=groups, size=2), class_names=tuple(names)), "BONN", seed=seed)
            for each in (labels, poisoned)
        )
    except DataError:
        return
    assert rows_by_part(before.parts[0]) == rows_by_part(after.parts[0])


def test_parts_that_came_with_the_data_are_kept_and_their_test_is_seen():
    splits = np.tile(["train", "train", "val", "val", "test", "test", "extra", "train", "train", "train"], 8)
    data = four_hospitals(20, splits=splits)
    (fold,) = left_out(data, "GENT").parts
    hospital = data.attributes["hospital"]
    for part, name in (("train", "train"), ("val", "val"), ("seen", "test")):
        assert getattr(fold, part).tolist() == np.flatnonzero((splits == name) & (hospital != "GENT")).tolist()
    assert fold.test.tolist() == np.flatnonzero((hospital == "GENT") & (splits != "extra")).tolist()
    with pytest.raises(UsageError, match="its test images are seen"):
        left_out(data, "GENT", holdout=0.3)
    with pytest.raises(UsageError, match=r"--val-fraction 0\.3 is for data without val rows"):
        left_out(data, "GENT", val_fraction=0.3)


def test_an_oracle_picks_on_the_domain_that_is_left_out_and_trains_on_the_same_images():
    data = four_hospitals(20, groups=np.arange(80) // 2)
    (plain,), (oracle,) = (left_out(data, "GENT", oracle=value).parts for value in (False, True))
    assert oracle.train.tolist() == plain.train.tolist()
    assert oracle.seen.tolist() == plain.seen.tolist()
    assert np.sort(np.r_[oracle.val, oracle.test]).tolist() == plain.test.tolist()
    assert len(oracle.val) == 4
    assert not {*(oracle.val // 2)} & {*(oracle.test // 2)}


def test_patients_of_the_left_out_domain_are_left_out_everywhere_and_counted():
    groups = np.arange(80) // 2
    groups[[0, 1, 22, 23, 44]] = 99  # BONN, GENT and LYON
    said = warnings_of(four_hospitals(20, groups=groups), "GENT")
    assert said == [
        "Left out of training: 3 images without GENT, because the same groups has images in the domain that is left out, too."
    ]


def test_patients_that_leave_nothing_to_train_on_are_named():
    data = four_hospitals(20, groups=np.arange(80) % 20)
    with pytest.raises(DataError, match=r"no image of scans is left to train on: 60 images of other domains.*same groups"):
        left_out(data, "GENT")


def test_a_domain_that_is_too_small_for_val_is_named():
    hospitals = np.r_[np.repeat(["BONN", "GENT"], 20), ["LYON", "LYON"]]
    data = of_hospitals(hospitals, np.arange(42) % 2)
    (said,) = warnings_of(data, "GENT")
    assert said == "Too small for a share in val: hospital LYON (2 images). The model is picked on images of the other domains."
    with pytest.raises(DataError, match=r"Without hospital BONN no image of scans can pick the model.*--val-fraction 0"):
        left_out(of_hospitals(np.r_[["BONN"] * 20, ["GENT"] * 2], np.arange(22) % 2), "BONN")
    assert (
        left_out(of_hospitals(np.r_[["BONN"] * 20, ["GENT"] * 2], np.arange(22) % 2), "BONN", val_fraction=0).parts[0].train.size
    )


def test_a_class_that_only_the_left_out_domain_has_is_named_and_the_advice_works():
    labels = np.arange(80) % 2
    labels[20:26] = 2
    data = of_hospitals(np.repeat(HOSPITALS, 20), labels)
    with pytest.raises(DataError) as refusal:
        left_out(data)
    assert str(refusal.value) == (
        "Only hospital GENT has images of the class 2 (6 images), so without it nothing can learn to tell it. Leave out images "
        "of 2, join it with another class, or leave out another domain: --leave-out with one of BONN, LYON and OSLO."
    )
    assert left_out(data, "LYON").parts[0].test.size == 20


def test_no_domain_is_advised_that_would_be_refused_as_well():
    labels = np.repeat([0, 1, 2], 20)
    data = of_hospitals(np.repeat(["BONN", "GENT", "LYON"], 20), np.where(np.arange(60) % 4, labels, 0))
    with pytest.raises(DataError, match=r"Only hospital GENT .* or leave out another domain: --leave-out with one of BONN\.$"):
        left_out(data)
    assert left_out(data, "BONN").parts[0].test.size == 20
    with pytest.raises(DataError, match=r"join it with another class\.$"):
        left_out(of_hospitals(np.repeat(["BONN", "GENT"], 20), labels[:40]))


def test_names_that_cannot_be_told_apart_are_refused():
    data = four_hospitals(8)
    with pytest.raises(UnknownNameError, match=r"Unknown hospital of scans: GEND. Did you mean GENT\? each: every one in turn."):
        left_out(data, "GEND")
    labels = np.arange(32) % 2
    with pytest.raises(DataError, match="One hospital of scans is called each"):
        left_out(of_hospitals(np.repeat(["each", "GENT"], 16), labels))
    with pytest.raises(DataError, match=r"a/b and A-B of hospital are one and the same as names of folders|A-B and a/b"):
        left_out(of_hospitals(np.repeat(["a/b", "A-B"], 16), labels))
    with pytest.raises(DataError, match=r"Each hospital of scans is one group \(groups\)"):
        left_out(four_hospitals(8, groups=np.arange(32) // 8))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"folds": 3}, "--folds does not go with --leave-out: both say which images are tested"),
        ({"limit": 20}, "--limit does not go with --leave-out: .*--per-class"),
        ({"class_shares": "1=0.5"}, "--class-shares does not go with --leave-out"),
        ({"pair_by": "hospital"}, "--pair-by does not go with --leave-out"),
        ({"edits": ("tag",)}, "--with does not go with --leave-out: .*crossgraft edit"),
        ({"oracle": True, "val_fraction": 0.0}, "--val-fraction 0 takes none of them"),
    ],
)
def test_what_does_not_go_with_it_is_refused(options, match):
    with pytest.raises(UsageError, match=match):
        left_out(four_hospitals(8), "GENT", **options)


def test_fewer_training_images_of_each_class_leave_the_other_parts_whole():
    data = four_hospitals(20)
    (whole,), (fewer,) = (left_out(data, "GENT", per_class=number).parts for number in (None, 3))
    assert np.bincount(data.targets[fewer.train]).tolist() == [3, 3]
    assert rows_by_part(fewer) | {"train": []} == rows_by_part(whole) | {"train": []}
