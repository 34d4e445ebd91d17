"""Attributes by resampling: patients stay apart, sizes do not move with the share, and exact scores are the mean of all draws."""

import hashlib
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from crossgraft.audit.attributes import AttributeScores, attribute_scores, binary_attribute, draw_protocol
from crossgraft.errors import DataError, UnknownNameError, UsageError

SHARES = (0.0, 0.1, 0.2, 0.5, 0.8, 1.0)
CELLS = [(1, 1), (1, 0), (0, 1), (0, 0)]


def texts(*values):
    return np.array(values, dtype=object)


def population(seed, num_images=120, num_patients=50):
    """Images of patients with one or several of them, whose labels and attributes may differ from image to image."""
    rng = np.random.default_rng(seed)
    labels, attribute = rng.integers(0, 2, num_images), (rng.random(num_images) < 0.4).astype(np.int64)
    return labels, attribute, rng.integers(0, num_patients, num_images), [f"image {each}" for each in range(num_images)]


def rows_of(labels, attribute, rows, cell):
    return {int(row) for row in rows if (labels[row], attribute[row]) == cell}


def counts(labels, attribute, rows):
    return [len(rows_of(labels, attribute, rows, cell)) for cell in CELLS]


def in_hash_order(rows, identities, seed):
    return sorted(rows, key=lambda row: hashlib.sha256(f"{seed}\x1f{identities[row]}".encode()).digest())


# Columns


@pytest.mark.parametrize(
    ("values", "present", "flags", "words"),
    [
        (texts("F", "M", "F"), None, [0, 1, 0], "sex M"),
        (texts("F", "M", "F"), "F", [1, 0, 1], "sex F"),
        (np.array(["a", "b", "c"]), "b", [0, 1, 0], "sex b"),
        (np.array([True, False, True]), None, [1, 0, 1], "sex True"),
        (np.array([0, 1, 0]), None, [0, 1, 0], "sex 1"),
        (np.array([0.0, 1.0, 0.0]), "0", [1, 0, 1], "sex 0"),
        (np.array(["0.0", "1.0"]), None, [0, 1], "sex 1"),
        (np.array([30.0, 60.0, 40.0, 50.0]), None, [0, 1, 0, 1], "sex above 40"),
        (np.array([30, 60, 55, 56]), "55", [0, 1, 0, 1], "sex above 55"),
        (np.array([30, 60, 55, 56]), ">55.5", [0, 1, 0, 1], "sex above 55.5"),
        (np.array([30, 60, 55, 56]), 55.0, [0, 1, 0, 1], "sex above 55"),
        (np.array([30, 60, 55, 56]), "< 55", [1, 0, 0, 0], "sex below 55"),
        (np.array([1, 2, 3, 3]), "=3", [0, 0, 1, 1], "sex 3"),
        (np.array([0, 1, 0]), "<1", [1, 0, 1], "sex below 1"),
    ],
)
def test_a_column_as_yes_or_no(values, present, flags, words):
    found = binary_attribute(values, present, name="sex")
    assert found.flags.tolist() == [bool(each) for each in flags] and found.in_words == words
    assert found.flags.dtype == bool and found.known.all() and found.num_missing == 0


def test_missing_values_are_counted_and_of_neither_kind():
    given_values = texts("F", None, "M", "", " ", float("nan"), "unknown", "nan")
    found = binary_attribute(given_values, name="sex", missing=["unknown"])
    assert found.known.tolist() == [True, False, True, False, False, False, False, False]
    assert found.flags.tolist() == [False, False, True] + [False] * 5 and found.num_missing == 6
    age = binary_attribute(np.array([20, 30, np.nan, 40, np.nan]), name="age")
    assert age.known.tolist() == [True, True, False, True, False] and age.flags.tolist() == [False] * 3 + [True, False]
    numbers = binary_attribute(np.array(["20", "30", "unknown", "40"]), name="age", missing=["unknown"])
    assert numbers.in_words == "age above 30" and numbers.num_missing == 1


