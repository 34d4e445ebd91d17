"""What a GPU would refuse or wait for, on a device that is none: nothing of the CPU meets something of the device."""

import json
from contextlib import nullcontext

import pytest
import torch
from safetensors import safe_open

from crossgraft.errors import CrossgraftWarning, DeviceLostError, DivergedError, OutOfMemoryError
from crossgraft.losses import CrossEntropy
from crossgraft.models import memory_format
from crossgraft.models.classifier import Classifier
from crossgraft.models.device import explain_lost_device
from crossgraft.running.jobs import Job, Work, run_jobs
from crossgraft.tasks import MultiClassTask
from crossgraft.tune.augmentations import Light, NoAugmentation, Thesis
from crossgraft.tune.batch_transforms import CutMix, LabelSmoothing, Mixup
from crossgraft.tune.engine.cached_features import features_of, in_batches_that_fit
from crossgraft.tune.engine.checkpoint import FILE_NAME, read_checkpoint
from crossgraft.tune.engine.gradient_norms import GradientLog
from crossgraft.tune.engine.optimizers import make_optimizer
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.engine.step import Network, StepTerms, TrainingStep, apply_modes, apply_selection, look_at
from crossgraft.tune.feed import batches
from crossgraft.tune.feed import images as feed_images
from crossgraft.tune.measuring.drift import PretrainedFeatures
from crossgraft.tune.measuring.selection_metrics import SelectionMetrics
from crossgraft.tune.protocols import attach
from crossgraft.tune.regularizers import BSS, DELTA, HCS, L2SP, RepSim, SelfIdentityMapping
from support.pretend_device import DEVICE, fabric_of_device, on_host, pretend_device
from support.training import (
    SIZE,
    SpreadOfAll,
    build_classifier,
    build_data,
    build_feed,
    everything,
    only_head,
    same_bits,
    train_one,
    with_adaptformer,
    with_lora,
)

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
    monkeypatch.setattr(memory_format, "_gains", lambda *_: False)


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


WAITS = {"bss", "procrustes", "repsim of covariances", "repsim of all images"}
"""Decompose a matrix in each step, or turn one until it is orthogonal."""


def made_step(network, regularizers, **settings):
    """A step of ``network`` on the device."""
    settings = TrainerSettings(**{"device": "cpu", "batch_size": 7, **settings})
    fabric, classifier = fabric_of_device(), build_classifier(network).to(DEVICE)
    for regularizer in regularizers:
        attach(regularizer, classifier)
    selection = everything(classifier)
    apply_selection(classifier, selection)
    apply_modes(classifier, selection)
    named = make_optimizer(classifier, selection, regularizers, settings)
    module, optimizer = fabric.setup(Network(classifier, regularizers), named.optimizer)
    gradients = GradientLog(classifier, selection)
    parts = {"named": named, "classifier": classifier, "loss": CrossEntropy(), "regularizers": regularizers}
    return TrainingStep(fabric, module, optimizer, settings=settings, before_update=lambda: gradients.add(1.0), **parts)


@pytest.mark.parametrize("regularizer", [None, *(name for name in REGULARIZERS if name not in WAITS)])
def test_no_step_waits_for_the_device(monkeypatch, regularizer):
    with pretend_device(monkeypatch) as waits:
        step = made_step("dropout", [REGULARIZERS[regularizer]()] if regularizer else [], clip_norm=1.0)
        batch = next(feed_of(DEVICE, "plain").batches(0))
        step.run(batch, 0)
        waits.clear()
        made = [step.run(batch, number) for number in (1, 2)]
        assert waits == []
        look_at(made)
        assert [each.partition(" at ")[0] for each in waits] == ["tolist"]
        assert made[0].numbers["loss"] > 0 < made[1].numbers["loss"]


class BrokenFrom(SpreadOfAll):
    """Not finite from one step on."""

    def loss(self, context):
        value = float("nan") if context.step >= 4 else 0.0
        return {"broken": context.logits.sum() * value}


