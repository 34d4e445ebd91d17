"""Episodes: sizes by the rules, no image and no patient on both sides, and named errors."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from crossgraft.choice import choose, spell
from crossgraft.errors import DataError, UsageError
from crossgraft.fewshot import SAMPLERS, MetaDataset, NWayKShot, sample_episode
from crossgraft.fewshot.episodes import refuse_small_classes

SIZES = st.lists(st.integers(2, 40), min_size=5, max_size=12)
SEEDS = st.integers(0, 10**6)


def labels_of(sizes):
    return np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))


def counts(labels, rows):
    return dict(zip(*np.unique(labels[rows], return_counts=True), strict=True))


@given(SIZES, SEEDS)
def test_meta_dataset_keeps_its_rules(sizes, seed):
    labels = labels_of(sizes)
    episode = sample_episode(labels, MetaDataset(), np.random.default_rng(seed))
    support, query = counts(labels, episode.support), counts(labels, episode.query)
    assert not set(episode.support) & set(episode.query)
    assert len(set(episode.support)) == len(episode.support) and len(set(episode.query)) == len(episode.query)
    assert support.keys() == query.keys() and 5 <= len(support) <= min(50, len(sizes))
    smallest = min(sizes[c] for c in support)
    assert set(query.values()) == {min(10, smallest // 2)}
    assert all(1 <= support[c] <= sizes[c] - query[c] for c in support) and len(episode.support) <= 500


@given(SIZES, SEEDS, st.integers(2, 4), st.integers(1, 3))
def test_n_way_k_shot_keeps_its_rules(sizes, seed, ways, shots):
    assume(min(sizes) > shots)
    labels = labels_of(sizes)
    sampler = NWayKShot(ways=ways, shots=shots, queries=6)
    episode = sample_episode(labels, sampler, np.random.default_rng(seed))
    support, query = counts(labels, episode.support), counts(labels, episode.query)
    assert support.keys() == query.keys() and len(support) == ways and set(support.values()) == {shots}
    assert set(query.values()) == {min(6, min(sizes[c] for c in support) - shots)}


def test_varying_ways_reach_all_numbers():
    labels = labels_of([8] * 8)
    sampler = NWayKShot(varying=True, max_ways=7)
    random = np.random.default_rng(0)
    ways = {len(set(labels[sample_episode(labels, sampler, random).support])) for _ in range(60)}
    assert ways == {5, 6, 7}


@given(st.integers(2, 6), st.integers(6, 20), SEEDS, st.sampled_from([MetaDataset(min_ways=3), NWayKShot(ways=3, shots=2)]))
def test_no_patient_is_on_both_sides(images_of_each, num_groups, seed, sampler):
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(4), images_of_each * num_groups)
    groups = np.concatenate([c * 1000 + np.repeat(np.arange(num_groups), images_of_each) for c in range(4)])
    shuffled = random.permutation(len(labels))
    labels, groups = labels[shuffled], groups[shuffled]
    episode = sample_episode(labels, sampler, random, groups=groups)
    assert not set(groups[episode.support]) & set(groups[episode.query])
    support, query = counts(labels, episode.support), counts(labels, episode.query)
    assert support.keys() == query.keys() and len(set(query.values())) == 1
    assert min(support.values()) >= sampler.fewest_support


def test_patients_with_images_of_several_classes_are_on_one_side():
    labels = np.tile([0, 1, 2], 12)
    groups = np.repeat(np.arange(12), 3)  # one image of each class per patient
    for seed in range(20):
        random = np.random.default_rng(seed)
        episode = sample_episode(labels, NWayKShot(ways=3, shots=4, queries=5), random, groups=groups)
        assert not set(groups[episode.support]) & set(groups[episode.query])
        assert set(counts(labels, episode.query).values()) == {5}


def test_a_split_of_few_patients_is_found_where_there_is_one():
    """Every split is tried: queries are as many as any split has that leaves three images of each class."""
    labels, half = labels_of([6] * 4), NWayKShot(ways=4, shots=3, queries=3)
    masks = np.array(list(itertools.product([False, True], repeat=12)))
    outcomes = set()
    for seed in range(30):
        groups = np.random.default_rng(seed).integers(0, 2 + seed % 10, len(labels))
        on_query_side = masks @ np.array([np.bincount(labels[groups == each], minlength=4) for each in range(12)])
        leaves_enough = (on_query_side <= 3).all(axis=1)
        most = int(on_query_side[leaves_enough].min(axis=1).max())
        if most:
            episode = sample_episode(labels, half, np.random.default_rng(seed), groups=groups)
            assert not set(groups[episode.support]) & set(groups[episode.query])
            assert set(counts(labels, episode.query).values()) == {most}
            assert set(counts(labels, episode.support).values()) == {3}
        else:
            with pytest.raises(DataError, match=r"was found|images of two|query of other patients"):
                sample_episode(labels, half, np.random.default_rng(seed), groups=groups)
        outcomes.add(most)
    assert outcomes == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("patients", "shots", "num_query"),
    [
        (("aaaaaabbbbbb", "ccccccdddddd"), 5, 6),  # seven queries would leave five images of no class
        (("abbbbbb", "aaaaaab"), 1, 1),  # six of each class alone, but not together
    ],
)
def test_queries_are_fewer_where_patients_leave_no_more(patients, shots, num_query):
    groups, labels = np.array(list("".join(patients))), np.repeat([0, 1], [len(each) for each in patients])
    sampler = NWayKShot(ways=2, shots=shots)
    refuse_small_classes(labels, sampler, groups=groups)
    episode = sample_episode(labels, sampler, np.random.default_rng(0), groups=groups)
    assert set(counts(labels, episode.query).values()) == {num_query}
    assert set(counts(labels, episode.support).values()) == {shots}
    assert not set(groups[episode.support]) & set(groups[episode.query])


def test_classes_that_no_episode_can_have_are_named_before_one_is_drawn():
    labels = labels_of([9, 5, 9, 2])
    with pytest.raises(DataError, match=r"Too few images for an episode of .* have: 1 \(5\) and 3 \(2\)\. Leave"):
        refuse_small_classes(labels, NWayKShot(ways=2, shots=5))
    refuse_small_classes(labels, MetaDataset(min_ways=2))
    groups = np.arange(len(labels))
    refuse_small_classes(labels, NWayKShot(ways=2, shots=1), groups=groups)
    with pytest.raises(DataError, match=r"images of two; fewer have: 1 \(1\)"):
        refuse_small_classes(labels, NWayKShot(ways=2, shots=1), groups=np.where(labels == 1, -1, groups))
    two_patients = np.where(labels == 0, groups // 5, groups)  # of five and of four images
    refuse_small_classes(labels, NWayKShot(ways=2, shots=1), groups=two_patients)
    with pytest.raises(DataError, match=r"9 support images and one query .* too many for: 0 \(12 images of 3\) patients"):
        refuse_small_classes(np.zeros(12, int), NWayKShot(ways=2, shots=9), groups=np.repeat([0, 1, 2], 4))


def test_superclasses_are_not_mixed_and_small_ones_are_left_out():
    labels = labels_of([5] * 14)
    alphabets = np.array(["greek"] * 6 + ["latin"] * 6 + ["rare"] * 2)[labels]
    seen = set()
    for seed in range(30):
        episode = sample_episode(labels, MetaDataset(), np.random.default_rng(seed), superclasses=alphabets)
        found = set(alphabets[episode.support])
        assert len(found) == 1
        seen |= found
    assert seen == {"greek", "latin"}


def test_the_same_generator_gives_the_same_rows():
    labels = labels_of([9] * 6)
    first, again, other = (
        sample_episode(labels, MetaDataset(), np.random.default_rng(seed)).support.tolist() for seed in (0, 0, 1)
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("labels", "options", "said"),
    [
        ([0, 0, 1, 1], {"sampler": MetaDataset()}, "needs 5 classes, and there are 2"),
        ([0, 0, 1, 1, 2], {"sampler": MetaDataset(min_ways=3)}, "fewer than 2 images"),
        ([0, 0, 1, 1], {"sampler": NWayKShot(ways=2, shots=2)}, "has 2 images, too few for 2 support images"),
        ([0, 0, 1, 1], {"superclasses": [0, 0, 1, 1]}, "2 classes of one superclass; the largest, 0, has 1"),
        ([0, 0, 1, 1], {"superclasses": [0, 1, 1, 1]}, "Class 0 belongs to several superclasses"),
        ([0, 0, 1, 1], {"superclasses": [0, 1]}, "superclasses of shape"),
        ([0, 0, 1, 1], {"groups": ["a", "a", "b", "c"]}, r"images of two; fewer have: 0 \(1\)"),
        ([0, 0, 1, 1], {"groups": ["a", "b"]}, "groups of shape"),
        (
            [0] * 5 + [1] * 5,
            {"groups": list("aaabb" + "cdefg"), "sampler": NWayKShot(2, 4, 2)},
            r"4 support images and one query of other patients are too many for: 0 \(5 images of 2\) patients",
        ),
        (
            [0] * 4 + [1] * 4,
            {"groups": list("abbb" + "aaab"), "sampler": NWayKShot(2, 3, 2)},
            r"0 is short of patients \(4 images of 2\)",
        ),
    ],
)
def test_bad_input(labels, options, said):
    sampler = options.pop("sampler", NWayKShot(ways=2, shots=1, queries=1))
    options = {name: np.array(value) for name, value in options.items()}
    with pytest.raises(DataError, match=said):
        sample_episode(np.array(labels), sampler, np.random.default_rng(0), **options)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("meta_dataset:min_ways=1", "2 ≤ min_ways"),
        ("meta_dataset:min_ways=9,max_ways=8", "2 ≤ min_ways ≤ max_ways"),
        ("meta_dataset:max_query=0", "at least 1"),
        ("meta_dataset:max_support=10", "max_support ≥ max_ways"),
        ("n_way_k_shot:1", "at least 2 ways"),
        ("n_way_k_shot:shots=0", "1 shot"),
        ("n_way_k_shot:ways=60,varying=true", "below its ways"),
    ],
)
def test_options_out_of_range(text, said):
    with pytest.raises(UsageError, match=said):
        choose(SAMPLERS, text)


@pytest.mark.parametrize("sampler", [MetaDataset(min_ways=3), NWayKShot(5, 1, varying=True)])
def test_a_sampler_can_be_written_as_text(sampler):
    assert choose(SAMPLERS, spell(sampler)) == sampler


def test_small_classes_of_superclasses_that_are_drawn_are_named():
    """Those of a superclass with too few classes for an episode are in none."""
    sizes = {"a1": 9, "a2": 9, "rare": 1, "b1": 9, "b2": 9, "alone": 1}
    labels = np.repeat(list(sizes), list(sizes.values()))
    superclasses = np.repeat(["A", "A", "A", "B", "B", "C"], list(sizes.values()))
    sampler = MetaDataset(min_ways=2)
    with pytest.raises(DataError, match=r"have: rare \(1\)\. Leave"):
        refuse_small_classes(labels, sampler, superclasses=superclasses)
    kept = labels != "rare"
    refuse_small_classes(labels[kept], sampler, superclasses=superclasses[kept])
    groups = np.where(labels == "b2", 0, np.arange(len(labels)))
    with pytest.raises(DataError, match=r"fewer have: b2 \(1\)"):
        refuse_small_classes(labels[kept], sampler, groups=groups[kept], superclasses=superclasses[kept])


@pytest.mark.parametrize("has_groups", [False, True])
def test_a_class_that_is_too_small_for_its_episode_is_named(has_groups):
    labels = np.array(["a"] * 5 + ["rare"])
    groups = np.arange(6) if has_groups else None
    with pytest.raises(DataError, match="Class rare: A class has fewer than 2 images"):
        sample_episode(labels, MetaDataset(min_ways=2), np.random.default_rng(0), groups=groups)


@pytest.mark.parametrize(
    ("made", "options"),
    [(NWayKShot, {"ways": "3"}), (NWayKShot, {"ways": 2.5}), (NWayKShot, {"shots": True}), (MetaDataset, {"max_query": 1.5})],
)
def test_numbers_of_samplers_are_whole(made, options):
    ((name, value),) = options.items()
    with pytest.raises(UsageError, match=re.escape(f"{name} of {made.name} must be a whole number, got {value!r}")):
        made(**options)
    assert NWayKShot(ways=np.int64(3)).ways == 3
