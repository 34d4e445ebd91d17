"""Shapes and types of signatures are checked in every test but the slow ones."""

import numpy as np
import pytest
from jaxtyping import TypeCheckError

from crossgraft.data.fingerprint import dataset_fingerprint
from crossgraft.scores._standardize import Standardization
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


@pytest.mark.slow
def test_a_slow_test_goes_without():
    with pytest.raises(AttributeError, match="ndim"):
        dataset_fingerprint([b"1"], [0], None)
    assert len(dataset_fingerprint([b"1"], np.zeros(1), None)) == 64


@pytest.mark.slow
@pytest.mark.real_data
def test_real_data_are_looked_at_closely():
    with pytest.raises(TypeCheckError):
        dataset_fingerprint([b"1"], [0], None)
