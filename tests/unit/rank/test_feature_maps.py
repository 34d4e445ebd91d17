"""Maps of features: what is drawn and written is what the equations say, on images that nothing was fitted to."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

from crossgraft.models import ModelSpec
from crossgraft.rank import feature_maps
from crossgraft.rank.feature_maps import (
    LOSS_WEIGHTS,
    architecture_kind,
    feature_spread,
    itm_by_weight,
    pretraining_kind,
    projected_features,
    way_of_itm,
)
from crossgraft.scores import itm, itm_dispersion


def problem(num_images=60, num_features=8, num_classes=3, *, separation=1.5, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(num_images) % num_classes
    centres = separation * rng.standard_normal((num_classes, num_features))
    return (centres[labels] + rng.standard_normal((num_images, num_features))).astype(np.float32), labels


def neighbours(known, its_labels, asked, labels):
    """Mean probability of the own class by scikit-learn's five nearest neighbours."""
    classifier = KNeighborsClassifier(5).fit(known, its_labels)
    return classifier.predict_proba(asked)[np.arange(len(asked)), labels].mean()


def test_features_are_shown_as_they_are_and_after_maps_that_some_images_were_not_fitted_to():
    features, labels = problem()
    held_out = np.arange(45, 60)
    found = projected_features(features, labels, held_out, seed=0)
    plain, nca, lda = found.panels
    assert (found.num_images, found.num_fitted, found.held_out) == (60, 45, list(range(45, 60)))
    assert found.classes == labels.tolist()
    assert [panel.title for panel in found.panels] == ["Features", "After NCA", "After LDA"]
    expected = neighbours(features[:45], labels[:45], features[45:], labels[45:])
    assert plain.held_out_share == pytest.approx(expected)
    assert nca.fitted_share > plain.fitted_share
    assert lda.shares is not None and sum(lda.shares) == pytest.approx(1)  # three classes: two directions
    discriminant = LinearDiscriminantAnalysis().fit(features[:45], labels[:45])  # of features as large, nothing is shrunk
    bent = discriminant.transform(features)
    expected = neighbours(bent[:45], labels[:45], bent[45:], labels[45:])
    assert lda.held_out_share == pytest.approx(expected, abs=0.03)
    centred = features - features.mean(axis=0)
    values = np.linalg.eigvalsh(centred.T @ centred)[::-1]
    assert plain.shares == pytest.approx(values[:2] / values.sum(), rel=1e-4)
    assert np.square(plain.points).sum() == pytest.approx(values[:2].sum(), rel=1e-3)


def test_lda_that_learns_by_heart_is_seen_on_held_out_images():
    features, _ = problem(60, 100, 2, separation=0)
    labels = np.random.default_rng(1).integers(0, 2, 60)
    lda = projected_features(features, labels, np.arange(45, 60), seed=0).panels[2]
    assert lda.fitted_share > 0.95
    assert lda.held_out_share < 0.8
    assert lda.shares is None  # two classes: one direction


@pytest.mark.parametrize("held_out", [np.arange(2), np.zeros(0, dtype=int)])
def test_what_cannot_be_mapped_says_why(held_out):
    labels = np.array([0, 1, 0, 1, 2])
    constant = projected_features(np.ones((5, 3), dtype=np.float32), labels, held_out, seed=0)
    assert (constant.panels, constant.reason) == ([], "All features are constant.")
    few = projected_features(problem(5, 3)[0], labels, held_out, seed=0)
    assert (few.panels[0].held_out_share is None) == (len(held_out) == 0)


def test_as_many_classes_as_images_have_no_lda():
    features, labels = problem(4, 3, 4)
    found = projected_features(features, labels, np.zeros(0, dtype=int), seed=0)
    assert [panel.title for panel in found.panels] == ["Features", "After NCA"]
    assert found.reason == "LDA needs classes with different images."


