"""Classes in the order people expect."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.data.class_names import index_classes, name_classes, natural_key
from crossgraft.errors import DataError


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["10", "9", "1"], ("1", "9", "10")),
        (["grade 10", "grade 2"], ("grade 2", "grade 10")),
        (["b", "A", "a"], ("A", "a", "b")),
        ([3, -1, 20], ("-1", "3", "20")),
        ([True, False], ("False", "True")),
    ],
)
def test_order_of_classes(labels, names):
    assert index_classes(np.array(labels))[0] == names


def test_targets_are_places_in_the_list_of_classes():
    names, targets = index_classes(np.array(["10", "2", "10"]))
    assert names == ("2", "10")
    assert targets.tolist() == [1, 0, 1]


def test_numbers_take_the_names_they_are_given():
    names, targets = index_classes(np.array([2, 0]), ["cat", "dog", "bird"])
    assert names == ("cat", "bird")
    assert targets.tolist() == [1, 0]


@given(st.lists(st.text(max_size=8)))
def test_any_words_can_be_sorted(words):
    backwards = words[::-1]
    assert sorted(words, key=natural_key) == sorted(backwards, key=natural_key)


@pytest.mark.parametrize("labels", [[0.0, np.nan, 1.0], [[0.0, 1.0], [1.0, np.nan]]])
def test_nan_is_no_class(labels):
    with pytest.raises(DataError, match=r"1 of [23] labels are NaN, the first in row 2\."):
        name_classes(np.array(labels), None, None)
