"""How strong a regulariser has to be, from how alike features are: the controller, and a training that follows it."""

import math

import pytest
import torch

from crossgraft.errors import UsageError
from crossgraft.tune.engine.keep import TOLERANCE, Keep
from crossgraft.tune.engine.step import TrainingStep
from crossgraft.tune.regularizers import BSS, DELTA, L2SP, RepSim
from support.training import DoubleFeed, largest_difference, same_bits, similarity_evaluation, train_one


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


LOST = [
    # strength, similarity before and now → the strength of the next epoch, for a target of 0.8
    (1.0, 0.8, 0.8, 1.0),  # there, and still
    (3.0, 0.8, 0.8, 3.0),
    (1.0, 0.75, 0.75, math.exp(10 * 0.05)),  # missing 0.05, lost nothing
    (1.0, 0.85, 0.85, math.exp(-10 * 0.05)),
    (1.0, 0.85, 0.8, math.exp(10 * 0.05)),  # there, but falling
    (2.0, 0.7, 0.8, 2 * math.exp(-10 * 0.1)),  # there, but rising
    (1.0, 0.7, 0.75, 1.0),  # rises as fast as it is missing
    (1.0, 1.0, 0.5, 10.0),  # never faster than tenfold an epoch
    (1.0, 0.2, 1.0, 0.1),
    (5000.0, 0.2, 0.2, 1e4),  # within bounds
    (0.0005, 1.0, 1.0, 1e-4),
]


@pytest.mark.parametrize(("strength", "before", "now", "expected"), LOST)
def test_the_next_strength_by_hand(strength, before, now, expected):
    found = Keep(0.8).next_strength(strength, {"cka_debiased": now}, before)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("before", [0.2, 0.8, 1.0])
@pytest.mark.parametrize("metrics", [{"cka_debiased": math.nan}, {}])
def test_where_it_is_not_defined_the_strength_stays(metrics, before):
    assert Keep(0.8).next_strength(3.0, metrics, before) == 3.0
    assert Keep(0.8).similarity(metrics, 0.4) == 0.4


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
    assert [row.strength for row in free.history] == [1.0] * 4


def test_each_epoch_is_trained_with_the_strength_that_those_before_it_call_for():
    similarities, keep = [0.6, 0.7, NAN, 0.9], Keep(0.8)
    _, result = train_one("plain", evaluate=Told(similarities), keep=keep, regularizers=[RepSim()], epochs=4)
    first = 1.0
    second = keep.next_strength(first, {"cka_debiased": 0.6}, 1.0)
    third = keep.next_strength(second, {"cka_debiased": 0.7}, 0.6)
    assert [row.strength for row in result.history] == [first, second, third, third]
    assert len({first, second, third}) == 3


class Watched(RepSim):
    """Remembers the strength that each step was told."""

    def after_step(self, update):
        super().after_step(update)
        self.told = [*getattr(self, "told", []), update.strength]


def test_the_head_alone_has_no_strength():
    told, watched = Told([0.5, 0.9, 0.6, 0.7]), Watched()
    common = {"head_first": True, "head_epochs": 2, "head_patience": 9, "epochs": 2}
    _, result = train_one("plain", evaluate=told, keep=Keep(0.8), regularizers=[watched], **common)
    assert [row.phase for row in result.history] == ["head", "head", "all", "all"]
    assert [row.strength for row in result.history[:3]] == [1.0] * 3
    expected = Keep(0.8).next_strength(1.0, {"cka_debiased": 0.6}, 1.0)
    assert result.history[3].strength == expected != 1.0
    assert watched.told == [1.0] * 3 + [expected] * 3
    _, free = train_one("plain", evaluate=Told([0.5, 0.9, 0.6, 0.7]), regularizers=[RepSim()], **common)
    assert [row.terms for row in free.history[:3]] == [row.terms for row in result.history[:3]]


@pytest.fixture
def as_strong_as(monkeypatch):
    """Every step of trainings is made with a strength that a test chooses."""
    run = TrainingStep.run

    def choose(strength):
        monkeypatch.setattr(TrainingStep, "run", lambda self, batch, step, _strength: run(self, batch, step, strength))

    return choose


@pytest.mark.parametrize(
    ("weaker", "stronger"),
    [
        (L2SP(0.05, 0.02), L2SP(0.35, 0.14)),
        (L2SP(0.5, 0.2, decoupled=True), L2SP(3.5, 1.4, decoupled=True)),
        (RepSim(0.3), RepSim(2.1)),
        (RepSim(0.3, mode="gram"), RepSim(2.1, mode="gram")),
        (DELTA(0.01, 0.02), DELTA(0.07, 0.14)),
    ],
    ids=["l2_sp", "decoupled", "repsim", "gram", "delta"],
)
def test_a_strength_is_a_factor_of_the_weight_and_terms_are_told_without_it(as_strong_as, weaker, stronger):
    common = {"feed": DoubleFeed(), "precision": "64-true", "epochs": 1}
    as_strong_as(1.0)
    expected, whole = train_one("plain", regularizers=[stronger], **common)
    plain, _ = train_one("plain", regularizers=[weaker], **common)
    as_strong_as(7.0)
    found, result = train_one("plain", regularizers=[weaker], **common)
    assert largest_difference(found, expected) < 1e-12 < 1e-6 < largest_difference(found, plain)
    for name, term in result.history[0].terms.items():
        factor = 7 if "/" in name else 1
        assert factor * term == pytest.approx(whole.history[0].terms[name], rel=1e-9)
    assert any("/" in name and term > 0 for name, term in result.history[0].terms.items())


def test_what_compares_with_nothing_is_as_strong_as_it_says(as_strong_as):
    class Told(BSS):
        def after_step(self, update):
            assert update.strength == 1

    common = {"epochs": 1, "regularizers": [Told(0.3)]}
    plain, _ = train_one("plain", **common)
    as_strong_as(7.0)
    assert same_bits(train_one("plain", **common)[0], plain)


def test_a_training_ends_nearer_to_what_was_asked_for_than_it_does_without():
    """With the features of the rows that every epoch is evaluated on."""

    def ended(keep, *regularizers):
        common = {"evaluate": similarity_evaluation("vit"), "keep": keep, "regularizers": regularizers}
        _, result = train_one("vit", **common, epochs=8, learning_rate=0.05)
        return result.history[result.best_epoch].metrics["cka_debiased"]

    kept, free = ended(Keep(0.95), RepSim(0.01, mode="gram")), ended(None)
    assert abs(kept - 0.95) <= TOLERANCE < abs(free - 0.95)