def test_the_way_of_itm_ends_where_its_accuracy_does():
    features, labels = problem(90)
    value = itm(features, labels, embeddings=True, eta=0.4, seed=2)
    way = way_of_itm(features, labels, value.arrays, eta=0.4, seed=2)
    first, *evolved, centres = way.panels
    assert [panel.title for panel in evolved] == [
        "E⁽ⁿ⁾ before training", "E⁽ⁿ⁾ after 100 steps", "E⁽ⁿ⁾ after 300 steps", "E⁽ⁿ⁾ after 500 steps"
    ]  # fmt: skip
    assert [panel.accuracy for panel in evolved] == [value.arrays["accuracy"][place] for place in (0, 1, 3, 5)]
    assert evolved[-1].accuracy == value.parts["last"]
    assert centres.accuracy is None
    places = {
        label: {point for point, own in zip(centres.points, way.classes, strict=True) if own == label} for label in range(3)
    }
    assert all(len(of_class) == 1 for of_class in places.values())
    assert way.classes == labels[value.arrays["rows"]].tolist()
    rest = np.setdiff1d(np.arange(90), value.arrays["rows"])
    standard = (features - features.mean(axis=0)) / features.std(axis=0, ddof=1)
    means = np.stack([standard[rest][labels[rest] == label].mean(axis=0) for label in range(3)])
    nearest = np.linalg.norm(standard[value.arrays["rows"]][:, None] - means, axis=2).argmin(axis=1)
    assert first.accuracy == np.mean(nearest == labels[value.arrays["rows"]])


def test_without_validation_images_there_is_no_way():
    features, labels = problem(3)
    way = way_of_itm(features, labels, itm(features, labels, embeddings=True).arrays, eta=0.5, seed=0)
    assert way.panels == [] and "none is held out" in way.reason


def test_many_images_are_represented_by_some(monkeypatch):
    for name, most in (("MOST_FITTED", 60), ("MOST_HELD_OUT", 30), ("MOST_DRAWN", 45)):
        monkeypatch.setattr(feature_maps, name, most)
    features, labels = problem(150, 4)
    held_out = np.arange(100, 150)
    found = projected_features(features, labels, held_out, seed=0)
    assert (found.num_images, found.num_fitted) == (90, 60)
    assert len(found.classes) == len(found.panels[0].points) == 45
    assert np.bincount(found.classes).tolist() == [15, 15, 15]
    assert found == projected_features(features, labels, held_out, seed=0)


def test_the_first_weight_of_the_pull_is_the_score_itself():
    features, labels = problem(separation=0.5)
    found = itm_by_weight("a", features, labels, None, eta=0.3, seed=1)
    assert found.values[0] == itm(features, labels, eta=0.3, seed=1)
    assert found.values[3] == itm(features, labels, eta=0.3, seed=1, lambda_pc=LOSS_WEIGHTS[3])


def test_spread_is_over_all_values():
    features, labels = problem()
    found = feature_spread("a", features, labels)
    assert (found.mean, found.standard_deviation) == pytest.approx((features.mean(), features.std()), rel=1e-5)
    assert found.dispersion == itm_dispersion(features, labels)


class Attention(nn.Module):
    pass


class ChannelAttention(nn.Module):
    pass


@pytest.mark.parametrize(
    ("layers", "kind"),
    [
        ([nn.Conv2d(3, 3, 16), Attention()], "transformer"),
        ([nn.Conv2d(3, 3, 3) for _ in range(4)], "convolutional"),
        ([*(nn.Conv2d(3, 3, 3) for _ in range(4)), ChannelAttention()], "convolutional"),
        ([*(nn.Conv2d(3, 3, 3) for _ in range(4)), nn.MultiheadAttention(4, 1)], "attention and convolutions"),
        ([nn.Linear(2, 2)], "other"),
    ],
)
def test_kind_of_architecture_is_that_of_its_layers(layers, kind):
    assert architecture_kind(nn.Sequential(*layers)) == kind


@pytest.mark.parametrize(
    ("spec", "source", "tag", "kind"),
    [
        ({"pretraining": "episodes"}, "timm", "mae", "episodes"),
        ({}, "timm", "mae", "masked images"),
        ({}, "timm", "dino", "instance discrimination"),
        ({}, "timm", "laion2b_ft_in12k", "images and text"),
        ({}, "timm", "augreg_in21k_ft_in1k", "labels"),
        ({"weights": "own.safetensors"}, "checkpoint", "mae", "not said"),
        ({}, "factory", "mae", "not said"),
    ],
)
def test_way_of_pretraining_is_said_by_the_zoo_or_by_timm(spec, source, tag, kind):
    module = nn.Module()
    module.pretrained_cfg = {"tag": tag}
    assert pretraining_kind(ModelSpec("a", "b", **spec), source, module) == kind
