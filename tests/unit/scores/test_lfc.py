from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.scores import lfc

from .conftest import make_problem


def literal(features, labels, centring):
    features_gram = features @ features.T
    labels_gram = np.where(labels[:, None] == labels, 1.0, -1.0)
    if centring == "rows":
        keep = np.eye(len(labels)) - 1 / len(labels)
        features_gram, labels_gram = keep @ features_gram @ keep, keep @ labels_gram @ keep
    else:
        features_gram, labels_gram = features_gram - features_gram.mean(), labels_gram - labels_gram.mean()
    return (features_gram * labels_gram).sum() / np.linalg.norm(features_gram) / np.linalg.norm(labels_gram)


@pytest.mark.parametrize("centring", ["rows", "entries"])
def test_is_the_cosine_of_both_matrices(problem, centring):
    features, labels = problem
    value = lfc(features=features, labels=labels, centring=centring)
    assert value == pytest.approx(literal(features, labels, centring), rel=1e-9)


def test_entries_give_the_correlation_coefficient(problem):
    features, labels = problem
    same = np.where(labels[:, None] == labels, 1.0, -1.0)
    expected = np.corrcoef((features @ features.T).ravel(), same.ravel())[0, 1]
    assert lfc(features=features, labels=labels, centring="entries") == pytest.approx(expected, rel=1e-9)


def test_features_that_are_the_labels_have_the_value_one():
    labels = np.array([0, 0, 1, 1, 2, 2, 2])
    assert lfc(features=np.eye(3)[labels], labels=labels) == pytest.approx(1)


@settings(max_examples=30)
@given(st.integers(0, 999), st.integers(2, 6))
def test_lies_between_zero_and_one(seed, num_classes):
    features, labels = make_problem(24, 5, num_classes, seed=seed)
    assert -1e-12 <= lfc(features=features, labels=labels) <= 1 + 1e-12