@given(st.lists(st.integers(-5, 5), min_size=3, max_size=40).filter(lambda values: len(set(values)) > 2))
def test_a_median_cut_leaves_images_on_both_sides(values):
    found = binary_attribute(np.array(values), name="age")
    cut = float(found.in_words.removeprefix("age above "))
    assert found.flags.tolist() == [value > cut for value in values]
    assert 0 < found.flags.sum() < len(values)
    below = sum(value <= cut for value in values)
    if below < len(values) / 2:  # more than half of them are the largest number
        assert sorted(values)[len(values) // 2] == max(values) and all(found.flags == (np.array(values) == max(values)))


@pytest.mark.parametrize(
    ("values", "present", "error", "said"),
    [
        (texts("F", "F", ""), None, DataError, r"one value \(F\), and is missing for 1 of 3 images"),
        (texts("", None), None, DataError, "no value, and is missing for 2 of 2"),
        (np.array([5.0, 5.0]), ">4", DataError, r"one value \(5\)"),
        (texts("a", "b", "c"), None, UsageError, r"3 values \(a, b, c\)\. Name the one"),
        (texts("male", "female"), "femal", UnknownNameError, "Unknown value of the column sex: femal. Did you mean female"),
        (np.array([1, 2, 3]), "=4", UnknownNameError, "Unknown value of the column sex: 4"),
        (np.array([0, 1]), "5", UnknownNameError, "Unknown value of the column sex: 5"),
        (np.array([1, 2, 3]), "old", UsageError, "holds numbers, and old is no cut"),
        (np.array([1, 2, 3]), ">nan", UsageError, "no cut"),
        (np.array([1, 2, 3]), ">3", DataError, "No image has sex above 3: values lie between 1 and 3"),
        (np.array([1, 2, 3]), "0", DataError, "Every image has sex above 0"),
    ],
)
def test_columns_that_are_no_attribute(values, present, error, said):
    with pytest.raises(error, match=said):
        binary_attribute(values, present, name="sex")


# The protocol


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 9999))
def test_sets_are_filled_from_their_cells_and_patients_stay_apart(seed):
    labels, attribute, patients, identities = population(seed)
    found = draw_protocol(labels, attribute, patients, shares=SHARES, identities=identities, seed=seed)
    dev, test = found.num_dev, found.num_test
    for draw in found.draws:
        carrying, in_test = round(draw.share * dev), round(draw.share * test)
        assert counts(labels, attribute, draw.dev) == [carrying, dev - carrying, 0, dev]
        assert counts(labels, attribute, draw.iid) == [in_test, test - in_test, 0, test]
        assert draw.dev_share == carrying / dev
        assert len(draw.dev) == 2 * dev and len(draw.iid) == 2 * test
    assert counts(labels, attribute, found.ood) == [0, test, test, 0]
    assert counts(labels, attribute, found.aligned) == [test, 0, 0, test]
    assert counts(labels, attribute, found.clean) == [0, test, 0, test]
    assert counts(labels, attribute, found.balanced) == [test] * 4
    developed = {patients[row] for draw in found.draws for row in draw.dev}
    assert not developed & set(patients[found.test])
    for rows in (*(draw.iid for draw in found.draws), found.ood, found.aligned, found.clean, found.balanced):
        assert set(rows) <= set(found.test) and (np.diff(rows) > 0).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 9999), st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_sizes_are_the_largest_that_every_share_can_fill(seed, shares):
    labels, attribute, patients, identities = population(seed)
    found = draw_protocol(labels, attribute, patients, shares=shares, identities=identities, seed=seed)
    in_dev = np.setdiff1d(np.arange(len(labels)), found.test)
    with_it, without, _, negatives = counts(labels, attribute, in_dev)

    def fits(size):
        carrying = [round(share * size) for share in shares]
        return size <= negatives and max(carrying) <= with_it and size - min(carrying) <= without

    assert fits(found.num_dev) and not fits(found.num_dev + 1)
    assert found.num_test == min(counts(labels, attribute, found.test))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 9999), st.floats(0, 1), st.floats(0, 1))
