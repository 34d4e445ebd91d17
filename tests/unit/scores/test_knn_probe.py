from __future__ import annotations

import sys
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from crossgraft.errors import NotApplicable, UsageError
from crossgraft.scores import ScoreInputs, knn_probe

from .conftest import make_problem

knn_module = sys.modules["crossgraft.scores.knn_probe"]


def literal(features, labels, left_out, k, metric):
    """Neighbours of one image at a time by scikit-learn, votes counted one by one (no tied distances)."""
    if metric == "euclidean":
        features = StandardScaler().fit_transform(features)
    hits = []
    for i in range(len(features)):
        others = left_out != left_out[i]
        model = KNeighborsClassifier(k, metric=metric).fit(features[others], labels[others])
        shares = model.predict_proba(features[i : i + 1])[0]
        winners = model.classes_[shares == shares.max()]
        hits.append((labels[i] in winners) / len(winners))
    return np.mean(hits)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("k", [1, 4, 5])
@pytest.mark.parametrize("grouped", [False, True])
def test_equals_the_definition(problem, metric, k, grouped):
    features, labels = problem
    groups = np.arange(len(labels)) // 4 if grouped else np.arange(len(labels))
    given = {"groups": groups} if grouped else {}
    value = knn_probe(features=features, labels=labels, k=k, metric=metric, **given)
    assert value == pytest.approx(literal(features, labels, groups, k, metric))
    assert value.parts["majority_share"] == np.bincount(labels).max() / len(labels)


def test_the_grouped_value_does_not_see_copies_of_the_same_patient():
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(20), 3)
    features = rng.standard_normal((20, 6))[patients] + 0.01 * rng.standard_normal((60, 6))
    labels = rng.integers(2, size=20)[patients]
    assert knn_probe(features=features, labels=labels, k=1) == 1.0
    assert knn_probe(features=features, labels=labels, groups=patients, k=1) < 0.8


def test_several_blocks_give_the_same(monkeypatch):
    features, labels = make_problem()
    expected = knn_probe(features=features, labels=labels)
    monkeypatch.setattr(knn_module, "_BLOCK_DISTANCES", 7 * len(features))
    assert knn_probe(features=features, labels=labels) == expected


def test_tied_neighbours_all_vote_whatever_their_order():
    features = np.array([[0.0], [1.0], [-1.0], [1.0], [-1.0], [9.0]])
    labels = np.array([0, 0, 1, 0, 1, 0])
    values = set()
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(6)
        values.add(float(knn_probe(features=features[order], labels=labels[order], k=1)))
    # The first image has two neighbours of each class: half a hit. The last one has those two at 1: a hit.
    assert values == {(0.5 + 4 + 1) / 6}


def test_identical_images_all_vote(monkeypatch):
    features, labels = np.full((30, 4), 0.1, dtype=np.float32), np.arange(30) % 3 // 2
    assert knn_probe(features=features, labels=labels) == pytest.approx(20 / 30)
    monkeypatch.setattr(knn_module, "_MOST_CANDIDATES", 3)
    assert knn_probe(features=features, labels=labels) == pytest.approx(20 / 30)


def test_float32_neighbours_are_settled_in_float64():
    rng = np.random.default_rng(0)
    features = (1000 + rng.integers(3, size=(200, 4)) + 1e-3 * rng.standard_normal((200, 4))).astype(np.float32)
    labels = rng.integers(2, size=200)
    single = knn_probe(features=features, labels=labels)
    assert single == knn_probe(features=features.astype(np.float64), labels=labels)


