"""The figure of a layer in several fine-tunings: principal components of each network, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import torch

from crossgraft import compare_fine_tunings
from crossgraft.data import dataset_from_arrays
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.saving.saved_model import load_saved_model
from crossgraft.variants.layer_pca import principal_components, with_signs_of
from crossgraft.variants.record import FineTuningComparisonRecord

pytestmark = pytest.mark.usefixtures("tiny_models")
FAST = {"model": "tiny_models:tiny", "epochs": 2, "workers": 1, "device": "cpu", "store": False, "no_images": True}
LAYER = "body.2"


def compare(data, layer, **more):
    return compare_fine_tunings(data, **{"compare": "full,scratch", **FAST, **more}, layer_pca=layer).record


def by_hand(run, dataset, rows):
    """Components of the layer in a saved model, from its covariance."""
    classifier = load_saved_model(run, allow_code="tiny_models:tiny").classifier
    images = TrainingImages(dataset, classifier.preprocessing)
    prepared = images.normalise(images.read(torch.as_tensor(rows)))
    with torch.no_grad():
        maps = classifier.body.body[:3](prepared)  # as far as the second convolution
    features = maps.mean((2, 3)).double().numpy()
    features -= features.mean(axis=0)
    values, vectors = np.linalg.eigh(features.T @ features)
    return features @ vectors[:, [-1, -2]], values[[-1, -2]] / values.sum()


def test_each_variant_has_its_own_components_of_all_test_images(squares, tmp_path, page):
    record = compare(squares, LAYER, out=tmp_path / "run")
    assert record == FineTuningComparisonRecord.model_validate_json((tmp_path / "run" / "report.json").read_bytes())
    found = record.layer_pca
    assert (found.layer, found.seed, [panel.variant for panel in found.panels]) == (LAYER, 0, ["full", "scratch"])
    assert found.num_images == len(found.classes) == next(row.num_images for row in record.splits if row.name == "test")
    assert record.layer_pca == compare(squares, LAYER).layer_pca
    first, second = (np.array(panel.points) for panel in found.panels)
    assert ((first * second).sum(axis=0) >= 0).all()
    said = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Features of a layer" in said and "not places, directions and units" in said


def test_the_components_are_those_of_the_layer(squares, tmp_path):
    found = compare(squares, LAYER, out=tmp_path / "run").layer_pca
    rows = pd.read_csv(tmp_path / "run" / "trainings" / "full-0" / "predictions.csv")["row"].to_numpy() - 1
    for panel in found.panels:
        points, shares = by_hand(tmp_path / "run" / "trainings" / f"{panel.variant}-0", squares, rows)
        assert panel.shares == pytest.approx(shares, rel=1e-4)
        signs = np.sign((points * np.array(panel.points)).sum(axis=0))
        assert np.array(panel.points) == pytest.approx(points * signs, rel=1e-3, abs=1e-5)


def test_it_can_be_asked_for_when_all_trainings_are_done(squares, tmp_path, page):
    plain = compare(squares, None, out=tmp_path / "run")
    assert plain.layer_pca is None
    assert "Features of a layer" not in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    later = compare(squares, "auto", out=tmp_path / "run")
    assert later.layer_pca.layer == LAYER and later.trainings == plain.trainings


@pytest.mark.parametrize("layer", ["body.3", "fc", "bodi.2"])
def test_another_layer_is_refused_before_anything_is_trained(squares, layer, tmp_path):
    if layer == "body.3":  # a layer without weights is fine
        assert compare(squares, layer, epochs=1).layer_pca.layer == layer
        return
    with pytest.raises(UnknownNameError, match="layer"):
        compare(squares, layer, out=tmp_path / "run")
    assert not (tmp_path / "run" / "trainings").exists()


IDLE = """
from torch import nn
import tiny_models

def idle():
    model = tiny_models.tiny()
    model.spare = nn.Identity()
    return model
"""


def test_a_layer_that_does_not_run_is_refused_before_anything_is_trained(squares, tmp_path):
    (tmp_path / "idle_models.py").write_text(IDLE)
    with pytest.raises(UsageError, match="spare does not run"):
        compare(squares, "spare", model="idle_models:idle", out=tmp_path / "run")
    assert not (tmp_path / "run" / "trainings").exists()


def test_images_with_several_labels_are_refused():
    labels = np.random.default_rng(0).integers(0, 2, (60, 3))
    labels[:6] = np.eye(3, dtype=int).repeat(2, axis=0)
    data = dataset_from_arrays(np.zeros((60, 16, 16, 3), np.uint8), labels, class_names=["a", "b", "c"])
    with pytest.raises(UsageError, match="several labels"):
        compare(data, "auto", plan=True)


def test_axes_are_turned_as_the_first_network_has_them():
    first = np.array([[1.0, 2.0], [-1.0, 1.0], [0.0, -3.0]])
    turned = with_signs_of(first, first * [-2.0, 1.0])
    assert np.array_equal(turned, first * [2.0, 1.0])


@pytest.mark.parametrize(
    ("features", "reason"),
    [
        (np.ones((2, 5)), "2 images with 5 features"),
        (np.ones((5, 1)), "5 images with 1 features"),
        (np.ones((5, 3)), "the same for all images"),
        (np.full((5, 3), np.nan), "not finite"),
    ],
)
def test_where_there_are_no_components_there_is_a_reason(features, reason):
    assert reason in principal_components(features)
