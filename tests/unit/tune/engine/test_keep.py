"""A similarity that training is to end at, and the factor of what keeps it."""

import json
import math

import pytest
import torch
from safetensors import safe_open

from crossgraft.errors import UsageError
from crossgraft.tune.engine.checkpoint import FILE_NAME, read_checkpoint, write_checkpoint
from crossgraft.tune.engine.selection_rule import Keep
from crossgraft.tune.regularizers import BSS, DELTA, L2SP, RepSim
from support.training import DoubleFeed, largest_difference, same_bits, train_one


@pytest.mark.parametrize("target", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_a_target_is_a_similarity_between_0_and_1(target):
    with pytest.raises(UsageError, match=r"--keep is a similarity between 0 and 1, for example 0\.8; found"):
        Keep.of(target, adapted=False)


def test_it_looks_at_the_network_that_training_starts_from():
    assert Keep.of(0.8, adapted=False) == Keep(0.8, "cka_debiased")
    assert Keep.of(0.8, adapted=True) == Keep(0.8, "cka_debiased_adapted")


@pytest.mark.parametrize("target", ["abc", [0.8], True, "0.8"])
def test_a_target_is_a_number(target):
    with pytest.raises(UsageError, match="--keep is a number between 0 and 1"):
        Keep.of(target, adapted=False)


@pytest.mark.parametrize(
    ("found", "distance", "is_near"),
    [
        (0.8, 0, True), (0.775, 0.025, True), (0.825, 0.025, True), (0.76, 0.04, False), (0.84, 0.04, False),
        (-0.2, 1.0, False), (1.0, 0.2, False), (math.nan, math.inf, False),
    ],
)  # fmt: skip
def test_what_is_within_the_tolerance_is_reached(found, distance, is_near):
    metrics = {"cka_debiased": found, "cka_debiased_adapted": 0.1}
    assert Keep(0.8).distance(metrics) == pytest.approx(distance)
    assert Keep(0.8).is_near(metrics) is is_near


def test_what_was_not_measured_is_not_near():
    assert not Keep(0.8).is_near({})


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
        ([0.5, 0.81, 0.79, 0.8], [0.1, 0.5, 0.4, 0.9], 2),  # of those at the end that reach it the best
        ([0.5, 0.81, 0.79, 0.8], [0.1, 0.4, 0.4, 0.9], 1),  # the first of equal ones
        ([0.8, 0.7, 0.79, 0.81], [0.1, 0.2, 0.9, 0.8], 3),  # none that is passed on the way
        ([0.8, 0.8, 0.9, 0.6], [0.1, 0.2, 0.0, 0.9], 3),  # the end, wherever that is
        ([0.8, NAN, 0.8, 0.8], [0.1, 0.9, 0.3, 0.4], 2),
        ([NAN, NAN, NAN, NAN], [0.3, 0.2, 0.9, 0.2], 3),
    ],
)
def test_the_epoch_that_is_kept_is_one_at_the_end_that_keeps_enough_and_of_those_the_best(similarities, losses, best):
    told = Told(similarities, losses)
    classifier, result = train_one("plain", evaluate=told, keep=Keep(0.8), regularizers=[RepSim()], epochs=4)
    assert result.best_epoch == best and result.best_value == losses[best]
    assert torch.equal(classifier.head.weight, told.seen[best])
    assert not any(
        row.is_best for row, similarity in zip(result.history, similarities, strict=True) if abs(similarity - 0.8) > 0.03
    )
    without = Told(similarities, losses)
    _, free = train_one("plain", evaluate=without, epochs=4)
    assert free.best_epoch == losses.index(min(losses))


class StoppedError(Exception):
    pass


def test_a_checkpoint_from_before_there_was_a_similarity_to_keep_goes_on_by_the_rule(tmp_path):
    losses = [0.1, 0.9, 0.8, 0.7]
    said = {"epochs": 4, "checkpoint_folder": tmp_path}

    def stop(row):
        if row.epoch == 1:
            raise StoppedError

    with pytest.raises(StoppedError):
        train_one("plain", evaluate=Told([0.5] * 4, losses), on_epoch=stop, **said)
    (path,) = tmp_path.glob(FILE_NAME)
    with safe_open(path, framework="pt") as file:
        configuration = json.loads(file.metadata()["state"])["configuration"]
    found = read_checkpoint(tmp_path, configuration)
    del found.position["progress"]["best_is_near"]
    write_checkpoint(tmp_path, found)
    _, result = train_one("plain", evaluate=Told([0.5] * 2, losses[2:]), **said)
    assert result.resumed and result.best_epoch == 0 and result.best_value == 0.1


class Watched(RepSim):
    """Remembers the factor that each step was told."""

    def after_step(self, update):
        super().after_step(update)
        self.told = [*getattr(self, "told", []), update.factor]


def test_the_head_alone_is_picked_by_the_rule():
    told, losses = [0.1, 0.8, 0.8, 0.2], [0.1, 0.9, 0.5, 0.4]
    common = {"head_first": True, "head_epochs": 2, "head_patience": 9, "epochs": 2}
    _, result = train_one("plain", evaluate=Told(told, losses), keep=Keep(0.8), regularizers=[RepSim()], **common)
    assert [row.phase for row in result.history] == ["head", "head", "all", "all"]
    assert [row.is_best for row in result.history] == [True, False, True, False]


def test_the_factor_is_told_after_each_step():
    watched = Watched()
    train_one("plain", regularizers=[watched], epochs=1, keep_factor=0.3)
    assert set(watched.told) == {0.3}


@pytest.mark.parametrize(
    ("weaker", "stronger"),
    [
        (L2SP(0.05, 0.2), L2SP(0.35, 0.2)),
        (L2SP(0.5, 0.2, decoupled=True), L2SP(3.5, 0.2, decoupled=True)),
        (RepSim(0.3), RepSim(2.1)),
        (RepSim(0.3, mode="covariance"), RepSim(2.1, mode="covariance")),
        (DELTA(0.01, 0.2), DELTA(0.07, 0.2)),
    ],
    ids=["l2_sp", "decoupled", "repsim", "covariance", "delta"],
)
def test_keep_multiplies_what_keeps_the_start_alone_and_terms_are_told_without_it(weaker, stronger):
    common = {"feed": DoubleFeed(), "precision": "64-true", "epochs": 1}
    expected, whole = train_one("plain", regularizers=[stronger], **common)
    plain, _ = train_one("plain", regularizers=[weaker], **common)
    found, result = train_one("plain", regularizers=[weaker], **common, keep_factor=7.0)
    assert largest_difference(found, expected) < 1e-12 < 1e-6 < largest_difference(found, plain)
    for name, term in result.history[0].terms.items():
        factor = 7 if "/" in name and not name.endswith("/head") else 1
        assert factor * term == pytest.approx(whole.history[0].terms[name], rel=1e-9)
    assert any("/" in name and term > 0 for name, term in result.history[0].terms.items())


def test_what_compares_with_nothing_is_as_strong_as_it_says():
    class Told(BSS):
        def after_step(self, update):
            assert update.factor == 1

    common = {"epochs": 1, "regularizers": [Told(0.3)]}
    plain, _ = train_one("plain", **common)
    assert same_bits(train_one("plain", **common, keep_factor=7.0)[0], plain)