def test_draws_are_nested_in_an_order_of_hashes(seed, share, other):
    labels, attribute, patients, identities = population(seed)
    low, high = sorted([share, other])
    found = draw_protocol(labels, attribute, patients, shares=[low, high], identities=identities, seed=seed)
    parts = {"dev": np.setdiff1d(np.arange(len(labels)), found.test), "iid": found.test}
    few, many = found.draws
    for part, size in (("dev", found.num_dev), ("iid", found.num_test)):
        rows = [[rows_of(labels, attribute, getattr(draw, part), cell) for cell in CELLS] for draw in (few, many)]
        assert rows[0][0] <= rows[1][0] and rows[1][1] <= rows[0][1] and rows[0][3] == rows[1][3]
        for draw, (with_it, without, _, negatives) in zip((few, many), rows, strict=True):
            for cell, drawn in (((1, 1), with_it), ((1, 0), without), ((0, 0), negatives)):
                expected = in_hash_order(rows_of(labels, attribute, parts[part], cell), identities, seed)[: len(drawn)]
                assert drawn == set(expected)
            assert len(with_it) == round(draw.share * size)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 9999), st.booleans())
def test_the_order_of_the_rows_does_not_matter(seed, with_patients):
    labels, attribute, patients, identities = population(seed)
    order = np.random.default_rng(seed).permutation(len(labels))
    drawn = draw_protocol(labels, attribute, patients if with_patients else None, shares=SHARES, identities=identities, seed=seed)
    turned = draw_protocol(
        labels[order],
        attribute[order],
        patients[order] if with_patients else None,
        shares=SHARES,
        identities=[identities[each] for each in order],
        seed=seed,
    )
    for field in ("ood", "aligned", "clean", "balanced", "test"):
        np.testing.assert_array_equal(np.sort(order[getattr(turned, field)]), getattr(drawn, field))
    for one, other in zip(drawn.draws, turned.draws, strict=True):
        np.testing.assert_array_equal(np.sort(order[other.dev]), one.dev)
        np.testing.assert_array_equal(np.sort(order[other.iid]), one.iid)


def test_seeds_differ():
    labels, attribute, patients, identities = population(0)
    drawn = [draw_protocol(labels, attribute, patients, shares=[0.5], identities=identities, seed=seed) for seed in range(4)]
    assert len({tuple(each.test) for each in drawn}) == 4 and len({tuple(each.draws[0].dev) for each in drawn}) == 4


def test_a_new_split_tests_on_the_share_that_is_asked_for():
    labels, attribute, patients, identities = population(1, num_images=800, num_patients=500)
    found = draw_protocol(labels, attribute, patients, shares=[0.0], identities=identities, test_share=0.3)
    for cell in CELLS:
        rows = rows_of(labels, attribute, range(800), cell)
        assert len(rows & set(found.test)) / len(rows) == pytest.approx(0.3, abs=0.03)


def test_a_split_that_is_there_is_kept_and_wanted_sizes_are():
    labels, attribute, patients, identities = population(2)
    is_test = patients < 20
    found = draw_protocol(
        labels, attribute, patients, shares=SHARES, identities=identities, is_test=is_test, num_dev=4, num_test=3
    )
    np.testing.assert_array_equal(found.test, np.flatnonzero(is_test))
    assert (found.num_dev, found.num_test) == (4, 3) and len(found.draws[0].dev) == 8 and len(found.balanced) == 12
    assert [draw.dev_share for draw in found.draws] == [0, 0, 0.25, 0.5, 0.75, 1]