@pytest.mark.parametrize("settings", [{}, {"checkpoint_every_steps": 1}])
def test_nothing_is_kept_of_a_step_that_was_not_finite_and_it_is_named(monkeypatch, tmp_path, settings):
    kept = tmp_path / "here", tmp_path / "there"
    messages, reports = [], []
    for device, folder in (("cpu", kept[0]), (DEVICE, kept[1])):
        with pretend_device(monkeypatch) if device == DEVICE else nullcontext():
            said = {"feed": feed_of(device, "plain"), "evaluate": evaluation_of(device, "cnn"), "checkpoint_folder": folder}
            said |= {"regularizers": [BrokenFrom()], "on_step": lambda report: reports.append(report.step)}
            with pytest.raises(DivergedError) as raised:
                train_one("cnn", **said, **settings)
        messages.append(str(raised.value))
    assert "step 4: pull/broken is nan" in messages[0] and messages[0] == messages[1]
    here, there = (read_checkpoint(folder, json_of(folder)) for folder in kept)
    assert here.position["progress"]["step"] == there.position["progress"]["step"] == (1 if settings else 0)
    assert all(torch.equal(here.tensors[name], there.tensors[name]) for name in here.tensors)
    assert reports[:4] == [1, 2, 3, 4] and reports[4:7] == [1, 2, 3]


def json_of(folder):
    """The configuration that the checkpoint in ``folder`` says it is of."""
    with safe_open(folder / FILE_NAME, framework="pt") as file:
        return json.loads(file.metadata()["state"])["configuration"]


def test_the_first_of_many_steps_is_named_whatever_happens_after_it():
    names, bad = ["loss", "task"], torch.tensor([1.0, float("nan")])
    made = [StepTerms(number, names, bad if number > 6 else torch.ones(2)) for number in range(5, 9)]
    with pytest.raises(DivergedError, match="step 7: task is nan"):
        look_at(made)
    made[0].also_finite("norm of the gradient", torch.tensor(float("inf")))
    with pytest.raises(DivergedError, match="step 5: norm of the gradient is inf"):
        look_at(made)


@pytest.mark.parametrize("every", [1, 5, 100])
def test_looking_more_or_less_often_changes_nothing(every):
    (one, first), (other, second) = (train_one(look_every_steps=number, epochs=2) for number in (None, every))
    assert same_bits(one, other)
    assert [row.terms for row in first.history] == [row.terms for row in second.history]


class Dimmed:
    """An augmentation of another package, which draws while it works."""

    flip = True

    def __call__(self, images, generator):
        return images * torch.rand(len(images), 1, 1, 1, generator=generator).to(images.device)


AUGMENTATIONS = {"none": NoAugmentation(), "light": Light(), "3": Thesis(3), "4": Thesis(4), "6": Thesis(6), "other": Dimmed()}


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_a_batch_that_is_made_at_once_is_that_of_the_cpu(monkeypatch, name):
    """More images than a CPU takes at a time, and the same numbers drawn."""
    rows = torch.randperm(40, generator=torch.Generator().manual_seed(1))
    said = {"count": 40, "augmentation": AUGMENTATIONS[name], "transforms": (Mixup(), CutMix())}
    expected = build_feed(**said).make(3, 1, rows)
    with pretend_device(monkeypatch):
        feed = build_feed(**said)
        feed.device = DEVICE
        found = feed.make(3, 1, rows)
    assert torch.equal(on_host(found.images), expected.images)
    assert torch.equal(on_host(found.targets), expected.targets)


@pytest.mark.parametrize("name", ["none", "light", "3", "4"])  # torchvision sends constants of chapter 6 each time
def test_making_batches_of_images_on_the_device_waits_for_nothing(monkeypatch, name):
    with pretend_device(monkeypatch) as waits:
        feed = build_feed(augmentation=AUGMENTATIONS[name], transforms=(Mixup(), CutMix(), LabelSmoothing()))
        feed.device = DEVICE
        first = [batch.images for batch in feed.batches(0)]
        assert feed.images.are_all_on(DEVICE)
        waits.clear()
        with monkeypatch.context() as host:
            host.setattr(feed.images, "_levels", None)  # nothing is read from the host any more
            host.setattr(batches, "ThreadPoolExecutor", None)  # so that there is nothing to wait for in a thread
            again = [batch.images for batch in feed.batches(0)]
        assert waits == []
        assert all(torch.equal(on_host(one), on_host(other)) for one, other in zip(first, again, strict=True))


def test_images_that_do_not_fit_go_there_each_time(monkeypatch):
    monkeypatch.setattr(feed_images, "free_device_memory", lambda _: 1000)
    expected = [batch.images for batch in build_feed().batches(0)]
    with pretend_device(monkeypatch) as waits:
        feed = feed_of(DEVICE, "plain")
        for _ in range(2):
            found = [batch.images for batch in feed.batches(0)]
            assert all(torch.equal(on_host(one), other) for one, other in zip(found, expected, strict=True))
        assert not feed.images.are_all_on(DEVICE) and waits == []


