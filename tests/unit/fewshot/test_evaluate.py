"""Heads on the same episodes."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from crossgraft.errors import DataError, UsageError
from crossgraft.fewshot import CopaHead, NccHead, NWayKShot, TipAdapterHead, evaluate, joined, sample_episode
from crossgraft.fewshot.evaluate import EpisodeTable
from crossgraft.fewshot.heads.ncc import DISTANCES
from crossgraft.seeding import generator
from crossgraft.statistics import mean_interval

SAMPLER = NWayKShot(ways=3, shots=2, queries=4)
HEADS = {"ncc": NccHead(), "neighbour": KNeighborsClassifier(n_neighbors=1)}


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    labels = np.repeat([f"class {c}" for c in "abcde"], 12)
    return np.eye(5)[np.repeat(np.arange(5), 12)] + random.normal(scale=0.7, size=(60, 5)), labels


def test_each_accuracy_is_that_of_the_head_on_the_episode(data):
    features, labels = data
    table = evaluate(features, labels, HEADS, sampler=SAMPLER, num_episodes=4, seed=3)
    for number in range(4):
        episode = sample_episode(labels, SAMPLER, generator(3, "episode", number))
        head = NccHead().fit(features[episode.support], labels[episode.support])
        right = np.mean(head.predict(features[episode.query]) == labels[episode.query])
        assert table.accuracies[number, 0] == right
    assert table.num_ways.tolist() == [3] * 4
    assert table.num_support.tolist() == [6] * 4 and table.num_query.tolist() == [12] * 4
    assert (table.seconds > 0).all()


def test_parts_that_are_joined_are_the_whole(data):
    whole = evaluate(*data, HEADS, sampler=SAMPLER, num_episodes=5)
    parts = [
        evaluate(*data, HEADS, sampler=SAMPLER, num_episodes=count, first_episode=first) for first, count in ((0, 2), (2, 3))
    ]
    np.testing.assert_array_equal(joined(parts).accuracies, whole.accuracies)
    np.testing.assert_array_equal(joined(parts).num_support, whole.num_support)


def test_intervals_and_paired_differences(data):
    table = evaluate(*data, HEADS, sampler=SAMPLER, num_episodes=9)
    values = table.accuracies[:, 0]
    for found, expected in (
        (table.accuracy("ncc"), values),
        (table.difference("ncc", "neighbour"), values - table.accuracies[:, 1]),
    ):
        interval = mean_interval(expected)
        farther = max(interval.high - interval.mean, interval.mean - interval.low)
        assert found == (pytest.approx(expected.mean()), pytest.approx(farther), None)
        assert farther >= 2.306 * expected.std(ddof=1) / 3 * (1 - 1e-3)  # Student's with 8 degrees of freedom
    same = table.difference("ncc", "ncc")
    assert same.mean == 0 and np.isnan(same.half_width) and same.reason == "all episodes gave the same"


def test_many_episodes_have_the_interval_of_published_tables():
    accuracies = np.random.default_rng(0).beta(8, 3, size=(600, 1))
    counts = np.full(600, 5)
    found = EpisodeTable(("ncc",), accuracies, np.zeros(1), counts, counts, counts).accuracy("ncc")
    assert found.half_width == pytest.approx(1.96 * accuracies.std() / np.sqrt(600), rel=0.05)
    few = EpisodeTable(("ncc",), accuracies[:4], np.zeros(1), *[counts[:4]] * 3).accuracy("ncc")
    assert np.isnan(few.half_width) and few.reason == "4 episodes, where 5 are needed"


def test_heads_given_stay_unfitted(data):
    head = NccHead()
    evaluate(*data, {"ncc": head}, sampler=SAMPLER, num_episodes=1)
    assert not hasattr(head, "classes_")


def test_what_heads_warn_of_is_counted(data, recwarn):
    one_shot = NWayKShot(ways=3, shots=1, queries=4)
    table = evaluate(*data, {"copa": CopaHead(steps=1), "ncc": NccHead()}, sampler=one_shot, num_episodes=3)
    ((said, count),) = table.warnings.items()
    assert said.startswith("copa: CoPA with one image per class") and count == 3
    assert joined([table, table]).warnings == {said: 6}
    assert not recwarn.list


def test_patients_are_kept_apart(data):
    features, labels = data
    groups = np.repeat(np.arange(20), 3)
    grouped = evaluate(features, labels, HEADS, sampler=SAMPLER, num_episodes=3, groups=groups)
    plain = evaluate(features, labels, HEADS, sampler=SAMPLER, num_episodes=3)
    assert (grouped.accuracies != plain.accuracies).any()


def test_bad_input(data):
    features, labels = data
    with pytest.raises(UsageError, match="one head and one episode"):
        evaluate(features, labels, {})
    with pytest.raises(DataError, match="the first is row 7"):
        evaluate(np.where(np.arange(60)[:, None] == 7, np.nan, features), labels, HEADS)
    with pytest.raises(UsageError, match="Head copa in episode 0: steps of copa"):
        evaluate(features, labels, {"copa": CopaHead(steps=-1)}, sampler=SAMPLER, num_episodes=1)
    with pytest.raises(UsageError, match="No head url was evaluated"):
        evaluate(features, labels, {"ncc": NccHead()}, sampler=SAMPLER, num_episodes=1).accuracy("url")
    with pytest.raises(DataError, match="same heads"):
        joined([])


def test_any_error_of_a_head_is_told_with_its_place(data):
    heads = {"ncc": NccHead(), "neighbours": KNeighborsClassifier(n_neighbors=40)}
    with pytest.raises(UsageError, match="Head neighbours in episode 2: ValueError: Expected n_neighbors") as raised:
        evaluate(*data, heads, sampler=SAMPLER, num_episodes=1, first_episode=2)
    assert type(raised.value.__cause__) is ValueError


class Greedy(KNeighborsClassifier):
    def fit(self, X, y):
        raise MemoryError("no 80 GB")


def test_want_of_memory_is_no_fault_of_the_options(data):
    with pytest.raises(MemoryError, match="no 80 GB"):
        evaluate(*data, {"greedy": Greedy()}, sampler=SAMPLER, num_episodes=1)


def test_an_error_in_the_code_of_an_own_head_is_no_fault_of_the_user(data, monkeypatch):
    monkeypatch.setitem(DISTANCES, "cos", None)
    with pytest.raises(TypeError, match="not callable"):
        evaluate(*data, {"ncc": NccHead()}, sampler=SAMPLER, num_episodes=1)
    with pytest.raises(UsageError, match="Head ncc in episode 0: TypeError"):
        evaluate(*data, {"ncc": type("Theirs", (NccHead,), {})()}, sampler=SAMPLER, num_episodes=1)


@pytest.mark.parametrize("what", ["labels", "groups", "superclasses"])
def test_values_that_do_not_sort(data, what):
    features, labels = data
    arrays = {"labels": labels, "groups": np.arange(60), "superclasses": np.full(60, "one")}
    arrays[what] = np.where(np.arange(60) == 3, None, arrays[what].astype(object))
    with pytest.raises(DataError, match=rf"{what.capitalize()} do not sort, because of their types: .*NoneType"):
        evaluate(features, heads=HEADS, sampler=SAMPLER, num_episodes=1, **arrays)


def test_features_of_objects_are_numbers_or_refused(data):
    features, labels = data
    table = evaluate(features.astype(object), labels, HEADS, sampler=SAMPLER, num_episodes=2)
    np.testing.assert_array_equal(table.accuracies, evaluate(*data, HEADS, sampler=SAMPLER, num_episodes=2).accuracies)
    with pytest.raises(DataError, match=r"features must be \(n, d\) numbers: could not convert"):
        evaluate(np.full((60, 5), "x", dtype=object), labels, HEADS)
    with pytest.raises(DataError, match="the first is row 0"):
        evaluate(np.full((60, 5), None), labels, HEADS)


def test_an_array_of_class_weights_has_a_row_for_each_class_of_the_data(data):
    """Episodes of three of five classes would take three rows for whichever classes were drawn."""
    features, labels = data
    with pytest.raises(UsageError, match="class_weights of tip has 3 rows, and the data 5 classes"):
        evaluate(features, labels, {"tip": TipAdapterHead(class_weights=np.eye(5)[:3])}, sampler=SAMPLER, num_episodes=1)
    named = TipAdapterHead(class_weights={f"class {c}": row for c, row in zip("abcde", np.eye(5), strict=True)}, alpha=0.0)
    whole = {"array": TipAdapterHead(class_weights=np.eye(5), alpha=0.0), "named": named}
    table = evaluate(features, labels, whole, sampler=NWayKShot(ways=5, shots=2), num_episodes=3)
    assert (table.accuracies[:, 0] == table.accuracies[:, 1]).all() and table.accuracy("named").mean > 0.5


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"heads": [NccHead()]}, "heads must be name → head, got list"),
        ({"sampler": "n_way_k_shot"}, "sampler must be a Sampler"),
        ({"num_episodes": 2.5}, "num_episodes must be a whole number, got 2.5"),
    ],
)
def test_arguments_of_another_type_are_named(data, changed, said):
    with pytest.raises(UsageError, match=said):
        evaluate(*data, **({"heads": HEADS, "sampler": SAMPLER, "num_episodes": 1} | changed))


def test_an_episode_that_cannot_be_drawn_is_numbered(data):
    features, labels = data
    kept = np.r_[0:2, 12:60]  # two images of the first class
    with pytest.raises(DataError, match=r"Episode \d+: Class class a: A class has 2 images, too few for 2"):
        evaluate(features[kept], labels[kept], HEADS, sampler=SAMPLER, num_episodes=20)
