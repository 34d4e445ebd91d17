"""What a GPU would refuse or wait for, on a device that is none: nothing of the CPU meets something of the device."""

import pytest
import torch

from crossgraft.losses import CrossEntropy
from crossgraft.models import memory_format
from crossgraft.tasks import MultiClassTask
from crossgraft.tune.augmentations import Light, Thesis
from crossgraft.tune.batch_transforms import CutMix, LabelSmoothing, Mixup
from crossgraft.tune.measuring.drift import PretrainedFeatures
from crossgraft.tune.measuring.selection_metrics import SelectionMetrics
from crossgraft.tune.regularizers import BSS, DELTA, HCS, L2SP, RepSim, SelfIdentityMapping
from support.pretend_device import DEVICE, on_host, pretend_device
from support.training import (
    build_classifier,
    build_data,
    build_feed,
    everything,
    only_head,
    train_one,
    with_adaptformer,
    with_lora,
)  # fmt: skip

FEEDS = {
    "plain": {},
    "light, mixup": {"augmentation": Light(), "transforms": (Mixup(), LabelSmoothing())},
    "thesis 3, cutmix": {"augmentation": Thesis(3), "transforms": (CutMix(),)},
    "thesis 6": {"augmentation": Thesis(6)},
}
REGULARIZERS = {
    "l2_sp": L2SP,
    "hcs": HCS,
    "repsim": RepSim,
    "repsim of covariances": lambda: RepSim(mode="covariance"),
    "repsim of all images": lambda: RepSim(preset="paper"),
    "procrustes": lambda: RepSim(mode="procrustes"),
    "delta": DELTA,
    "bss": BSS,
    "rho_sim": lambda: SelfIdentityMapping(blocks="stem+block"),
}


@pytest.fixture(autouse=True)
def the_usual_order(monkeypatch):
    """Channels last is for CPUs, and rounds otherwise."""
    monkeypatch.setattr(memory_format, "_gains", lambda _: False)


def feed_of(device, name):
    feed = build_feed(**FEEDS[name])
    feed.device = device
    return feed


def evaluation_of(device, name, count=24):
    """As ``support.training.similarity_evaluation``, anywhere."""
    images, targets = build_data(count)
    settings = {"batch_size": 8, "device": device}
    before = PretrainedFeatures(images, lambda: build_classifier(name), **settings, number_type=torch.float32)
    facts = (images, targets.argmax(1).numpy(), targets, CrossEntropy(), MultiClassTask())
    return SelectionMetrics(*facts, **settings, pretrained=before)


def state_of(device, *, network="cnn", feed="plain", regularizer=None, **changes):
    """All numbers that a training ends with."""
    regularizers = [REGULARIZERS[regularizer]()] if regularizer else []
    said = {"feed": feed_of(device, feed), "regularizers": regularizers, "evaluate": evaluation_of(device, network), "epochs": 1}
    classifier, result = train_one(network, **{**said, **changes})
    assert {str(each.device) for each in classifier.parameters()} == {device}
    rows = [(row.terms, row.metrics) for row in result.history]
    return {name: on_host(each) for name, each in classifier.state_dict().items()}, rows


def assert_same_anywhere(monkeypatch, **what):
    expected, rows = state_of("cpu", **what)
    with pretend_device(monkeypatch):
        found, found_rows = state_of(DEVICE, **what)
    rounding = 1e-6 if what.get("network") == "vit" else 0  # attention is another operation on each kind of device
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=rounding, atol=rounding)
    for (terms, metrics), (found_terms, found_metrics) in zip(rows, found_rows, strict=True):
        assert found_terms == pytest.approx(terms, rel=rounding)
        assert found_metrics == pytest.approx(metrics, rel=10 * rounding)


@pytest.mark.parametrize("feed", FEEDS)
def test_a_training_ends_with_the_numbers_of_the_cpu(monkeypatch, feed):
    assert_same_anywhere(monkeypatch, feed=feed)


@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_a_regularizer_is_where_the_network_is(monkeypatch, regularizer):
    assert_same_anywhere(monkeypatch, regularizer=regularizer)


@pytest.mark.parametrize(
    ("network", "selection", "settings"),
    [
        ("vit", everything, {"accumulate": 2, "clip_norm": 1.0, "optimizer": "sgd"}),
        ("cnn", only_head, {"features_are_fixed": True}),
        ("cnn", everything, {"head_first": True, "head_epochs": 2, "optimizer": "sgd"}),
        ("vit", with_lora, {"log_gradient_norms": True, "optimizer": "sgd"}),
        ("vit", with_adaptformer, {"optimizer": "sgd"}),
    ],
)
def test_every_way_to_train(monkeypatch, network, selection, settings):
    assert_same_anywhere(monkeypatch, network=network, selection=selection, **settings)
