"""Leaving rows out by update gives what the rows that are left give by themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from crossgraft.scores import SCORES, ScoreInputs, ZooScore, leep, nce

BY_UPDATE = (
    *("nce", "leep", "logme", "h_score", "regularized_h_score", "gbc", "sfda", "energy", "etran", "ncti", "transrate", "lfc"),
    "knn_probe",
)


def numbers(name, inputs):
    score = SCORES.get(name)
    if isinstance(score, ZooScore):
        return score.parts(inputs)
    value = score.evaluate(inputs)
    return {"value": float(value), **value.parts}


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    num=st.integers(24, 70),
    width=st.sampled_from([3, 12, 90]),
    num_classes=st.integers(2, 5),
    share=st.sampled_from([0.05, 0.2]),
    twice=st.booleans(),
)
@example(seed=0, num=40, width=90, num_classes=3, share=0.05, twice=True)
def test_rows_left_out_by_update_are_as_if_they_had_never_been_there(seed, num, width, num_classes, share, twice):
    rng = np.random.default_rng(seed)
    labels = rng.integers(num_classes, size=num)
    features = rng.standard_normal((num, width)) + rng.standard_normal((num_classes, width))[labels] + 2
    logits = 2 * rng.standard_normal((num, 6))
    removed = rng.choice(num, max(1, int(share * num)), replace=False)
    kept = np.delete(np.arange(num), removed)
    assume(np.bincount(labels[kept], minlength=num_classes).min() > 1)
    shared = ScoreInputs(features=features, labels=labels, source_logits=logits)
    for name in BY_UPDATE:
        numbers(name, shared)  # what it may remember, it now remembers
    halves = np.array_split(np.sort(removed), 2) if twice else [removed]
    smaller = shared.without(halves[0])
    if twice:
        smaller = smaller.without(halves[1] - np.searchsorted(np.sort(halves[0]), halves[1]))
    fresh = ScoreInputs(features=features[kept], labels=labels[kept], source_logits=logits[kept])
    for name in BY_UPDATE:
        updated, literal = numbers(name, smaller), numbers(name, fresh)
        for part, value in literal.items():
            if part in ("miss", "iterations"):  # 1 − hit without cancellation, and how often Newton's method stepped
                continue
            assert math.isclose(updated[part], value, rel_tol=1e-9, abs_tol=1e-9 * max(1.0, abs(literal.get("value", 1)))), (
                name,
                part,
            )


@pytest.mark.parametrize("score", [leep, nce], ids=lambda score: score.name)
def test_what_follows_from_the_logits_of_one_image_is_computed_once(score):
    labels, logits = np.arange(30) % 3, np.random.default_rng(0).standard_normal((30, 5))
    inputs = ScoreInputs(labels=labels, source_logits=logits)
    score.evaluate(inputs)
    without, mixed = inputs.without(np.arange(5)), inputs.with_labels(labels[::-1])
    logits[:] = np.nan  # the array of the caller; whoever looks at it again gets no number
    known = np.random.default_rng(0).standard_normal((30, 5))
    assert score.evaluate(without) == score(known[5:], labels[5:])
    assert score.evaluate(mixed) == score(known, labels[::-1])
