from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.errors import NotApplicable
from crossgraft.scores import ScoreInputs, leep


def literal_leep(logits, labels, *, log=True):
    """Equations 1 and 2 of the paper, one sum at a time."""
    num_samples, num_source = logits.shape
    theta = np.array([np.exp(row) / np.exp(row).sum() for row in logits])
    predicted = np.zeros(num_samples)
    for z in range(num_source):
        marginal = sum(theta[i, z] for i in range(num_samples)) / num_samples
        for y in set(labels):
            joint = sum(theta[i, z] for i in range(num_samples) if labels[i] == y) / num_samples
            for i in range(num_samples):
                if labels[i] == y:
                    predicted[i] += joint / marginal * theta[i, z]
    return np.mean(np.log(predicted)) if log else np.mean(predicted)


@given(seed=st.integers(0, 10_000), num_classes=st.integers(2, 4), num_source=st.integers(1, 6), log=st.booleans())
@settings(max_examples=25, deadline=None)
def test_equals_the_definition(seed, num_classes, num_source, log):
    rng = np.random.default_rng(seed)
    labels = np.arange(15) % num_classes
    logits = 3 * rng.standard_normal((15, num_source))
    value = leep(source_logits=logits, labels=labels, log=log)
    assert value == pytest.approx(literal_leep(logits, labels, log=log), rel=1e-10)
    assert value <= 1e-12 if log else 0 < value <= 1 + 1e-12


def test_one_source_class_says_nothing():
    labels = [0, 0, 0, 1]
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    assert leep(source_logits=np.ones((4, 1)), labels=labels) == pytest.approx(-entropy)


def test_source_classes_without_mass_and_huge_logits_stay_finite():
    logits = np.array([[1e4, 0.0, -1e4], [0.0, 1e4, -1e4], [1e4, 0.0, -1e4], [0.0, 1e4, -1e4]])
    assert leep(source_logits=logits, labels=[0, 1, 0, 1]) == 0.0
    assert leep(source_logits=logits, labels=[0, 1, 0, 1], log=False) == 1.0


def test_model_without_a_head():
    with pytest.raises(NotApplicable, match="LEEP needs source logits, and this model has no classification head"):
        leep.evaluate(ScoreInputs(features=np.eye(4), labels=[0, 1, 0, 1]))
