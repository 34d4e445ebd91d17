"""Shapes and types of signatures are checked in every test but the slow ones."""

import jaxtyping
import numpy as np
import pytest
from beartype import beartype
from jaxtyping import Float, TypeCheckError

from crossgraft.data.fingerprint import dataset_fingerprint
from crossgraft.scores._inputs import Standardization
from crossgraft.similarity._sums import Product


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
