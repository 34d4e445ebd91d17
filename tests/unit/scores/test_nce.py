from __future__ import annotations

import math

import numpy as np
import pytest

from crossgraft.scores import nce


def literal(logits, labels):
    """−H(y | z), cell by cell."""
    predicted = logits.argmax(axis=1)
    total = 0.0
    for target in np.unique(labels):
        for source in np.unique(predicted):
            joint = np.mean((labels == target) & (predicted == source))
            if joint > 0:
                total += joint * math.log(joint / np.mean(predicted == source))
    return total


@pytest.mark.parametrize("num_source_classes", [1, 4, 50])
def test_equals_the_definition(num_source_classes):
    rng = np.random.default_rng(num_source_classes)
    labels = rng.integers(0, 3, 80)
    logits = rng.standard_normal((80, num_source_classes))
    assert nce(source_logits=logits, labels=labels) == pytest.approx(literal(logits, labels), abs=1e-14)


def test_one_source_class_leaves_the_whole_entropy():
    labels = np.array([0] * 30 + [1] * 10)
    value = nce(source_logits=np.zeros((40, 1)), labels=labels)
    assert value == pytest.approx(0.75 * math.log(0.75) + 0.25 * math.log(0.25))


def test_logits_and_probabilities_give_the_same():
    rng = np.random.default_rng(0)
    logits, labels = rng.standard_normal((60, 5)), rng.integers(0, 2, 60)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert nce(source_logits=logits, labels=labels) == nce(source_logits=probabilities, labels=labels)