def test_label_permutations_do_not_search_again(monkeypatch):
    features, labels = make_problem()
    inputs = ScoreInputs(features=features, labels=labels)
    knn_probe.evaluate(inputs)
    shuffled = np.random.default_rng(0).permutation(labels)
    expected = knn_probe(features=features, labels=shuffled)
    monkeypatch.setattr(knn_module, "_neighbours", None)
    assert knn_probe.evaluate(inputs.with_labels(shuffled)) == expected


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    num=st.integers(30, 220),
    width=st.sampled_from([1, 3, 40]),
    dtype=st.sampled_from([np.float32, np.float64]),
    shape=st.sampled_from(["normal", "sparse", "few values", "copies", "one column ends"]),
    metric=st.sampled_from(["euclidean", "cosine"]),
    k=st.sampled_from([1, 5, 12]),
    share=st.sampled_from([0.02, 0.05, 0.5]),
    grouped=st.booleans(),
)
def test_without_some_rows_it_is_that_of_the_others(seed, num, width, dtype, shape, metric, k, share, grouped):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((num, width))
    if shape == "sparse":
        features = np.maximum(features - 1, 0) ** 3
    elif shape == "few values":
        features = np.round(features)
    elif shape == "copies":
        features = features[rng.integers(num // 8, size=num)]
    groups = np.arange(num) // 3 if grouped else np.arange(num)
    removed = np.flatnonzero(np.isin(groups, rng.choice(groups, max(1, int(share * num)))))
    if shape == "one column ends":
        features[:, 0] = np.isin(np.arange(num), removed)
    labels = rng.integers(3, size=num)
    kept = np.delete(np.arange(num), removed)
    assume(len(np.unique(labels[kept])) > 1 and len(np.unique(groups[kept])) > 1)
    given_groups = {"groups": groups} if grouped else {}
    inputs = ScoreInputs(features=features.astype(dtype), labels=labels, **given_groups)
    knn_probe.evaluate(inputs, k=k, metric=metric)
    smaller = {name: values[kept] for name, values in given_groups.items()}
    expected = knn_probe(features=features.astype(dtype)[kept], labels=labels[kept], k=k, metric=metric, **smaller)
    with mock.patch.object(knn_module, "_DISTANCES_A_PAIR", 0):  # so few images would be searched anew
        assert knn_probe.evaluate(inputs.without(removed), k=k, metric=metric) == expected


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 5),
    width=st.integers(1, 400),
    number=st.integers(1, 20),
    levels=st.sampled_from([2, 10, 10**6]),
)
def test_the_smallest_are_found_in_bundles(seed, rows, width, number, levels):
    number = min(number, width)
    values = np.random.default_rng(seed).integers(levels, size=(rows, width)).astype(np.float32)
    values[values == levels - 1] = np.inf
    places = knn_module._places_of_smallest(values, number)
    assert all(len(set(row)) == number for row in places.tolist())
    assert np.array_equal(np.sort(np.take_along_axis(values, places, axis=1)), np.sort(values, axis=1)[:, :number])


def test_many_images_are_searched_in_bundles(monkeypatch):
    features, labels = make_problem(700, 5, 3)
    sizes = []
    monkeypatch.setattr(knn_module, "_LISTED", 2)
    partition = np.argpartition
    monkeypatch.setattr(
        np, "argpartition", lambda values, kth, axis: sizes.append(values.shape[1]) or partition(values, kth, axis)
    )
    searched = knn_probe(features=features, labels=labels, k=1)
    assert 0 < max(sizes) < 700
    monkeypatch.setattr(knn_module, "_BUNDLES_A_VALUE", 700)
    assert knn_probe(features=features, labels=labels, k=1) == searched


def test_leaving_a_block_out_searches_the_lists_alone(monkeypatch):
    features, labels = make_problem(400, 5, 3)
    inputs = ScoreInputs(features=features, labels=labels)
    knn_probe.evaluate(inputs)
    expected = knn_probe(features=features[20:], labels=labels[20:])
    searched_anew = knn_probe.evaluate(inputs.without(np.arange(20)))
    monkeypatch.setattr(knn_module, "_DISTANCES_A_PAIR", 10)
    monkeypatch.setattr(knn_module._Points, "to_all", None)
    assert knn_probe.evaluate(inputs.without(np.arange(20))) == searched_anew == expected