def test_where_another_program_takes_the_memory_images_stay_on_the_host(monkeypatch):
    def full(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with pretend_device(monkeypatch):
        feed = feed_of(DEVICE, "plain")
        with monkeypatch.context() as patched:
            patched.setattr(feed_images.torch, "empty", full)
            feed.images._resident = feed_images._Resident.made((22, 3, SIZE, SIZE), torch.uint8, DEVICE)
        found = next(feed.batches(0)).images
    assert torch.equal(on_host(found), next(build_feed().batches(0)).images)


class Failing(SpreadOfAll):
    """The device fails in a step, as a full card and a lost one say it."""

    def __init__(self, error, at=1):
        super().__init__()
        self.error, self.at = error, at

    def loss(self, context):
        if context.step >= self.at:
            raise self.error
        return super().loss(context)


@pytest.mark.parametrize("layers", [1, 2])
def test_a_lost_device_is_told_once(layers):
    """A training is inside a command, and both explain it."""

    def fail(inside):
        with explain_lost_device("cuda"):
            if inside:
                fail(inside - 1)
            raise RuntimeError("CUDA error: unspecified launch failure")

    with pytest.raises(DeviceLostError) as raised:
        fail(layers - 1)
    assert str(raised.value).count("failed in mid-run") == 1


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), OutOfMemoryError, "One step of 7 images does not fit .* --accumulate"),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), DeviceLostError, "the same command goes on"),
        (RuntimeError("CUDA error: device-side assert triggered"), DeviceLostError, "--device cpu"),
    ],
)
def test_a_device_that_fails_is_named_and_the_training_goes_on_later(monkeypatch, tmp_path, error, kind, said):
    settings = {"epochs": 3, "checkpoint_folder": tmp_path, "configuration": {}}
    whole, _ = train_one("plain", regularizers=[SpreadOfAll()], epochs=3)
    with pretend_device(monkeypatch), pytest.raises(kind, match=said):
        train_one("plain", feed=feed_of(DEVICE, "plain"), regularizers=[Failing(error, at=5)], **settings)
    monkeypatch.setattr(Failing, "__repr__", lambda _: repr(SpreadOfAll()))
    resumed, result = train_one("plain", regularizers=[Failing(None, at=99)], **settings)
    assert result.resumed and same_bits(resumed, whole)


def test_a_device_that_is_gone_before_the_first_step_is_named(monkeypatch):
    def gone(*_, **__):
        raise RuntimeError("CUDA error: unspecified launch failure")

    monkeypatch.setattr(Classifier, "to", gone)
    with pretend_device(monkeypatch), pytest.raises(DeviceLostError, match="--device cpu"):
        train_one("plain", feed=feed_of(DEVICE, "plain"))


def test_a_lost_device_is_no_fault_of_one_training(monkeypatch):
    """Of several, the others would fail as well, and a page of what is left would be written."""

    class Trainings(Work):
        def job(self, spec):
            return Job(spec, spec, spec)

        def do(self, job):
            raise DeviceLostError("gone")

    with pytest.raises(DeviceLostError):
        run_jobs([Job(name, name, name) for name in "ab"], Trainings(), keep_going=True)


def test_a_full_card_sees_smaller_batches_between_epochs(monkeypatch):
    images, _ = build_data(24)
    classifier, sizes = build_classifier("plain").eval(), []
    expected = features_of(classifier, images, batch_size=3, device="cpu")

    def features(batch, plain=classifier.features):
        sizes.append(len(batch))
        if len(batch) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return plain(batch)

    monkeypatch.setattr(classifier, "features", features)
    with pytest.warns(CrossgraftWarning, match="looking at batches of") as said:
        found = features_of(classifier, images, batch_size=12, device="cpu")
    assert [str(each.message)[-10:] for each in said] == [" 6 images.", " 3 images."]
    assert sizes[:3] == [12, 6, 3] and torch.equal(found, expected)


def test_not_even_one_image_fits(monkeypatch):
    def full(_):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with pytest.raises(OutOfMemoryError, match="single image between two epochs"), pytest.warns(CrossgraftWarning):
        in_batches_that_fit(full, 4)


def test_channels_lie_beside_each_other_on_the_device_where_that_is_asked_for(monkeypatch):
    monkeypatch.undo()  # of what holds for the other tests
    with pretend_device(monkeypatch):
        classifier = build_classifier("plain").to(DEVICE)
        weight = classifier.body.block.weight
        with memory_format.channels_last(classifier):
            assert weight.is_contiguous()
        with memory_format.channels_last(classifier, kind="lazy"):
            inside = classifier.body.block.weight
            assert inside.is_contiguous(memory_format=torch.channels_last) and not inside.is_contiguous()
        assert classifier.body.block.weight.is_contiguous()