def test_rows_of_unknown_attribute_are_in_no_set():
    labels, attribute, patients, identities = population(3)
    known = np.random.default_rng(3).random(120) < 0.8
    found = draw_protocol(labels, attribute, patients, shares=SHARES, identities=identities, known=known)
    assert known[found.test].all() and all(known[draw.dev].all() for draw in found.draws)
    kept = np.flatnonzero(known)
    alone = draw_protocol(
        labels[kept], attribute[kept], patients[kept], shares=SHARES, identities=[identities[row] for row in kept]
    )
    np.testing.assert_array_equal(kept[alone.test], found.test)
    np.testing.assert_array_equal(kept[alone.draws[3].dev], found.draws[3].dev)


def test_without_patients_equal_images_stay_together():
    labels, attribute = np.tile([1, 1, 0, 0], 20), np.tile([1, 0, 1, 0], 20)
    identities = [f"picture {row // 8 * 4 + row % 4}" for row in range(80)]  # each of them twice
    found = draw_protocol(labels, attribute, None, shares=SHARES, identities=identities)
    rest = set(range(80)) - set(found.test)
    assert not {identities[row] for row in found.test} & {identities[row] for row in rest}


def test_cells_with_too_few_images_are_named():
    labels, attribute, patients, identities = population(4)
    kind = {"shares": SHARES, "identities": identities, "is_test": patients < 20, "in_words": "sex F"}
    in_dev = np.flatnonzero(patients >= 20)
    available, without, _, _ = counts(labels, attribute, in_dev)
    said = rf"Too few positive images with sex F in development: 30 wanted, {available} available"
    assert available < 30
    with pytest.raises(DataError, match=said):
        draw_protocol(labels, attribute, patients, num_dev=30, **kind)
    kind["shares"] = (0.0,)
    with pytest.raises(DataError, match=f"positive images without sex F in development: 99 wanted, {without} available"):
        draw_protocol(labels, attribute, patients, num_dev=99, **kind)
    in_test = counts(labels, attribute, np.flatnonzero(patients < 20))
    short = in_test.index(min(in_test))
    words = ["positive images with", "positive images without", "negative images with", "negative images without"][short]
    with pytest.raises(DataError, match=f"{words} sex F in test: {min(in_test) + 1} wanted, {min(in_test)} available"):
        draw_protocol(labels, attribute, patients, num_test=min(in_test) + 1, **kind)


def test_a_cell_of_one_patient_cannot_be_in_both_parts():
    labels, attribute = np.tile([1, 1, 0, 0], 20), np.tile([1, 0, 1, 0], 20)
    patients = np.arange(80)
    patients[(labels == 0) & (attribute == 1)] = 999
    names = [str(row) for row in range(80)]
    with pytest.raises(DataError, match="negative images with sex F of different patients for two parts: 2 wanted, 1 avail"):
        draw_protocol(labels, attribute, patients, shares=[0.0], identities=names, in_words="sex F")
    with pytest.raises(DataError, match="positive images with sex F of different patients for two parts: 2 wanted, 0 avail"):
        draw_protocol(labels, attribute * (1 - labels), None, shares=[0.0], identities=names, in_words="sex F")
    kept = (attribute == 0) | (labels == 1)
    with pytest.raises(DataError, match="negative images with sex F in test: 1 wanted, 0 available"):
        draw_protocol(
            labels, attribute, None, shares=[0.0], identities=names, in_words="sex F", known=kept, is_test=np.arange(80) < 40
        )


def test_a_split_that_divides_patients_is_refused():
    labels, attribute, patients, identities = population(5)
    with pytest.raises(DataError, match=r"\d+ of \d+ patients have images in development and in test"):
        draw_protocol(labels, attribute, patients, shares=[0.0], identities=identities, is_test=np.arange(120) < 60)


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"shares": []}, UsageError, "at least one share"),
        ({"shares": [1.5]}, DataError, r"must lie in \[0, 1\]"),
        ({"shares": [float("nan")]}, DataError, r"must lie in \[0, 1\]"),
        ({"test_share": 1.0}, UsageError, "between 0 and 1"),
        ({"num_dev": 0}, UsageError, "at least 1 image of each class"),
        ({"num_test": -1}, UsageError, "at least 1 image of each class"),
        ({"identities": ["a"]}, DataError, "one entry in each list"),
    ],
)
def test_bad_input(changed, error, said):
    labels, attribute, patients, identities = population(6)
    with pytest.raises(error, match=said):
        draw_protocol(labels, attribute, patients, **({"shares": [0.0], "identities": identities} | changed))


