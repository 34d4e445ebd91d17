"""A similarity that the kept epoch is to have, and the strength of what keeps it."""

import math

import pytest
import torch

from crossgraft.errors import UsageError
from crossgraft.tune.engine.keep import Keep
from crossgraft.tune.regularizers import BSS, DELTA, L2SP, RepSim
from support.training import DoubleFeed, largest_difference, same_bits, train_one


@pytest.mark.parametrize("target", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_a_target_is_a_similarity_between_0_and_1(target):
    with pytest.raises(UsageError, match=r"--keep is a similarity between 0 and 1, for example 0\.8; found"):
        Keep.of(target, adapted=False)


def test_it_looks_at_the_network_that_training_starts_from():
    assert Keep.of(0.8, adapted=False) == Keep(0.8, "cka_debiased")
    assert Keep.of(0.8, adapted=True) == Keep(0.8, "cka_debiased_adapted")


@pytest.mark.parametrize(
    ("found", "miss"),
    [(0.8, 0), (0.775, 0), (0.825, 0), (0.76, 0.04), (0.84, 0.04), (-0.2, 1.0), (1.0, 0.2), (math.nan, math.inf)],
)
def test_what_is_within_the_tolerance_is_reached(found, miss):
    assert Keep(0.8).miss({"cka_debiased": found, "cka_debiased_adapted": 0.1}) == pytest.approx(miss)


def test_what_was_not_measured_is_missed():
    assert Keep(0.8).miss({}) == math.inf


class Told:
    """An evaluation that says what it is told."""

    def __init__(self, similarities, losses=None):
        self.similarities = list(similarities)
        self.losses = list(losses or [1.0] * len(self.similarities))
        self.seen = []

    def __call__(self, classifier):
        number = len(self.seen)
        self.seen.append(classifier.head.weight.clone())
        return {"loss": self.losses[number], "cka_debiased": self.similarities[number]}


NAN = math.nan


@pytest.mark.parametrize(
    ("similarities", "losses", "best"),
    [
        ([0.5, 0.81, 0.79, 0.6], [0.1, 0.5, 0.4, 0.0], 2),  # of those that reach it the best
        ([0.5, 0.81, 0.79, 0.8], [0.1, 0.4, 0.4, 0.9], 1),  # the first of equal ones
        ([0.5, 0.7, 0.95, 0.6], [0.1, 0.9, 0.2, 0.0], 1),  # the nearest, where none does
        ([NAN, 0.3, NAN, 0.2], [0.1, 0.9, 0.0, 0.0], 1),
        ([NAN, NAN, NAN, NAN], [0.3, 0.2, 0.9, 0.2], 1),
    ],
)
def test_the_epoch_that_is_kept_is_one_that_keeps_enough_and_of_those_the_best(similarities, losses, best):
    told = Told(similarities, losses)
    classifier, result = train_one("plain", evaluate=told, keep=Keep(0.8), regularizers=[RepSim()], epochs=4)
    assert result.best_epoch == best and result.best_value == losses[best]
    assert torch.equal(classifier.head.weight, told.seen[best])
    without = Told(similarities, losses)
    _, free = train_one("plain", evaluate=without, epochs=4)
    assert free.best_epoch == losses.index(min(losses))


class Watched(RepSim):
    """Remembers the strength that each step was told."""

    def after_step(self, update):
        super().after_step(update)
        self.told = [*getattr(self, "told", []), update.strength]


def test_the_head_alone_is_picked_by_the_rule():
    told, losses = [0.1, 0.8, 0.8, 0.2], [0.1, 0.9, 0.5, 0.4]
    common = {"head_first": True, "head_epochs": 2, "head_patience": 9, "epochs": 2}
    _, result = train_one("plain", evaluate=Told(told, losses), keep=Keep(0.8), regularizers=[RepSim()], **common)
    assert [row.phase for row in result.history] == ["head", "head", "all", "all"]
    assert [row.is_best for row in result.history] == [True, False, True, False]


def test_the_strength_is_told_after_each_step():
    watched = Watched()
    train_one("plain", regularizers=[watched], epochs=1, strength=0.3)
    assert set(watched.told) == {0.3}


@pytest.mark.parametrize(
    ("weaker", "stronger"),
    [
        (L2SP(0.05, 0.02), L2SP(0.35, 0.14)),
        (L2SP(0.5, 0.2, decoupled=True), L2SP(3.5, 1.4, decoupled=True)),
        (RepSim(0.3), RepSim(2.1)),
        (RepSim(0.3, mode="covariance"), RepSim(2.1, mode="covariance")),
        (DELTA(0.01, 0.02), DELTA(0.07, 0.14)),
    ],
    ids=["l2_sp", "decoupled", "repsim", "covariance", "delta"],
)
def test_a_strength_is_a_factor_of_the_weight_and_terms_are_told_without_it(weaker, stronger):
    common = {"feed": DoubleFeed(), "precision": "64-true", "epochs": 1}
    expected, whole = train_one("plain", regularizers=[stronger], **common)
    plain, _ = train_one("plain", regularizers=[weaker], **common)
    found, result = train_one("plain", regularizers=[weaker], **common, strength=7.0)
    assert largest_difference(found, expected) < 1e-12 < 1e-6 < largest_difference(found, plain)
    for name, term in result.history[0].terms.items():
        factor = 7 if "/" in name else 1
        assert factor * term == pytest.approx(whole.history[0].terms[name], rel=1e-9)
    assert any("/" in name and term > 0 for name, term in result.history[0].terms.items())


def test_what_compares_with_nothing_is_as_strong_as_it_says():
    class Told(BSS):
        def after_step(self, update):
            assert update.strength == 1

    common = {"epochs": 1, "regularizers": [Told(0.3)]}
    plain, _ = train_one("plain", **common)
    assert same_bits(train_one("plain", **common, strength=7.0)[0], plain)
