"""Frequencies of networks, edits and images that are known, filters that complete each other, and ranks of risk."""

import importlib
from dataclasses import dataclass, field
from itertools import permutations
from typing import ClassVar

import jaxtyping
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from torch import nn

import crossgraft
from crossgraft.audit import learning_priority, low_pass, normalized_psd, spectral_overlap, subject_of
from crossgraft.audit.frequency import frequency_audit
from crossgraft.audit.spectra import CUTOFFS, band_accuracy, risk_rank
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.data.transforms import prepare_batch
from crossgraft.edit._image_edit import ImageEdit, Painted, measured_in
from crossgraft.edit.confounders import IntensityShift, LowPass, Tag
from crossgraft.edit.confounders.poisson_image import PoissonImage
from crossgraft.edit.edits import choose_edits
from crossgraft.edit.source_editing import HighPass, high_pass
from crossgraft.errors import DataError, UsageError
from crossgraft.models import Backbone, ModelSpec, load_backbone
from crossgraft.models.classifier import make_classifier
from crossgraft.tune.saving.saved_model import SavedModel
from crossgraft.types import Preprocessing

SIZE = 32
PLAIN = Preprocessing(SIZE, SIZE, mean=(0.5,) * 3, std=(0.5,) * 3, resize_policy="squash")


def wave(index, size=SIZE):
    """cos of ``index`` periods along the columns."""
    return np.tile(np.cos(2 * np.pi * index * np.arange(size) / size), (size, 1))


@dataclass(frozen=True)
class AddWave(ImageEdit):
    """A faint wave over the whole image."""

    name: ClassVar[str] = "add_wave"
    title: ClassVar[str] = "Wave"
    reference: ClassVar[str] = "none"
    index: int = field(default=5, metadata=measured_in("periods"))

    def edit(self, pixels, rng):
        return Painted(pixels + 0.05 * wave(self.index, pixels.shape[1])[:, :, None])


