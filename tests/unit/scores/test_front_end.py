from __future__ import annotations

import numpy as np
import pytest

from crossgraft.errors import DataError
from crossgraft.scores._inputs import float_matrix, map_groups, map_labels, require_equal_rows


@pytest.mark.parametrize(
    ("given", "expected"),
    [("float16", "float32"), ("float32", "float32"), ("float64", "float64"), ("int32", "float64"), ("bool", "float64")],
)
def test_dtypes(given, expected):
    assert float_matrix("features", np.ones((2, 3), dtype=given)).dtype == expected


def test_long_double_becomes_float64():
    assert float_matrix("features", np.ones((2, 3), dtype=np.longdouble)).dtype == np.float64


def test_float32_is_not_copied():
    features = np.ones((4, 3), dtype=np.float32)
    assert np.shares_memory(float_matrix("features", features), features)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite_names_array_and_row(bad):
    values = np.ones((5, 3))
    values[3, 1] = bad
    with pytest.raises(DataError, match=r"`source_logits` contains NaN or infinity in 1 of 5 rows, first in row 3"):
        float_matrix("source_logits", values)


def test_infinities_of_both_signs_do_not_cancel():
    with pytest.raises(DataError, match="in 2 of 2 rows"):
        float_matrix("features", [[np.inf, 0.0], [-np.inf, 0.0]])


def test_large_finite_values_pass_although_their_sum_overflows():
    values = np.full((8, 2), 3e38, dtype=np.float32)
    assert float_matrix("features", values) is not None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones(3), "two axes"),
        (np.ones((0, 3)), "empty"),
        (np.ones((2, 2), dtype=complex), "real numbers"),
        (np.array([["a"], ["b"]]), "real numbers"),
    ],
)
def test_malformed_matrices(values, message):
    with pytest.raises(DataError, match=message):
        float_matrix("features", values)


@pytest.mark.parametrize(
    "labels", [[7, 3, 7, 9], ["b", "a", "b", "c"], [2.0, 1.0, 2.0, 5.0], np.array(["b", "a", "b", "c"], dtype=object)]
)
def test_labels_are_mapped_in_sorted_order(labels):
    mapped = map_labels(labels)
    assert mapped.indices.tolist() == [1, 0, 1, 2]
    assert mapped.names.tolist() == sorted(set(np.asarray(labels).tolist()))


def test_boolean_labels():
    assert map_labels([True, False]).indices.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0.5, 1.0, 2.0], r"measured values, not classes \(0.5 in row 0\).*bin the values"),
        ([0.0, np.nan, 1.0], "missing or infinite in row 1"),
        ([1, 1, 1], "All 3 labels are .*1.*at least 2 classes"),
        ([1], "1 rows"),
        ([[0, 1], [1, 0]], "one axis"),
        (np.array([1, "a", None], dtype=object), r"mixes types.*NoneType, int, str"),
        (np.array([1j, 2j]), "integers, strings or booleans"),
    ],
)
def test_malformed_labels(labels, message):
    with pytest.raises(DataError, match=message):
        map_labels(labels)


def test_groups_are_mapped():
    assert map_groups(["p2", "p1", "p2"]).tolist() == [1, 0, 1]


@pytest.mark.parametrize("groups", [[["a"], ["b"]], np.array(["a", 1], dtype=object)])
def test_malformed_groups(groups):
    with pytest.raises(DataError, match="`groups`"):
        map_groups(groups)


def test_lengths_must_match():
    with pytest.raises(DataError, match="`features` has 3, `labels` has 2 rows"):
        require_equal_rows({"features": 3, "labels": 2})
    require_equal_rows({"features": 3, "labels": 3})