def test_a_feature_that_is_rarely_seen_leaves_the_lists_of_other_images_alone(monkeypatch):
    features, labels = make_problem(400, 5, 3)
    rare = np.zeros((400, 1))
    rare[[3, 200], 0] = 50, 0.1  # without row 3 its scale grows 500 times
    features = np.hstack([features, rare])
    inputs = ScoreInputs(features=features, labels=labels)
    knn_probe.evaluate(inputs)
    expected = knn_probe(features=features[20:], labels=labels[20:])
    monkeypatch.setattr(knn_module, "_DISTANCES_A_PAIR", 10)
    searched, whole = [], knn_module._Points.to_all
    monkeypatch.setattr(knn_module._Points, "to_all", lambda points, rows: searched.extend(rows) or whole(points, rows))
    assert knn_probe.evaluate(inputs.without(np.arange(20))) == expected
    assert 200 - 20 in searched and len(searched) < 10


def test_what_is_equal_but_for_rounding_votes_by_lists_as_by_a_whole_search(monkeypatch):
    """Nearly all rows point one way or the other: squared distances of about 0 and 4, that differ by parts of 1e-15."""
    module = sys.modules["crossgraft.scores.knn_probe"]
    monkeypatch.setattr(module, "_DISTANCES_A_PAIR", 0)
    draws, k = np.random.default_rng(91), 30
    features = draws.normal(size=(66, 2)) * [1e6, 1.0]
    groups = draws.integers(0, 20, size=66)
    kept = np.flatnonzero(draws.random(66) > 0.1)
    before = module._Points.of(features, groups, "cosine")
    search = module._Search(before.list_near(40), groups, before.scale, before.resolution)
    rows = module._Points.of(features[kept], groups[kept], "cosine")
    by_lists = module._votes(rows, search.without(kept, features[kept], rows, k), k)
    assert (by_lists != module._votes(rows, rows.list_near(len(kept)), k)).nnz == 0


def test_few_images_are_searched_anew(monkeypatch):
    features, labels = make_problem(60, 5, 3)
    inputs = ScoreInputs(features=features, labels=labels)
    knn_probe.evaluate(inputs)
    monkeypatch.setattr(knn_module._Points, "between", None)
    assert knn_probe.evaluate(inputs.without(np.arange(3))) == knn_probe(features=features[3:], labels=labels[3:])


def test_lists_of_other_groups_are_not_used():
    features, labels = make_problem(90, 5, 3)
    inputs = ScoreInputs(features=features, labels=labels, groups=np.arange(90) // 30)
    knn_probe.evaluate(inputs)
    inputs.groups = None
    assert knn_probe.evaluate(inputs.without([0, 1])) == knn_probe(features=features[2:], labels=labels[2:])


def test_more_neighbours_than_images():
    features, labels = make_problem(7, 3, 2)
    assert knn_probe(features=features, labels=labels, k=50) == pytest.approx(2 / 7)  # 3 : 3 or 2 : 4


def test_class_of_one_group_is_said():
    features, _ = make_problem(9, 3, 2)
    value = knn_probe(features=features, labels=[0] * 8 + [1])
    assert value.warnings == ("1 of 2 classes have images of one group only and are never recognised.",)


def test_zero_rows_have_no_direction_but_a_value():
    features = np.vstack([np.zeros((2, 3)), np.eye(3), np.eye(3)])
    assert 0 <= knn_probe(features=features, labels=[0, 1, 0, 1, 0, 0, 1, 0], metric="cosine") <= 1


@pytest.mark.parametrize(
    ("options", "message"), [({"k": 0}, "`k`"), ({"metric": "l1"}, "no metric 'l1'\\. Use euclidean or cosine")]
)
def test_settings_out_of_range(options, message):
    with pytest.raises(UsageError, match=message):
        knn_probe.evaluate(ScoreInputs(features=np.eye(4), labels=[0, 1, 0, 1]), **options)


def test_a_single_group_has_no_neighbours():
    with pytest.raises(NotApplicable, match="at least two groups"):
        knn_probe(features=np.eye(4), labels=[0, 1, 0, 1], groups=["p"] * 4)
