"""Means and variances of BatchNorm: estimated literally, kept bit for bit, or moved as ever."""

import copy

import pytest
import torch
from torch import nn

from crossgraft.geometry.batch_norm import batch_norms_of, estimate_statistics, moved_batch_norms, with_estimated_statistics
from crossgraft.tune.engine.step import apply_modes, head_alone, training_batch_norms, without_moving_statistics
from crossgraft.tune.methods import METHODS
from crossgraft.tune.protocols import Selection
from support.small_classifiers import small_classifier, wrap
from support.training import (
    PullToStart,
    build_classifier,
    build_data,
    everything,
    only_head,
    same_bits,
    train_one,
    with_kept_statistics,
)

STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


class TwoNorms(nn.Module):
    """What the second one normalises depends on what the first did, and a third one keeps no statistics."""

    def __init__(self):
        super().__init__()
        self.first, self.one = nn.Conv2d(3, 4, 3, 4), nn.BatchNorm2d(4)
        self.second, self.two = nn.Conv2d(4, 6, 3, 2), nn.BatchNorm2d(6, momentum=0.3)
        self.third = nn.BatchNorm2d(6, track_running_stats=False)
        self.drop, self.fc = nn.Dropout(0.5), nn.Linear(6, 5)

    def forward(self, images):
        maps = torch.relu(self.two(self.second(torch.relu(self.one(self.first(images))))))
        return self.fc(self.drop(self.third(maps).mean((2, 3))))


def two_norms():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return wrap(TwoNorms())


def test_layers_with_kept_statistics_are_found():
    assert batch_norms_of(two_norms()) == ["body.one", "body.two"]
    assert batch_norms_of(build_classifier("plain")) == []
    start, end = two_norms(), two_norms()
    assert moved_batch_norms(start, end) == []
    end.body.two.running_var.mul_(1.5)
    assert moved_batch_norms(start, end) == ["body.two"]


