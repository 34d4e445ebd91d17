"""The line between two networks measured point by point, and probes that see what a body has lost."""

import copy

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch.nn import functional

from crossgraft.data import dataset_from_arrays
from crossgraft.errors import DataError, UsageError
from crossgraft.geometry import forgetting, forgetting_of_features, interpolate, interpolation_path
from crossgraft.similarity import linear_cka
from support.small_classifiers import SIZE, small_classifier

IMAGES = torch.randn(24, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
CLASSES = np.arange(24) % 3


def moved(name, scale=0.2):
    network = small_classifier(name)
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in network.parameters():
            weight.add_(scale * torch.randn(weight.shape, generator=draw))
    return network


def test_every_point_is_what_the_mixed_network_says():
    start, end = small_classifier("vit"), moved("vit")
    found = interpolation_path(start, end, IMAGES, CLASSES, alphas=[0.25], batch_size=7)
    assert [point.alpha for point in found.points] == [0, 0.25, 1]
    with torch.no_grad():
        reference = start.features(IMAGES).numpy()
        for point in found.points:
            features, logits = interpolate(start, end, point.alpha).features_and_logits(IMAGES)
            assert point.loss == pytest.approx(float(functional.cross_entropy(logits, torch.from_numpy(CLASSES))), rel=1e-5)
            assert point.cka == pytest.approx(linear_cka(reference, features.numpy()), rel=1e-5)
            assert point.cka_debiased == pytest.approx(linear_cka(reference, features.numpy(), debiased=True), rel=1e-4)
    first, middle, last = found.points
    inside = min(first.loss, last.loss) < middle.loss < max(first.loss, last.loss) and last.cka < middle.cka < 1
    assert found.between == {0.25: inside}


def test_statistics_between_the_ends_ask_for_training_images():
    start, end = small_classifier("cnn"), moved("cnn")
    end.body.norm.running_mean.add_(1)
    with pytest.raises(UsageError, match="Give the training images"):
        interpolation_path(start, end, IMAGES, CLASSES, alphas=[0.5])
    found = interpolation_path(start, end, IMAGES, CLASSES, alphas=[0.5], train_images=IMAGES)
    assert found.num_batch_norms == 1 and len(found.points) == 3
    with pytest.raises(UsageError, match="not built alike"):
        interpolation_path(small_classifier("vit"), end, IMAGES, CLASSES)
    with pytest.raises(UsageError, match=r"given: 0 to 1\.5"):
        interpolation_path(start, end, IMAGES, CLASSES, alphas=[1.5])
    with torch.no_grad():
        for weight in start.body.parameters():
            weight.zero_()
    constant = interpolation_path(start, start, IMAGES, CLASSES, alphas=[])
    assert [point.cka for point in constant.points] == [None, None]


def test_a_probe_is_logistic_regression_and_the_difference_is_paired_by_patient():
    draws = np.random.default_rng(0)
    labels = np.arange(90) % 3
    good = (draws.standard_normal((90, 4)) + 2 * np.eye(4)[labels]) * [1, 100, 0.01, 5] + 3  # scales do not matter
    lost = draws.standard_normal((90, 4))
    train, test = slice(0, 45), slice(45, 90)
    groups = np.arange(45) // 3
    found = forgetting_of_features(
        {"before": good[train], "after": lost[train]},
        {"before": good[test], "after": lost[test]},
        labels[train],
        labels[test],
        groups=groups,
    )
    mean, std = good[train].mean(0), good[train].std(0)
    probe = LogisticRegression(max_iter=2000).fit((good[train] - mean) / std, labels[train])
    right = probe.predict((good[test] - mean) / std) == labels[test]
    np.testing.assert_array_equal(found.bodies["before"].correct, right)
    change = found.bodies["after"].difference
    assert change.value == pytest.approx(found.bodies["after"].accuracy.value - right.mean())
    assert change.high < 0 and found.bodies["before"].difference is None
    assert found.bodies["after"].accuracy.num_groups == 15 and found.majority == pytest.approx(1 / 3)


def test_bodies_are_probed_on_images_and_what_says_nothing_is_refused():
    labels = np.arange(24) % 2
    pixels = np.random.default_rng(0).integers(0, 200, (24, SIZE, SIZE, 3)) + 50 * labels[:, None, None, None]
    data = dataset_from_arrays(pixels.clip(0, 255).astype(np.uint8), labels)
    networks = {"before": small_classifier("cnn"), "after": moved("cnn")}
    states = copy.deepcopy([each.state_dict() for each in networks.values()])
    found = forgetting(networks, data.take(np.arange(12)), data.take(np.arange(12, 24)))
    assert found.reference == "before" and found.num_train == 12
    assert 0 <= found.bodies["after"].accuracy.value <= 1
    for network, state in zip(networks.values(), states, strict=True):
        assert all(torch.equal(value, state[name]) for name, value in network.state_dict().items())
    with pytest.raises(UsageError, match="no body to probe"):
        forgetting({}, data, data)
    with pytest.raises(UsageError, match="The reference new is none of the bodies: before, after"):
        forgetting(networks, data, data, reference="new")
    features = {"before": np.ones((6, 2))}
    with pytest.raises(DataError, match="two classes or more"):
        forgetting_of_features(features, features, np.zeros(6), np.zeros(6))
    with pytest.raises(DataError, match="before hold NaN"):
        forgetting_of_features({"before": np.full((6, 2), np.nan)}, features, labels[:6], labels[:6])
