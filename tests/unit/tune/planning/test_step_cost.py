"""A few steps are timed on a copy; waiting for others counts as it usually does."""

import weakref
from dataclasses import replace
from unittest.mock import Mock

import pytest
import torch

from crossgraft.errors import DivergedError
from crossgraft.losses import CrossEntropy
from crossgraft.models import memory_format
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.planning import step_cost
from crossgraft.tune.planning.step_cost import _Clock, measure_step
from crossgraft.tune.regularizers import BSS, SelfIdentityMapping
from support.training import build_classifier, build_feed, everything, only_head

SETTINGS = TrainerSettings(batch_size=7, device="cpu")


def measure(classifier, *, fixed=False, settings=SETTINGS, regularizers=(), **feed):
    selection = only_head(classifier) if fixed else everything(classifier)
    return measure_step(
        classifier,
        build_feed(**feed),
        selection,
        loss=CrossEntropy(),
        regularizers=list(regularizers),
        settings=settings,
        features_are_fixed=fixed,
    )


def test_nothing_of_the_network_changes_and_seconds_and_bytes_are_found():
    classifier = build_classifier()
    before = {name: tensor.clone() for name, tensor in classifier.state_dict().items()}
    cost = measure(classifier, settings=replace(SETTINGS, epochs=1))
    assert all(torch.equal(tensor, before[name]) for name, tensor in classifier.state_dict().items())
    assert 0 < cost.seconds_per_image < 1
    assert cost.time_reason == "the median of 2 timed steps"
    weights = 4 * sum(p.numel() for p in classifier.parameters())
    assert cost.peak_bytes > 5 * weights  # weights, gradients, two moments, the best state, and what a step keeps


def test_memory_is_that_of_one_step_and_grows_with_the_batch():
    small, large = (measure(build_classifier(), batch_size=size).peak_bytes for size in (4, 16))
    held = measure(build_classifier(), batch_size=1).peak_bytes
    assert (large - held) / (small - held) == pytest.approx(5, rel=0.5)  # 15 images more against 3 more


def test_features_are_timed_where_they_are_computed_once():
    cost = measure(build_classifier(), fixed=True)
    assert cost.features_once and cost.seconds_of_head_step > 0
    assert 0 < cost.seconds_per_image < 1


def test_a_single_batch_is_timed_more_than_once():
    assert measure(build_classifier(), count=3, batch_size=7).seconds_per_image > 0


def test_a_step_that_diverges_is_told_when_it_is_made_for_real(monkeypatch):
    monkeypatch.setattr(step_cost, "train", Mock(side_effect=DivergedError("No number.")))
    cost = measure(build_classifier())
    assert (cost.seconds_per_image, cost.time_reason) == (None, "not measured: No number.")


def test_more_steps_are_timed_where_training_is_long(monkeypatch):
    settings = replace(SETTINGS, epochs=200)
    monkeypatch.setattr(step_cost, "_ENOUGH_SECONDS", float("inf"))
    assert measure(build_classifier(), settings=settings).time_reason == "the median of 16 timed steps"
    monkeypatch.setattr(step_cost, "_ENOUGH_SECONDS", 0.0)
    assert measure(build_classifier(), settings=settings).time_reason == "the median of 2 timed steps"


def test_pieces_are_timed_by_what_the_machine_usually_gives(monkeypatch):
    typical = Mock(side_effect=[0.0, 10.0, 11.0], slowdown=2.0)
    monkeypatch.setattr(step_cost, "TypicalClock", lambda: typical)
    clock = _Clock(torch.device("cpu"))
    for _ in range(3):
        clock.note()
    assert clock.seconds == [10.0, 1.0]
    assert clock.slowdown == 2.0


def test_what_learns_beside_the_network_is_measured_with_and_without():
    plain = measure(build_classifier())
    ours = measure(build_classifier(), regularizers=[SelfIdentityMapping(), BSS()])
    assert plain.added_bytes is None and plain.added_seconds_per_image is None
    assert 0 <= ours.added_seconds_per_image <= ours.seconds_per_image
    sim = SelfIdentityMapping()
    sim.attach(build_classifier())
    own = 4 * sum(p.numel() for p in sim.modules()[0].parameters())
    assert ours.added_bytes >= 4 * own  # weights, gradients and two moments
    assert measure(build_classifier(), regularizers=[BSS()]).added_bytes is None


def test_the_first_copy_is_gone_when_the_second_is_measured(monkeypatch):
    """On a GPU its weights and gradients would count as memory of the second, and what ρSIM adds would seem less."""
    copies, alive = [], []

    def train(twin, *arguments, **keywords):
        alive.append([seen() is not None for seen in copies])
        copies.append(weakref.ref(twin))
        return step_cost_train(twin, *arguments, **keywords)

    step_cost_train = step_cost.train
    monkeypatch.setattr(step_cost, "train", train)
    measure(build_classifier(), regularizers=[SelfIdentityMapping()])
    assert alive == [[], [False]]


def test_memory_does_not_count_weights_twice_in_another_order_of_memory(monkeypatch):
    """Training puts convolutions into another order, and so to another place, before the first step."""
    as_trained = measure(build_classifier()).peak_bytes
    monkeypatch.setattr(memory_format, "put_channels_last", lambda *_, **__: False)
    usual = measure(build_classifier()).peak_bytes
    weights = sum(p.nbytes for p in build_classifier().parameters() if p.ndim == 4)
    assert weights > 0 and abs(as_trained - usual) < weights / 2