def test_estimated_statistics_are_the_plain_mean_over_batches_of_all_images(monkeypatch):
    """Layer by layer in float64: what a layer sees has been normalised with each batch's own mean and variance."""
    monkeypatch.setattr("crossgraft.geometry.batch_norm.BATCH_SIZE", 8)
    classifier, (images, _) = two_norms().double().train(), build_data(21)
    before, state = copy.deepcopy(classifier.state_dict()), torch.get_rng_state()
    found = with_estimated_statistics(classifier, images, device="cpu")
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in classifier.state_dict().items())
    assert not any(module.training for module in found.modules())
    assert all(module.training for module in classifier.modules())

    sizes, means, variances = [], {"one": [], "two": []}, {"one": [], "two": []}
    seen = []

    def remember(self, rows, device="cpu"):
        seen.append(rows.tolist())
        return read(images, rows, device)

    read = type(images).read
    monkeypatch.setattr(type(images), "read", remember)
    again = with_estimated_statistics(classifier, images, device="cpu")
    assert sorted(row for rows in seen for row in rows) == list(range(21))
    body = classifier.body
    for rows in seen:
        sizes.append(len(rows))
        maps = images.normalise(read(images, torch.tensor(rows))).double()
        for layer, norm in (("first", "one"), ("second", "two")):
            maps = getattr(body, layer)(maps)
            mean, variance = maps.mean((0, 2, 3)), maps.var((0, 2, 3), correction=0)
            means[norm].append(mean)
            variances[norm].append(maps.var((0, 2, 3), correction=1))
            maps = (maps - mean[:, None, None]) / (variance[:, None, None] + 1e-5).sqrt()
            maps = torch.relu(maps * getattr(body, norm).weight[:, None, None] + getattr(body, norm).bias[:, None, None])
    assert sizes == [7, 7, 7]
    for norm in ("one", "two"):
        layer = getattr(found.body, norm)
        torch.testing.assert_close(layer.running_mean, torch.stack(means[norm]).mean(0), rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(layer.running_var, torch.stack(variances[norm]).mean(0), rtol=1e-10, atol=1e-12)
        assert layer.momentum == getattr(body, norm).momentum
    assert same_bits(found, again)
    others = {name for name, value in found.state_dict().items() if not torch.equal(value, before[name])}
    assert others == {f"body.{norm}.{kind}" for norm in ("one", "two") for kind in STATISTICS[:2]}


def test_only_the_layers_that_are_named_are_estimated():
    classifier, (images, _) = two_norms(), build_data(12)
    before = copy.deepcopy(classifier.state_dict())
    estimate_statistics(["body.two", "body.third", "body.first"], classifier, images, device="cpu")
    moved = {name for name, value in classifier.state_dict().items() if not torch.equal(value, before[name])}
    assert moved == {"body.two.running_mean", "body.two.running_var"}


class AsInEvaluation(PullToStart):
    """Remembers, of each step, whether features are those of the very network in eval mode."""

    def attach(self, classifier, training_set=None):
        super().attach(classifier, training_set)
        self.same = []

    def loss(self, context):
        with torch.no_grad():
            features = copy.deepcopy(context.classifier).eval().features(context.images)
        self.same.append(torch.equal(features, context.features))
        return super().loss(context)


@pytest.mark.parametrize("head_first", [False, True])
def test_frozen_statistics_stay_bit_for_bit_while_weights_and_biases_move(head_first):
    start, look = build_classifier("cnn"), AsInEvaluation()
    classifier, _ = train_one("cnn", selection=with_kept_statistics, regularizers=[look], head_first=head_first, head_epochs=1)
    for kind in STATISTICS:
        assert torch.equal(getattr(classifier.body.norm, kind), getattr(start.body.norm, kind))
    for kind in ("weight", "bias"):
        assert not torch.equal(getattr(classifier.body.norm, kind), getattr(start.body.norm, kind))
    assert look.same == [True] * 6
    moving, look = build_classifier("cnn"), AsInEvaluation()
    moving, _ = train_one("cnn", regularizers=[look])
    assert not any(torch.equal(getattr(moving.body.norm, kind), getattr(start.body.norm, kind)) for kind in STATISTICS)
    assert look.same == [False] * 6


def test_dropout_drops_where_only_statistics_are_kept():
    classifier = build_classifier("dropout")
    apply_modes(classifier, with_kept_statistics(classifier))
    assert classifier.body.drop.training and classifier.body.stem.training
    assert not classifier.body.norm.training


def test_a_layer_without_kept_statistics_has_only_those_of_the_batch():
    classifier = two_norms()
    selection = with_kept_statistics(classifier)
    assert selection.eval_mode == ("body.one", "body.two")
    assert training_batch_norms(classifier, everything(classifier)) == ["body.one", "body.two", "body.third"]
    assert training_batch_norms(classifier, selection) == ["body.third"]
    apply_modes(classifier, selection)
    assert classifier.body.third.training
    assert without_moving_statistics(classifier, selection) == selection
    assert head_alone(selection).eval_mode == ()


def test_blocks_that_are_frozen_stay_frozen_and_those_that_are_trained_obey():
    classifier = small_classifier("cnn")
    assert without_moving_statistics(classifier, only_head(classifier)) == only_head(classifier)
    method = METHODS.get("partial")(1)
    classifier = two_norms()
    part = Selection(
        {name: "trained" for name, _ in classifier.named_parameters() if "second" in name or "two" in name},
        {name: "frozen" for name, _ in classifier.named_parameters() if "second" not in name and "two" not in name},
        ("body.second", "body.two"),
    )
    assert training_batch_norms(classifier, part) == ["body.two"]
    assert without_moving_statistics(classifier, part).eval_mode == ("body.two",)
    of_method = method.select(build_classifier("vit"))
    assert without_moving_statistics(build_classifier("vit"), of_method) == of_method
