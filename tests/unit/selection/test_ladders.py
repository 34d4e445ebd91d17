"""Looks ahead: a cheap look at many is worth what the best of them gain when they go on."""

import numpy as np
import pytest

from crossgraft.rank.foresight import NextLook
from crossgraft.selection import Action, TrialPlan
from crossgraft.selection.ladders import best_rung
from crossgraft.selection.state import State
from crossgraft.selection.value import Finishable, expected_gain
from support.beliefs import plain_belief

MODELS = tuple("abcdefgh")
NOISE = {"low:size": 1.0, "full": 0.05}


def decided(seconds, *, noise=NOISE, cheap=1.0):
    costs = {Action(m, kind): cost for m in MODELS for kind, cost in (("low:size=0.5", cheap), ("full", 20.0))}
    belief = plain_belief(dict.fromkeys(MODELS, 0.0), noise=noise)
    return best_rung(State(TrialPlan(costs, {}), seconds), MODELS, belief.foresight(), least=1e-3, seed=0)


def test_a_ladder_is_worth_what_drawing_it_out_gives():
    """One after the other: eight independent models looked at cheaply, the best two again, the best of all handed over."""
    belief = plain_belief(dict.fromkeys(MODELS, 0.0), noise=NOISE)
    every = np.ones(len(MODELS), dtype=bool)
    looks = [NextLook("low:size=0.5", tuple(range(8)), None), NextLook("full", tuple(range(8)), None)]
    found = expected_gain(belief, looks, [8, 2], Finishable(every, every, every), seed=0)
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((4000, 8))
    cheap = (truth + rng.standard_normal((4000, 8))) / 2  # posterior means with noise as large as the spread
    two = np.argsort(-cheap, axis=1)[:, :2]
    full = np.take_along_axis(truth, two, axis=1) + 0.05 * rng.standard_normal((4000, 2))
    left = np.sort(cheap, axis=1)[:, -3]
    assert found == pytest.approx(np.maximum(full.max(axis=1), left).mean(), rel=0.06)


def test_a_cheap_look_at_many_comes_first_where_two_can_be_finished():
    decision = decided(48.0)
    assert decision.rung.kind == "low:size=0.5" and len(decision.rung.models) >= 6
    assert decided(48.0, noise={**NOISE, "low:size": np.inf}).rung.kind == "full"


def test_it_fits_into_the_budget_and_leaves_one_training():
    assert decided(20.0) is None  # nothing but the one training fits
    few = decided(23.0)
    assert few.rung.kind == "low:size=0.5" and few.seconds <= 3.0
    assert decided(19.0) is None  # no training can be finished
