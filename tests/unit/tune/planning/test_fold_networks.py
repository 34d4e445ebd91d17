"""What the trainings of a fold start from and are compared with: statistics of its training images, and of no others."""

import copy

import numpy as np
import pytest
import torch

from crossgraft.data import dataset_from_arrays
from crossgraft.models.adapters import without_adapters
from crossgraft.models.fingerprint import weights_fingerprint
from crossgraft.tasks import MultiClassTask
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.methods import LoRA
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.parts import FoldRows
from crossgraft.tune.planning import fold_networks
from crossgraft.tune.planning.choices import choose_plugins
from crossgraft.tune.planning.fold_networks import FoldNetworks
from crossgraft.tune.planning.rows import make_fold_data
from crossgraft.tune.regularizers import HCS, RepSim
from support.regularizing import context_of
from support.training import SIZE, build_classifier, build_data, networks_of, same_bits

STATISTICS = {"body.norm.running_mean", "body.norm.running_var"}
PARTS = FoldRows(np.arange(18), np.arange(18, 24), np.arange(24, 30))


@pytest.fixture
def estimates(monkeypatch):
    """How often statistics are estimated, and of how many images."""
    counted, estimate = [], fold_networks.with_estimated_statistics

    def count(classifier, images, **options):
        counted.append(len(images))
        return estimate(classifier, images, **options)

    monkeypatch.setattr(fold_networks, "with_estimated_statistics", count)
    return counted


def differing(first, second):
    pairs = zip(first.state_dict().items(), second.state_dict().values(), strict=True)
    return {name for (name, one), other in pairs if not torch.equal(one, other)}


def test_every_training_starts_with_statistics_of_these_images_and_the_pretrained_weights(estimates):
    networks = networks_of(build_classifier, build_data(16)[0], adapts=True)
    start, again, pretrained = networks.start(), networks.start(), networks.pretrained()
    assert differing(start, pretrained) == STATISTICS
    assert same_bits(pretrained, build_classifier())
    assert same_bits(start, again) and start is not again
    assert same_bits(start, networks.adapted())
    assert estimates == [16]  # once


def test_a_checkpoint_knows_the_start_without_what_was_computed_of_images(estimates):
    images = build_data(16)[0]
    assert networks_of(build_classifier, images).start_in_checkpoints == {}
    of_adapted = networks_of(build_classifier, images, adapts=True).start_in_checkpoints
    assert of_adapted == {"starting weights": weights_fingerprint(build_classifier())[:16]}
    assert estimates == []


def test_nothing_is_estimated_before_it_is_needed(estimates):
    networks = networks_of(build_classifier, build_data(16)[0])
    assert same_bits(networks.start(), build_classifier())
    assert estimates == []
    assert differing(networks.adapted(), build_classifier()) == STATISTICS
    assert same_bits(networks.start(), build_classifier())
    assert estimates == [16]


def test_a_network_without_batch_norm_is_what_it_is(estimates):
    networks = networks_of(lambda: build_classifier("plain"), build_data(8)[0], adapts=True)
    assert same_bits(networks.start(), build_classifier("plain"))
    assert networks.adapted() is None
    assert estimates == []


def test_without_pretrained_weights_there_is_nothing_to_adapt(estimates):
    networks = FoldNetworks(build_classifier, lambda: None, build_data(8)[0], "cpu")
    assert networks.pretrained() is None and networks.adapted() is None
    assert same_bits(networks.start(), build_classifier())
    assert estimates == []


@pytest.mark.parametrize("regularizer", [RepSim(mode="cka"), RepSim(mode="procrustes"), RepSim(), HCS()])
@pytest.mark.parametrize("name", ["cnn", "lora"])
def test_the_reference_of_a_regularizer_is_the_start_with_its_statistics(regularizer, name):
    """In eval mode nothing has been lost yet, whatever the pretrained statistics were."""

    def build():
        classifier = build_classifier()
        if name == "lora":
            LoRA(r=2).add_adapters(classifier, seed=0)
        return classifier.double()

    start = networks_of(build, build_data(16)[0], adapts=True).start()
    regularizer = copy.deepcopy(regularizer)
    regularizer.attach(start)
    for term in regularizer.loss(context_of(start)).values():
        assert term.item() == pytest.approx(0, abs=1e-12)
    unadapted = context_of(start, features=build().eval().features(context_of(start).images))
    assert all(term.item() > 1e-6 for term in regularizer.loss(unadapted).values())


def test_adapters_stay_and_with_them_off_it_is_the_adapted_pretrained_network():
    """Training that goes on from an adapter: the statistics are those of the pretrained network, which is compared with."""

    def start_with_adapter():
        classifier = build_classifier()
        LoRA(r=2).add_adapters(classifier, seed=0)
        with torch.no_grad():
            for name, parameter in classifier.named_parameters():
                if name in classifier.adapter_parameters:
                    parameter.add_(0.3)
        return classifier

    images = build_data(16)[0]
    networks = FoldNetworks(start_with_adapter, build_classifier, images, "cpu", adapts=True)
    start, adapted = networks.start().eval(), networks.adapted().eval()
    assert differing(start, start_with_adapter()) == STATISTICS
    shown = images.normalise(images.read(torch.arange(6)))
    with torch.no_grad():
        expected, on = adapted.features(shown), start.features(shown)
        with without_adapters(start):
            assert torch.equal(start.features(shown), expected)
        assert not torch.equal(on, expected)
        assert not torch.equal(expected, build_classifier().eval().features(shown))


def fold(*, blackened=None, adapts=True):
    """The data of a fold, with some rows of the data replaced by black images."""
    pixels = np.random.default_rng(0).integers(0, 255, (30, SIZE, SIZE, 3), dtype=np.uint8)
    if blackened is not None:
        pixels[blackened] = 0
    dataset = dataset_from_arrays(pixels, np.arange(30) % 3)
    plugins = choose_plugins(TuneOptions(model="test_resnet"), MultiClassTask())
    settings, networks = (TrainerSettings(batch_size=8, device="cpu"), dict.fromkeys(("start", "pretrained"), build_classifier))
    return make_fold_data(dataset, PARTS, build_classifier(), plugins, settings, 1, **networks, adapts=adapts)


def test_statistics_of_a_fold_see_none_of_its_other_rows():
    start = fold().networks.start()
    assert same_bits(start, fold(blackened=np.r_[PARTS.val, PARTS.test]).networks.start())
    assert not same_bits(start, fold(blackened=PARTS.train[:1]).networks.start())


@pytest.mark.parametrize("adapts", [False, True])
def test_every_epoch_is_compared_with_both_networks(adapts):
    data = fold(adapts=adapts)
    start = data.networks.start().eval()
    with torch.no_grad():
        found = data.evaluate(start)
    same, other = ("cka_adapted", "cka") if adapts else ("cka", "cka_adapted")
    assert found[same] == pytest.approx(1, abs=1e-9)
    assert found[other] < 0.999
    assert found[same.replace("cka", "cka_debiased")] == pytest.approx(1, abs=1e-9)