class OneFrequency(nn.Module):
    """Two features: how much cosine, and how much sine, of a number of periods there is."""

    def __init__(self, index):
        super().__init__()
        turned = np.roll(wave(index), SIZE // (4 * index) if index else 0, axis=1)
        self.waves = nn.Parameter(torch.from_numpy(np.stack([wave(index), turned])).float())
        self.fc = nn.Linear(2, 4)

    def forward(self, images):
        return self.fc(torch.einsum("nchw,fhw->nf", images, self.waves))


def backbone(module, preprocessing=PLAIN):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = module()
    return Backbone(network, name="own", architecture="own", source="factory", family="own", preprocessing=preprocessing)


@pytest.fixture(scope="module")
def looking_at_4():
    return backbone(lambda: OneFrequency(4))


@pytest.fixture(scope="module")
def images():
    """Floats, so that nothing is rounded; three classes, of which the last is rare."""
    pixels = 0.3 + 0.4 * np.random.default_rng(0).random((40, SIZE, SIZE, 1)).astype(np.float32)
    return dataset_from_arrays(pixels, np.array(["a"] * 24 + ["b"] * 12 + ["c"] * 4), name="some")


@settings(max_examples=25, deadline=None)
@given(st.integers(8, 13), st.integers(8, 13), st.integers(0, 14), st.sampled_from(["cycles", "px"]), st.integers(0, 99))
def test_low_pass_and_high_pass_complete_each_other(height, width, cutoff, unit, seed):
    image = np.random.default_rng(seed).random((height, width, 3))
    radius = cutoff / 20 if unit == "cycles" else cutoff / 2
    low, high = (of(image, radius, unit=unit) for of in (low_pass, high_pass))
    mean = image.mean(axis=(0, 1))
    np.testing.assert_allclose(low + high - mean, image, atol=1e-12)
    np.testing.assert_allclose(high.mean(axis=(0, 1)), mean)
    before, after = (np.fft.fft2(each, axes=(0, 1)) for each in (image, high))
    for u in range(height):
        for v in range(width):
            ky, kx = (k if k < (n + 1) // 2 else k - n for k, n in ((u, height), (v, width)))
            far = np.hypot(ky / height, kx / width) if unit == "cycles" else np.hypot(ky, kx)
            expected = before[u, v] if far > radius + 1e-9 or u == v == 0 else 0
            np.testing.assert_allclose(after[u, v], expected, atol=1e-9)


def test_a_frequency_on_the_circle_goes():
    """24, where ``fftfreq`` is not exactly whole."""
    on, outside = wave(5, 24), wave(6, 24)
    np.testing.assert_allclose(high_pass(on + outside, 5, unit="px"), outside, atol=1e-12)
    np.testing.assert_allclose(high_pass(on + outside, 5 / 24), outside, atol=1e-12)


def test_high_pass_is_an_edit(monkeypatch):
    (edit,) = choose_edits("high_pass:0.2")
    assert edit == HighPass(cutoff=0.2) and choose_edits("high_pass")[0].cutoff == 0.125
    image = np.random.default_rng(0).integers(80, 170, (24, 20, 3)).astype(np.uint8)
    edited, info = edit(image)
    assert edited.dtype == np.uint8 and info.mask is None and info.rms > 1
    np.testing.assert_array_equal(edited, np.rint(np.clip(high_pass(image / 255, 0.2) * 255, 0, 255)))
    np.testing.assert_array_equal(edit(image, strength=0.0)[0], image)
    np.testing.assert_array_equal(HighPass(cutoff=0)(image)[0], image)
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    for wrong, said in (({"cutoff": 6}, "add unit=px"), ({"unit": "pixels"}, "cycles or px"), ({"cutoff": -1}, "be in")):
        with pytest.raises(UsageError, match=f"of high_pass.*{said}"):
            HighPass(**wrong)
    with pytest.raises(DataError, match="high_pass:unit=px needs square images, got 24 × 20"):
        HighPass(cutoff=3, unit="px")(image)


def rings_of(channels):
    """Equation 5.1 written out: 2π times the mean of |F| over each ring, mean over channels."""
    height, width = channels.shape[1:]
    number = min(height, width)
    found = []
    for values in channels:
        rows, columns = (np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n) for n in (height, width))
        magnitude = np.abs(rows @ values @ columns)
        rings = [[] for _ in range(number // 2)]
        for u in range(height):
            for v in range(width):
                ky, kx = (k if k < (n + 1) // 2 else k - n for k, n in ((u, height), (v, width)))
                ring = int(np.floor(number * np.sqrt((ky / height) ** 2 + (kx / width) ** 2) + 0.5))
                if ring < number // 2:
                    rings[ring].append(magnitude[u, v])
        found.append([2 * np.pi * np.mean(ring) for ring in rings])
    return np.mean(found, axis=0)


def without_mean(psd):
    return np.r_[0, psd[1:] / psd[1:].sum()]


def test_spectra_at_the_input_are_those_of_the_equation():
    """Two colour images, resized to an input that is not square."""
    pixels = np.random.default_rng(1).integers(60, 190, (2, 30, 40, 3)).astype(np.uint8)
    two = dataset_from_arrays(pixels, ["a", "b"], name="two")
    preprocessing = Preprocessing(16, 20, resize_policy="squash")
    network = backbone(Conv, preprocessing)
    edit = LowPass(cutoff=0.1)
    found = frequency_audit(network, two, edits=[edit])
    clean = prepare_batch(list(pixels), preprocessing).double().numpy()
    edited = prepare_batch([edit(each)[0] for each in pixels], preprocessing).double().numpy()
    spectra = [rings_of(each) for each in edited - clean]
    np.testing.assert_allclose(found.edits[0].psd, np.mean([without_mean(each) for each in spectra], axis=0), rtol=1e-9)
    assert found.edits[0].rms == pytest.approx(np.sqrt(np.mean((edited - clean) ** 2)))
    assert found.edits[0].num_changed == 2 and found.edits[0].edit == "low_pass:cutoff=0.1"
    spectra = np.array([rings_of(each) for each in clean])
    mean = spectra.mean(axis=0)
    np.testing.assert_allclose(found.psd, without_mean(mean), rtol=1e-9)
    np.testing.assert_allclose(found.std[1:], spectra.std(axis=0)[1:] / mean[1:].sum(), rtol=1e-9)
    assert found.std[0] == 0
    np.testing.assert_array_equal(found.rings, np.arange(8))
    np.testing.assert_allclose(found.frequencies, np.arange(8) / 16)


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, 2)
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(6, 4)

    def forward(self, images):
        return self.fc(self.drop(torch.tanh(self.conv(images)).mean((2, 3))))


def test_a_network_that_looks_at_one_frequency_overlaps_with_an_edit_there(looking_at_4, images):
    found = frequency_audit(looking_at_4, images, edits=[AddWave(index=4), AddWave(index=11)])
    assert found.priority.objective == "features" and found.priority.num_saturated == 0
    assert found.priority.psd[4] > 0.999 and found.priority.psd.sum() == pytest.approx(1)
    there, elsewhere = found.edits
    assert there.psd[4] > 0.99 and elsewhere.psd[11] > 0.99
    assert there.overlap.overlap > 0.99 > 0.01 > elsewhere.overlap.overlap
    assert there.is_informative and there.reason is None and there.scope == "global"
    assert there.overlap == spectral_overlap(there.psd, found.priority.psd)


def test_priorities_are_those_of_learning_priority(images):
    network = backbone(Conv)
    prepared = prepare_batch([images.read(row) for row in range(len(images))], PLAIN)
    classifier = make_classifier(network, 3, seed=0).train()
    found = frequency_audit(classifier, images, before=network)
    assert classifier.training
    assert found.priority.objective == "true labels" and found.before.objective == found.after.objective == "features"
    expected = learning_priority(classifier, prepared, images.targets)
    np.testing.assert_allclose(found.priority.psd, expected.psd, rtol=1e-4)
    spread = np.std([normalized_psd(each) for each in expected.per_image], axis=0)
    np.testing.assert_allclose(found.priority.std, spread, rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(found.before.psd, learning_priority(network, prepared).psd, rtol=1e-4)
    np.testing.assert_allclose(found.after.psd, found.before.psd, rtol=1e-4)  # its body was not tuned
    predicted = frequency_audit(classifier, images, objective="predicted labels").priority
    assert predicted.objective == "predicted labels"
    np.testing.assert_allclose(predicted.psd, learning_priority(classifier, prepared, "predicted").psd, rtol=1e-4)
    same = frequency_audit(network, images, before=network)
    np.testing.assert_array_equal(same.after.psd, same.before.psd)
    assert frequency_audit(network, images).before is frequency_audit(network, images).after is None


def test_tuning_moves_the_priority(looking_at_4, images):
    tuned = make_classifier(looking_at_4, 3, seed=0)
    with torch.no_grad():
        tuned.body.waves.copy_(OneFrequency(8).waves)
    found = frequency_audit(tuned, images, before=looking_at_4, edits=[AddWave(index=8)])
    assert found.before.psd.argmax() == 4 and found.after.psd.argmax() == found.priority.psd.argmax() == 8
    assert found.edits[0].overlap.overlap > 0.99


def test_a_classifier_with_other_classes_is_judged_by_its_features(looking_at_4, images):
    found = frequency_audit(make_classifier(looking_at_4, 5, seed=0), images)
    assert found.priority.objective == "features" and found.priority.psd.argmax() == 4
    several = dataset_from_arrays([images.read(row) for row in range(6)], np.eye(3, dtype=int)[[0, 1, 2] * 2], name="x")
    assert frequency_audit(make_classifier(looking_at_4, 3, seed=0), several).priority.objective == "features"
    assert frequency_audit(looking_at_4, several, max_images=3).num_images == 3


def test_edits_of_which_nothing_is_left_have_a_reason(looking_at_4, images):
    shift, corners, tag = frequency_audit(
        looking_at_4, images, edits=[IntensityShift(gain=1.0, offset=0.1), LowPass(cutoff=0.5), Tag(size=0.4)]
    ).edits
    assert shift.overlap is shift.psd is None and shift.num_changed == 0 and "nothing of it is left" in shift.reason
    assert shift.rms == pytest.approx(0.2, rel=1e-4)  # 0.1 of the range, in units of a standard deviation of 0.5
    assert corners.overlap is corners.psd is None and corners.rms > 0
    assert tag.overlap is not None and not tag.is_informative and tag.scope == "local" and "broadband" in tag.reason


def test_a_network_that_is_sure_or_sees_the_mean_alone_has_no_priority(looking_at_4, images):
    sure = make_classifier(looking_at_4, 3, seed=0)
    with torch.no_grad():
        sure.head.weight.zero_()
        sure.head.bias.copy_(torch.tensor([1e4, 0.0, 0.0]))
    only_a = images.take(np.flatnonzero(images.targets == 0))
    for found in (
        frequency_audit(sure, only_a, edits=[AddWave()]),
        frequency_audit(backbone(lambda: OneFrequency(0)), only_a, edits=[AddWave()]),
    ):
        assert found.priority.psd is found.priority.std is None and found.priority.num_saturated == 24
        (edit,) = found.edits
        assert edit.psd is not None and edit.overlap is None and "no gradient" in edit.reason and not edit.is_informative
    mixed = make_classifier(looking_at_4, 3, seed=0)
    with torch.no_grad():
        mixed.head.weight.copy_(torch.tensor([[1e3, 0.0], [-1e3, 0.0], [0.0, 0.0]]))
    some = frequency_audit(mixed, images).priority
    assert 0 < some.num_saturated < 40 and some.psd.argmax() == 4


def test_a_draw_keeps_the_shares_of_classes_and_repeats(looking_at_4, images, monkeypatch):
    taken = []
    take = type(images).take

    def spy(self, rows, **options):
        taken.append(np.bincount(images.targets[rows], minlength=3).tolist() if self is images else None)
        return take(self, rows, **options)

    monkeypatch.setattr(type(images), "take", spy)
    first, again, other = (
        frequency_audit(looking_at_4, images, edits=[PoissonImage()], max_images=10, seed=seed) for seed in (0, 0, 1)
    )
    assert taken == [[6, 3, 1]] * 3 and first.num_images == 10
    np.testing.assert_array_equal(first.psd, again.psd)
    np.testing.assert_array_equal(first.priority.psd, again.priority.psd)
    np.testing.assert_array_equal(first.edits[0].psd, again.edits[0].psd)
    assert (first.psd != other.psd).any()
    every = frequency_audit(looking_at_4, images)
    assert every.num_images == 40 and taken[-1] == [24, 12, 4]
    a_and_c = images.take(np.flatnonzero(images.targets != 1))  # the class b is empty
    assert frequency_audit(looking_at_4, a_and_c, max_images=7).num_images == 7


def test_batches_make_no_difference(looking_at_4, images, monkeypatch):
    whole = frequency_audit(looking_at_4, images, edits=[PoissonImage()])
    monkeypatch.setattr(importlib.import_module("crossgraft.audit.learning_priority"), "AT_ONCE", 7)  # a function, too
    parts = frequency_audit(looking_at_4, images, edits=[PoissonImage()])
    np.testing.assert_allclose(parts.priority.psd, whole.priority.psd, atol=1e-6)
    np.testing.assert_array_equal(parts.psd, whole.psd)
    np.testing.assert_array_equal(parts.edits[0].psd, whole.edits[0].psd)


def test_a_saved_model_knows_its_classes_by_name(images):
    spec = ModelSpec("small", "test_resnet", weights="random")
    common = {"workers": 1, "device": "cpu", "ledger": False, "store": False}
    model = crossgraft.fine_tune(images, model=spec, epochs=1, image_size=32, **common).model
    assert isinstance(model, SavedModel)
    found = frequency_audit(model, images, before=load_backbone(spec, image_size=32))
    assert found.priority.objective == "true labels" and found.before.psd is not None
    reordered = frequency_audit(model, images.select_classes(["c", "a", "b"]))
    np.testing.assert_array_equal(reordered.priority.psd, found.priority.psd)
    renamed = dataset_from_arrays([images.read(row) for row in range(4)], ["x", "y"] * 2, name="others")
    assert frequency_audit(model, renamed).priority.objective == "features"


def test_bad_input_of_the_audit(looking_at_4, images):
    classifier = make_classifier(looking_at_4, 5, seed=0)
    small = Preprocessing(16, 16, mean=(0.5,) * 3, std=(0.5,) * 3, resize_policy="squash")
    for call, error, said in (
        (lambda: frequency_audit(looking_at_4, images, max_images=0), UsageError, "at least 1, got 0"),
        (lambda: frequency_audit(looking_at_4, images, max_images=2), UsageError, "at least 3, one of each class; got 2"),
        (lambda: frequency_audit(looking_at_4, images, objective="true labels"), UsageError, "is a backbone"),
        (lambda: frequency_audit(classifier, images, objective="true labels"), UsageError, "does not have the classes"),
        (lambda: frequency_audit(classifier, images, objective="loss"), (UsageError, TypeError), None),
        (lambda: frequency_audit(classifier, images, before=backbone(Conv, small)), UsageError, "gets other inputs"),
        (lambda: frequency_audit(backbone(Conv, Preprocessing(4, 40)), images), DataError, "a side of 4 pixels"),
    ):
        with pytest.raises(error, match=said):
            call()
    broken = make_classifier(looking_at_4, 3, seed=0)
    with torch.no_grad():
        broken.head.weight.fill_(float("nan"))
    with pytest.raises(DataError, match="NaN or infinite"):
        frequency_audit(broken, images)


@pytest.fixture(scope="module")
def blobs():
    """The disease is one period across the image, beside noise. Three classes, two images per patient."""
    rng = np.random.default_rng(0)
    labels = np.repeat(rng.integers(0, 3, 60), 2)
    pixels = rng.normal(120, 12, (120, SIZE, SIZE, 1))
    pixels += (15 * (labels - 1) + rng.normal(0, 4, 120))[:, None, None, None] * wave(1)[:, :, None]
    pixels = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    groups = [f"p{number // 2}" for number in range(120)]
    return dataset_from_arrays(pixels, np.array(["low", "middle", "high"])[labels], groups=groups, name="blobs")


CLASSES = ["low", "middle", "high"]


def coarse(images):
    """Looks at that period alone."""
    amplitudes = np.array([2 * (image[:, :, 0] * wave(1)).mean() for image in images]).round(9)
    scores = np.exp(-(((amplitudes[:, None] - np.array([-15, 0, 15])) / 6) ** 2))
    return scores / scores.sum(axis=1, keepdims=True)


def coarse_subject():
    return subject_of(coarse, class_names=CLASSES)


def test_a_model_of_coarse_shapes_lives_on_low_frequencies(blobs):
    found = band_accuracy(coarse_subject(), blobs, cutoffs=(0.1, 0.3))
    assert (found.metric, found.positive, found.chance) == ("auc", "high", 0.5)
    assert [(row.kind, row.cutoff) for row in found.rows] == [("low", 0.1), ("low", 0.3), ("high", 0.1), ("high", 0.3)]
    assert found.clean.value > 0.95 and found.clean.num_groups == 60
    low, high = found.rows[:2], found.rows[2:]
    assert all(abs(row.value.value - found.clean.value) < 0.03 for row in low)
    assert all(row.value.low < 0.5 < row.value.high for row in high)
    assert all(row.edit.num_images == 120 and row.edit.rms > 1 for row in found.rows)
    edited = coarse([HighPass(cutoff=0.1)(blobs.read(row))[0] for row in range(120)])[:, 2]
    positives = blobs.labels == "high"
    pairs = edited[positives][:, None] - edited[~positives]
    assert high[0].value.value == pytest.approx(np.mean((pairs > 0) + 0.5 * (pairs == 0)))


def test_balanced_accuracy_is_of_all_classes(blobs):
    found = band_accuracy(coarse_subject(), blobs, cutoffs=[0.1], metric="balanced_accuracy")
    assert found.positive is None and found.chance == pytest.approx(1 / 3)
    low, high = found.rows
    assert found.clean.value > 0.8 and low.value.value > 0.8 and high.value.low < 1 / 3 < 0.5 > high.value.value
    decided = np.array(CLASSES)[coarse([LowPass(cutoff=0.1)(blobs.read(row))[0] for row in range(120)]).argmax(axis=1)]
    shares = [np.mean(decided[blobs.labels == name] == name) for name in CLASSES]
    assert low.value.value == pytest.approx(np.mean(shares))
    two = blobs.select_classes(["high", "low"])
    assert band_accuracy(coarse_subject(), two, cutoffs=[0.1], metric="balanced_accuracy").chance == 0.5


def test_the_ends_of_the_band(blobs):
    """Everything passes, or nothing but the mean."""
    found = band_accuracy(coarse_subject(), blobs, cutoffs=(0.0, 0.72), positive="low")
    values = {(row.kind, row.cutoff): row.value.value for row in found.rows}
    assert values["high", 0.0] == values["low", 0.72] == found.clean.value
    # every image is constant, but for one whose mean lies half way between two integers
    assert [values["low", 0.0], values["high", 0.72]] == pytest.approx([0.5, 0.5], abs=0.02)
    assert found.positive == "low" and len(CUTOFFS) == 8 and list(CUTOFFS) == sorted(CUTOFFS)


def test_bad_input_of_bands(blobs):
    subject = coarse_subject()
    several = dataset_from_arrays([blobs.read(row) for row in range(6)], np.eye(3, dtype=int)[[0, 1, 2] * 2], name="x")
    labels = subject_of(coarse, class_names=CLASSES)
    for call, error, said in (
        (lambda: band_accuracy(subject, blobs, cutoffs=()), UsageError, "No cutoff was given"),
        (lambda: band_accuracy(subject, blobs, cutoffs=(3.0,)), UsageError, "cycles per pixel"),
        (lambda: band_accuracy(subject, blobs, metric="f1"), (UsageError, TypeError), None),
        (lambda: band_accuracy(subject, blobs, metric="balanced_accuracy", positive="low"), UsageError, "of all classes"),
        (lambda: band_accuracy(subject, blobs, positive="sick"), DataError, "does not know the class sick"),
        (lambda: band_accuracy(subject, several), DataError, "several labels"),
        (lambda: band_accuracy(subject, blobs.select_classes(["low"])), DataError, "of two classes; all are of low"),
        (lambda: band_accuracy(labels, blobs.select_classes(["low", "middle"])), DataError, "no image of high"),
        (lambda: band_accuracy(subject_of(coarse, class_names=["x", *CLASSES[1:]]), blobs), DataError, "the class low"),
    ):
        with pytest.raises(error, match=said):
            call()


def test_risk_ranks_by_all_orders():
    overlaps, reliance = np.array([0.1, 0.4, 0.2, 0.5, 0.45]), np.array([0.0, 0.3, 0.1, 0.2, 0.2])
    found = risk_rank(overlaps, reliance)
    rho = spearmanr(overlaps, reliance).statistic
    orders = [spearmanr(overlaps, order).statistic for order in permutations(reliance)]
    assert found.spearman == pytest.approx(rho) and found.num_models == 5 and found.reason is None
    assert found.p_value == pytest.approx(np.mean([each >= rho - 1e-9 for each in orders]))
    assert risk_rank(list(range(6)), list(range(6))).p_value == pytest.approx(1 / 720)
    assert risk_rank(list(range(6)), list(range(6))[::-1]).p_value == 1


def test_risk_ranks_of_many_models_are_drawn_and_repeat():
    rng = np.random.default_rng(0)
    overlaps = rng.random(17)
    reliance = overlaps + 0.3 * rng.random(17)
    first, again = (risk_rank(overlaps, reliance, seed=3, num_permutations=999) for _ in range(2))
    assert first == again and first.spearman > 0.7 and first.p_value <= 0.01
    assert risk_rank(overlaps, rng.random(17)).p_value > 0.01


def test_risk_ranks_that_say_nothing():
    few = risk_rank([0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4])
    assert few.spearman is few.p_value is None and few.num_models == 4 and "5 are needed" in few.reason
    alike = risk_rank([0.1] * 6, list(range(6)))
    assert alike.spearman is None and "same value" in alike.reason
    for overlaps, reliance, said in (([0.1] * 5, [0.1] * 6, "got 5 and 6"), ([np.nan] * 5, [0.1] * 5, "finite")):
        with pytest.raises(DataError, match=said):
            risk_rank(overlaps, reliance)
