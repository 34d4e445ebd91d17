"""Who is in which part, who carries the artefact, and what their images are with it."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.audit.confounded import confound, divide_rows, positive_class, without_artefact
from crossgraft.audit.reach import input_rms, larger_input
from crossgraft.data import dataset_from_arrays
from crossgraft.data.transforms import prepare_batch
from crossgraft.edit.confounders import Gamma, Tag
from crossgraft.edit.edits import Editing
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.types import Preprocessing
from support.audited_images import images

# rows


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 99), st.integers(2, 5))
def test_folds_leave_test_alone_and_patients_together(seed, num_folds):
    data = images(seed=seed)
    rows = divide_rows(data, "ill", num_folds=num_folds, seed=seed)
    assert set(rows.test) == set(np.flatnonzero(data.splits == "test"))
    assert len(rows.folds) == num_folds
    others = set(np.flatnonzero(data.splits != "test"))
    for fold in rows.folds:
        assert set(fold.train) | set(fold.val) == others and not set(fold.train) & set(fold.val)
        assert not set(data.groups[fold.train]) & set(data.groups[fold.val])
    assert sorted(row for fold in rows.folds for row in fold.val) == sorted(others)


def test_one_fold_is_the_split_of_the_data():
    data = images()
    (fold,) = divide_rows(data, None, num_folds=1, seed=0).folds
    assert (data.splits[fold.train] == "train").all() and (data.splits[fold.val] == "val").all()
    assert (len(fold.train), len(fold.val)) == tuple((data.splits == part).sum() for part in ("train", "val"))
    without = replace(data, splits=np.where(data.splits == "val", "train", data.splits))
    with pytest.raises(UsageError, match="need a part val"):
        divide_rows(without, None, num_folds=1, seed=0)


def test_shuffled_folds_are_drawn_anew_and_keep_patients_together():
    data = images(120)
    rows = divide_rows(data, "ill", num_folds=5, seed=0, method="shuffled")
    assert set(rows.test) == set(np.flatnonzero(data.splits == "test"))
    others = set(np.flatnonzero(data.splits != "test"))
    for fold in rows.folds:
        parts = [set(data.groups[part]) for part in (fold.train, fold.val, rows.test)]
        assert not any(one & other for one, other in combinations(parts, 2))
        assert set(fold.train) | set(fold.val) == others and not set(fold.train) & set(fold.val)
        assert len(parts[1]) == np.ceil(0.15 * len(parts[0] | parts[1]))
    overlaps = [len(set(one.val) & set(other.val)) for one, other in combinations(rows.folds, 2)]
    assert max(overlaps) > 0 and len({tuple(fold.val) for fold in rows.folds}) == 5
    again = divide_rows(data, "ill", num_folds=5, seed=0, method="shuffled")
    assert all((one.val == other.val).all() for one, other in zip(rows.folds, again.folds, strict=True))
    alone = divide_rows(replace(data, groups=None), "ill", num_folds=3, seed=0, method="shuffled")
    assert {len(fold.val) for fold in alone.folds} == {np.ceil(0.15 * len(others))}


@pytest.mark.parametrize(("num_folds", "shared"), [(2, ("train", "test")), (1, ("train", "val")), (1, ("val", "test"))])
def test_no_patient_is_in_two_parts(num_folds, shared):
    data = images()
    groups = np.array(data.groups, dtype=object)
    one, other = (np.flatnonzero(data.splits == part)[0] for part in shared)
    groups[one] = groups[other]
    with pytest.raises(DataError, match=f"1 group with images in both {'train|val' if num_folds == 2 else shared[0]}"):
        divide_rows(replace(data, groups=groups.astype(str)), None, num_folds=num_folds, seed=0)


def test_one_class_against_all_others():
    data = images(classes=("a", "b", "c"))
    rows = divide_rows(data, "b", num_folds=3, seed=0)
    assert rows.positive == "b" and rows.is_positive.sum() == len(data) / 3
    assert (rows.is_positive == (data.targets == data.class_names.index("b"))).all()
    assert positive_class(data, None) == "c"
    for fold in rows.folds:
        assert rows.is_positive[fold.val].mean() == pytest.approx(1 / 3, abs=0.1)
        carrying = rows.carriers(fold, 1.0, seed=0)
        assert set(data.targets[carrying]) == {1}


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 99), st.floats(0, 1), st.floats(0, 1))
def test_carriers_are_nested_and_counted_in_each_part(seed, share, other):
    rows = divide_rows(images(grouped=False), None, num_folds=3, seed=1)
    low, high = sorted([share, other])
    for fold in rows.folds:
        few, many = (rows.carriers(fold, each, seed=seed) for each in (low, high))
        assert not (few & ~many).any() and not many[~rows.is_positive].any() and not many[rows.test].any()
        for part in (fold.train, fold.val):
            assert few[part].sum() == round(low * rows.is_positive[part].sum())


def test_the_order_of_the_rows_does_not_matter():
    data = images()
    order = np.random.default_rng(0).permutation(len(data))
    turned = data.take(order)
    for unit in ("image", "patient"):
        one, other = (divide_rows(each, None, num_folds=1, seed=0) for each in (data, turned))
        first = one.carriers(one.folds[0], 0.4, negatives=0.2, unit=unit, seed=3)
        second = other.carriers(other.folds[0], 0.4, negatives=0.2, unit=unit, seed=3)
        assert first.any()
        np.testing.assert_array_equal(second, first[order])


def test_negatives_carry_it_too_where_that_is_asked_for():
    rows = divide_rows(images(grouped=False), None, num_folds=2, seed=0)
    fold = rows.folds[0]
    carrying = rows.carriers(fold, 0.5, negatives=0.25, seed=0)
    for side, share in ((rows.is_positive, 0.5), (~rows.is_positive, 0.25)):
        assert carrying[fold.train][side[fold.train]].sum() == round(share * side[fold.train].sum())


def test_whole_patients_carry_it():
    rows = divide_rows(images(), None, num_folds=2, seed=0)
    groups = rows.dataset.groups
    for fold in rows.folds:
        by_patient = rows.carriers(fold, 0.5, unit="patient", seed=0)
        for part in (fold.train, fold.val):
            of_part = part[rows.is_positive[part]]
            carried = {group: by_patient[of_part[groups[of_part] == group]] for group in set(groups[of_part])}
            assert all(len(set(flags)) == 1 for flags in carried.values())
            assert sum(flags[0] for flags in carried.values()) == round(0.5 * len(carried))
    by_image = rows.carriers(rows.folds[0], 0.5, unit="image", seed=0)
    mixed = [set(by_image[groups == group]) for group in set(groups[by_image])]
    assert any(len(flags) == 2 for flags in mixed)


def without_positives(data, part, kept):
    """All but ``kept`` positives of a part."""
    of_part = np.flatnonzero((data.splits == part) & (data.targets == 1))
    return data.take(np.setdiff1d(np.arange(len(data)), of_part[kept:]))


@pytest.mark.parametrize(
    ("part", "said"), [("test", "test has 1"), ("val", "val of fold 0 has 1"), ("train", "train of fold 0 has 1")]
)
def test_a_part_with_too_few_positives_is_named(part, said):
    data = without_positives(images(grouped=False), part, 1)
    with pytest.raises(DataError, match=f"{said} image of ill, and an audit needs 2"):
        divide_rows(data, None, num_folds=1, seed=0)
    divide_rows(without_positives(images(grouped=False), part, 2), None, num_folds=1, seed=0)


def test_a_part_with_too_few_negatives_is_named():
    data = without_positives(images(grouped=False), "test", 1)
    with pytest.raises(DataError, match="test has 1 image of other classes than healthy"):
        divide_rows(data, "healthy", num_folds=1, seed=0)


def test_data_that_cannot_be_divided():
    data = images()
    with pytest.raises(UsageError, match="needs test images"):
        divide_rows(replace(data, splits=None), None, num_folds=2, seed=0)
    with pytest.raises(UnknownNameError, match="healhty"):
        divide_rows(data, "healhty", num_folds=2, seed=0)
    several = dataset_from_arrays([data.read(row) for row in range(6)], np.eye(2, dtype=int)[[0, 1] * 3], name="x")
    with pytest.raises(UsageError, match="several labels"):
        divide_rows(several, None, num_folds=2, seed=0)
    few = without_positives(without_positives(data, "train", 2), "val", 1)
    with pytest.raises(DataError, match="ill"):
        divide_rows(few, None, num_folds=5, seed=0)


# images with the artefact


def test_those_that_may_carry_it_are_edited():
    rows = divide_rows(images(side=24), None, num_folds=2, seed=0)
    tag = Tag(size=0.5, xy=(0.1, 0.1))
    found = confound(rows, tag, without_artefact(rows.dataset, [], seed=0), strength=1.0, negatives=0.0, seed=0)
    changed = np.array([(found.clean.read(row) != found.edited.read(row)).any() for row in range(len(rows.dataset))], dtype=bool)
    needed = rows.is_positive.copy()
    needed[rows.test] = True
    np.testing.assert_array_equal(changed, needed)
    assert found.name.startswith("tag:size=0.5") and found.facts.rms > 5 and found.facts.num_images == needed.sum()
    both = confound(rows, tag, without_artefact(rows.dataset, [], seed=0), strength=1.0, negatives=0.5, seed=0)
    assert both.facts.num_images == len(rows.dataset)
    nothing = confound(rows, tag, without_artefact(rows.dataset, [], seed=0), strength=0.0, negatives=0.5, seed=0)
    assert nothing.facts.rms == 0 and nothing.edited.fingerprint == rows.dataset.fingerprint
    with pytest.raises(DataError, match="cannot be edited"):
        confound(
            rows, Tag(size=0.9, xy=(0.9, 0.9)), without_artefact(rows.dataset, [], seed=0), strength=1.0, negatives=0.0, seed=0
        )


def test_others_may_get_another_edit():
    rows = divide_rows(images(side=24), None, num_folds=2, seed=0)
    lighter, darker = Gamma(gamma=0.8), Gamma(gamma=1.5)
    found = confound(rows, darker, without_artefact(rows.dataset, [lighter], seed=0), strength=1.0, negatives=0.0, seed=0)
    row = int(rows.test[0])
    for dataset, edit in ((found.clean, lighter), (found.edited, darker)):
        expected = rows.dataset.edited(Editing([edit])).read(row)
        np.testing.assert_array_equal(dataset.read(row), expected)


def preprocessing(side):
    return Preprocessing(side, side, resize_policy="squash")


@pytest.mark.parametrize(("side", "at_input", "small"), [(96, 96, False), (96, 95, True), (28, 224, True), (300, 64, True)])
def test_a_tag_below_6_pixels_is_too_small(side, at_input, small):
    """0.0625 of 96 is 6."""
    rows = divide_rows(images(24, side=side), None, num_folds=1, seed=0)
    tag = confound(rows, Tag(), without_artefact(rows.dataset, [], seed=0), strength=1.0, negatives=0.0, seed=0)
    said = tag.too_small(preprocessing(at_input))
    assert (said is not None) == small
    assert not small or f"{0.0625 * min(side, at_input):.1f} pixels high" in said
    other = confound(rows, Gamma(), without_artefact(rows.dataset, [], seed=0), strength=1.0, negatives=0.0, seed=0)
    assert other.too_small(preprocessing(at_input)) is None


def test_what_is_left_at_the_input():
    rows = divide_rows(images(40, side=24), None, num_folds=1, seed=0)
    found = confound(rows, Tag(size=0.5), without_artefact(rows.dataset, [], seed=0), strength=1.0, negatives=1.0, seed=0)
    numbers = range(len(rows.dataset))  # more than one batch
    pair = [prepare_batch([each.read(row) for row in numbers], preprocessing(16)) for each in (found.clean, found.edited)]
    expected = float((pair[1] - pair[0]).double().square().mean().sqrt())
    assert input_rms(found.clean, found.edited, preprocessing(16)) == pytest.approx(expected)
    assert input_rms(found.clean, found.clean, preprocessing(16)) == 0
    with pytest.raises(DataError, match="same images are needed"):
        input_rms(found.clean, found.edited.take(rows.test), preprocessing(16))


@pytest.mark.parametrize(("cell", "at_input", "larger"), [(1, 16, 64), (2, 16, 32), (16, 16, None), (1, 64, None)])
def test_a_larger_input_is_named_where_resizing_takes_the_artefact_away(cell, at_input, larger):
    """A chessboard whose cells are smaller than a pixel of the input is gray there."""
    clean = np.full((20, 64, 64, 1), 100, np.uint8)
    board = np.kron(np.indices((64 // cell, 64 // cell)).sum(axis=0) % 2, np.ones((cell, cell), int))
    labels = ["a", "b"] * 10
    edited = dataset_from_arrays((clean - 10 + 20 * board[None, :, :, None]).astype(np.uint8), labels, name="some")
    assert larger_input(dataset_from_arrays(clean, labels, name="some"), edited, preprocessing(at_input)) == larger