def test_values_that_are_no_flags():
    labels, attribute, patients, identities = population(6)
    with pytest.raises(DataError, match="labels must be 0 or 1"):
        draw_protocol(labels + 1, attribute, patients, shares=[0.0], identities=identities)
    with pytest.raises(DataError, match="attribute must be 0 or 1"):
        draw_protocol(labels, attribute * 0.5, patients, shares=[0.0], identities=identities)


# Scores


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 999), st.tuples(*[st.integers(1, 5)] * 4), st.floats(0, 1), st.integers(1, 5))
def test_exact_scores_are_the_mean_of_all_draws(seed, sizes, share, number):
    """Every choice of k positives with the attribute and of the others without, one AUC each, by scikit-learn."""
    carrying = round(share * number)
    assume(carrying <= sizes[0] and number - carrying <= sizes[1])
    rng = np.random.default_rng(seed)
    labels, attribute = (np.repeat([cell[side] for cell in CELLS], sizes) for side in (0, 1))
    scores = np.round(rng.random(len(labels)), 1)  # ties
    order = rng.permutation(len(labels))
    found = attribute_scores(scores[order], labels[order], attribute[order])
    p1, p0, n1, n0 = np.split(scores, np.cumsum(sizes)[:-1])
    sampled = [
        roc_auc_score([1] * number + [0] * len(n0), [*with_it, *without, *n0])
        for with_it in combinations(p1, carrying)
        for without in combinations(p0, number - carrying)
    ]
    assert found.iid(share, number) == pytest.approx(np.mean(sampled))
    for value, positives, negatives in zip(found, (p0, p1, p0, p1), (n0, n0, n1, n1), strict=True):
        assert value == pytest.approx(roc_auc_score([1] * len(positives) + [0] * len(negatives), [*positives, *negatives]))
    assert found._fields == ("clean", "aligned", "ood", "both")


def test_sampled_sets_have_the_exact_scores_on_average():
    """A model that sees nothing but the attribute: i.i.d. test images flatter it, o.o.d. ones do not."""
    labels, attribute, patients, identities = population(7)
    found = draw_protocol(labels, attribute, patients, shares=SHARES, identities=identities)
    scores = attribute.astype(np.float64)
    exact = attribute_scores(scores[found.test], labels[found.test], attribute[found.test])
    assert exact == AttributeScores(clean=0.5, aligned=1.0, ood=0.0, both=0.5)
    for draw in found.draws:
        sampled = roc_auc_score(labels[draw.iid], scores[draw.iid])
        share = round(draw.share * found.num_test) / found.num_test
        assert sampled == pytest.approx(exact.iid(draw.share, found.num_test)) == pytest.approx((1 + share) / 2)
    assert roc_auc_score(labels[found.ood], scores[found.ood]) == 0


def test_scores_of_cells_without_images():
    with pytest.raises(DataError, match="There are no negative images with age above 55"):
        attribute_scores(np.zeros(3), np.array([1, 1, 0]), np.array([0, 1, 0]), in_words="age above 55")
    with pytest.raises((DataError, TypeError)):
        attribute_scores(np.zeros(4), np.array([1, 1, 0]), np.array([0, 1, 0]))
    with pytest.raises(DataError, match="finite"):
        attribute_scores(np.full(4, np.nan), np.array([1, 1, 0, 0]), np.array([0, 1, 0, 1]))
