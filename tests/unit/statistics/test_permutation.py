import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.seeding import generator
from crossgraft.statistics import shuffle_labels


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=2, max_size=60), st.integers(0, 99))
def test_shuffled_labels_are_the_same_labels(rows, seed):
    targets, groups = np.array(rows).T
    for given_groups in (None, groups):
        shuffled = shuffle_labels(targets, given_groups, generator(seed))
        assert sorted(shuffled) == sorted(targets)


def test_labels_of_one_patient_stay_together():
    groups = np.random.default_rng(0).permutation(np.repeat([f"patient {i}" for i in range(30)], 4))
    label_of = {name: i % 3 for i, name in enumerate(sorted(set(groups)))}
    targets = np.array([label_of[name] for name in groups])
    shuffled = shuffle_labels(targets, groups, generator(0))
    assert all(len(set(shuffled[groups == name])) == 1 for name in label_of)
    assert 0.1 < np.mean(shuffled == targets) < 0.6  # a third is expected


def test_labels_that_differ_within_a_group_are_shuffled_within_it():
    groups = np.repeat(np.arange(10), 20)  # every writer wrote 0 … 4, 0 … 4 and so on
    targets = np.tile(np.arange(5), 40)
    shuffled = shuffle_labels(targets, groups, generator(0))
    assert 0.1 < np.mean(shuffled == targets) < 0.3  # a fifth is expected
    assert (np.bincount(shuffled[groups == 3]) == 4).all()


def test_without_groups_every_row_moves_on_its_own():
    targets = np.arange(50) % 5
    np.testing.assert_array_equal(shuffle_labels(targets, None, generator(4)), generator(4).permutation(targets))
