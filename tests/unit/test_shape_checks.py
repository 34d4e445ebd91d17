"""Shapes and types of signatures are checked in every test but the slow ones."""

from collections.abc import Iterator

import jaxtyping
import numpy as np
import pytest
from beartype import beartype
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Float, TypeCheckError

from crossgraft.data.fingerprint import dataset_fingerprint
from crossgraft.scores._inputs import Standardization
from crossgraft.similarity._sums import Product
from support import late_checks
from support.type_checking import typechecked


def test_a_wrong_type_is_caught():
    with pytest.raises(TypeCheckError):
        dataset_fingerprint([b"1"], [0], None)


def test_wrong_shapes_are_caught_inside_similarity():
    assert Product(np.zeros((3, 2)), 0.0, np.zeros(3), np.zeros(2)).norms == 0
    with pytest.raises(TypeCheckError):
        Product(np.zeros((3, 2)), 0.0, np.zeros(2), np.zeros(3))


def test_a_named_tuple_is_caught_with_a_wrong_type_or_with_shapes_that_differ():
    mean, scale = np.zeros(3), np.ones(3)
    assert Standardization(mean, scale).scale is scale
    with pytest.raises(TypeCheckError):
        Standardization(mean.astype(np.float32), scale)
    with pytest.raises(TypeCheckError):
        Standardization(mean, np.ones(4))
    with pytest.raises(TypeCheckError):
        Standardization(mean, scale=[1.0, 1.0, 1.0])


def scaling(factor):
    """As the import hook decorates a function that another one defines."""

    @jaxtyping.jaxtyped(typechecker=beartype)
    def scaled(values: Float[np.ndarray, " n"], offsets: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return (values + offsets) * factor if factor else 0

    return scaled


def test_a_function_inside_a_function_is_checked_each_time_it_is_defined():
    for factor in (2, 3):
        scaled = scaling(factor)
        assert scaled(np.ones(2), offsets=np.zeros(2)).tolist() == [factor, factor]
        with pytest.raises(TypeCheckError, match="parameters of"):
            scaled(np.ones(2), np.zeros(3))
    with pytest.raises(TypeCheckError, match="return value"):
        scaling(0)(np.ones(2), np.zeros(2))


def with_shapes(first: Float[np.ndarray, " n"], second: Float[np.ndarray, "n m"]) -> Float[np.ndarray, " m"]:
    return first @ second


def with_another_shape(first: Float[np.ndarray, " n"], length: int = 2) -> Float[np.ndarray, " n"]:
    return np.ones(length)


def with_a_size(first: Float[np.ndarray, " n"], length: int = 2) -> Float[np.ndarray, " {length}"]:
    return np.ones(len(first))


def with_types(first: int, second: "float | None" = None, *more: str, last: bool = True) -> "list[int]":
    return [first] if second is None else [second]


def with_parts(first: "list[Float[np.ndarray, ' n']]") -> Iterator[int]:
    yield from range(len(first))


def with_nothing(first, second=1):
    return first


VALUES = (1, 2.0, None, "a", True, np.ones(2), np.ones(3), np.ones((2, 3)), np.ones(2, dtype=np.int64), [np.ones(2)], [1])
ALL = (with_shapes, with_another_shape, with_a_size, with_types, with_parts, with_nothing)


def outcome(call, arguments):
    try:
        return repr(call(*arguments)).partition(" at ")[0]
    except (TypeError, ValueError) as error:
        return TypeError if isinstance(error, TypeError) else ValueError


@given(st.sampled_from(ALL), st.lists(st.sampled_from(VALUES), max_size=3))
def test_the_short_checks_find_what_those_of_jaxtyping_find(function, arguments):
    short, whole = (check(function, typechecker=typechecked) for check in (late_checks.jaxtyped, late_checks._of_jaxtyping))
    assert outcome(short, arguments) == outcome(whole, arguments)


def test_a_function_without_shapes_names_what_is_wrong():
    checked = late_checks.jaxtyped(with_types, typechecker=typechecked)
    assert checked(1) == [1] and checked.__name__ == "with_types"
    with pytest.raises(TypeCheckError, match=r"with_types[\s\S]*parameter 'first'"):
        checked("a")
    with pytest.raises(TypeCheckError, match=r"return value of .*with_types"):
        checked(1, 0.5)


@pytest.mark.slow
def test_a_slow_test_goes_without():
    assert scaling(0)(np.ones(2), np.zeros(3)[:1]) == 0
    with pytest.raises(AttributeError, match="ndim"):
        dataset_fingerprint([b"1"], [0], None)
    assert len(dataset_fingerprint([b"1"], np.zeros(1), None)) == 64


@pytest.mark.slow
@pytest.mark.real_data
def test_real_data_are_looked_at_closely():
    with pytest.raises(TypeCheckError):
        dataset_fingerprint([b"1"], [0], None)


def test_an_audit_is_checked_too_and_an_int_is_a_float():
    from crossgraft.audit.fold_scores import micro_auc
    from crossgraft.edit.confounders import Gamma

    with pytest.raises(jaxtyping.TypeCheckError):
        micro_auc(np.ones(1), np.ones(2, dtype=np.int64))
    assert Gamma(2).gamma == 2
