"""``crossgraft compare``: where weights and features of two models lie, and what a body still knows of other images."""

import numpy as np
import pytest
import timm
import torch

import crossgraft as package
from crossgraft.compare.record import ModelComparisonRecord
from crossgraft.data import Split
from crossgraft.data.rows import ImageRows
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.geometry import interpolation_path, parameter_distance, sharpness
from crossgraft.models import Backbone, load_backbone, read_zoo
from crossgraft.models.recipe import network_recipe
from crossgraft.tune.saving.saved_model import load_saved_model
from crossgraft.types import Preprocessing
from support.tiny import make_images

CODE = ("--code", "tiny_models.py", "--workers", "1")
TUNED = (*CODE, "--epochs", "1", "--no-store", "--holdout", "0.5", "--val-fraction", "0")
QUICK = {"allow_code": "tiny_models.py", "workers": 1, "device": "cpu", "ledger": False}


@pytest.fixture
def runs(workspace, run_once):
    """Two fine-tuned networks of other widths, and other images."""
    run_once("tune", "images", "--model", "zoo.yaml:narrow", *TUNED, out="one")
    run_once("tune", "images", "--model", "zoo.yaml:wide", *TUNED, out="other")
    make_images(workspace / "elsewhere", {"cat": 10, "dog": 10}, size=20)
    return workspace


def test_what_applies_is_measured_and_what_does_not_says_why(runs, crossgraft):
    done = crossgraft("compare", "one", "other", "--data", "images", *CODE, "--out", "two")
    assert done.code == 0, done.err
    found = ModelComparisonRecord.model_validate_json((runs / "two" / "report.json").read_bytes()).geometry
    assert found.asked == ["feature_map", "parameter_distance", "filters"]
    assert found.feature_map is None and "A has 8, B has 12" in found.notes["feature_map"][0]
    assert found.parameter_distance == [] and "different architectures" in found.notes["parameter_distance"][0]
    assert [row.network for row in found.filters.networks] == ["A", "B"]
    lines = " ".join(done.out.split())
    assert "- Features in one plane: Not measured: a common plane needs features of one width" in lines
    assert "Gabor-likeness of first filters: A not assessable, B not assessable." in lines
    html = (runs / "two" / "report.html").read_text()
    assert all(f">{title}<" in html for title in ("Features in one plane", "How far weights lie apart", "First-layer filters"))
    assert html.index("Shared mistakes") < html.index("Features in one plane") < html.index("Data and checks")


def test_each_image_is_decoded_once_whatever_is_measured(runs, monkeypatch):
    reads, read = [], ImageRows.read
    monkeypatch.setattr(ImageRows, "read", lambda rows, index: (reads.append(index), read(rows, index))[1])
    none = package.compare_models("one", "other", data="images", geometry="none", **QUICK)
    assert none.record.geometry is None
    without = sorted(reads)
    reads.clear()
    found = package.compare_models("one", "other", data="images", geometry="sharpness", **QUICK).record.geometry
    assert sorted(reads) == without and [row.network for row in found.sharpness.rows] == ["A", "B"]
    assert "not built alike" in found.notes["sharpness"][0] and not found.sharpness.is_comparable


def test_a_start_and_its_fine_tuning_by_every_measure_that_applies(runs):
    (start,) = read_zoo("zoo.yaml:narrow", allow_code="tiny_models.py")
    record = package.compare_models(start, "one", data="images", geometry="all", probe="elsewhere", out="change", **QUICK).record
    found, backbone = record.geometry, load_backbone(start)
    tuned = load_saved_model("one", allow_code="tiny_models.py").classifier
    (apart,) = found.parameter_distance
    expected = parameter_distance(tuned, backbone)
    assert (apart.first, apart.second, apart.num_weights) == ("A", "B", expected.num_weights)
    assert apart.distance.l2 == pytest.approx(expected.l2)
    data = package.open_dataset("images", use_split=None)
    split = Split.load(runs / "one" / "split.json")
    test, train = (data.take(np.sort(split.rows(part))) for part in ("test", "train"))
    (row,) = found.sharpness.rows
    assert row.network == "B" and "A (narrow) has no head" in found.notes["sharpness"][0]
    assert row.one_step == pytest.approx(sharpness(tuned, test).value, rel=1e-5)
    assert row.many_steps == pytest.approx(sharpness(tuned, test, steps=10).value, rel=1e-5)
    path = found.interpolation_path
    assert (path.start, path.end, len(path.points)) == ("A under the head of B", "B", 11)
    last = interpolation_path(tuned, tuned, test, train_images=train, alphas=[]).points[-1]
    assert path.points[-1].loss == pytest.approx(last.loss) and path.points[0].cka == pytest.approx(1)
    assert [each.network for each in found.feature_map.networks] == ["A", "B"] and found.feature_map.reference == "A"
    assert found.tsne is not None or "needs 12 images of one class" in found.notes["tsne"][0]
    assert found.attention is None and "vision transformer" in found.notes["attention"][0]
    forgotten = found.forgetting
    assert (forgotten.data, forgotten.reference) == ("elsewhere", "A") and forgotten.num_train + forgotten.num_test <= 20
    assert [each.difference is None for each in forgotten.rows] == [True, False]
    html = (runs / "change" / "report.html").read_text()
    assert "Linear probes on elsewhere have an accuracy of" in html
    titles = ("What was forgotten", "Features in one plane", "Between the two networks", "Sharpness", "First-layer filters")
    assert [html.index(f">{title}<") for title in titles] == sorted(html.index(f">{title}<") for title in titles)


def test_looks_at_the_images_of_probes_are_counted(runs, monkeypatch):
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(runs / "ledger"))
    asked = {"geometry": "none", "data": "images", **QUICK, "ledger": True}
    first = package.compare_models("one", "other", probe="elsewhere", **asked).record
    assert (first.looks.number, first.looks.num_results, first.probe_looks.number) == (2, 2, 1)  # two trainings, one probe
    again = package.compare_models("one", "other", probe="elsewhere", **asked).record
    assert (again.looks.number, again.probe_looks.number) == (2, 1)  # the same networks on the same images
    (start,) = read_zoo("zoo.yaml:narrow", allow_code="tiny_models.py")
    third = package.compare_models(start, "one", probe="elsewhere", out="probed", **asked).record
    assert (third.looks.number, third.looks.num_results) == (3, 2)  # the start has no head that could be the best
    probed = package.compare_models(start, "one", linear_probe=True, **asked).record
    assert (probed.looks.number, probed.looks.num_results) == (4, 3)  # a probe has an accuracy
    assert third.probe_looks.number == 2 and third.probe_looks.by_command == {"compare": 2}
    html = (runs / "probed" / "report.html").read_text()
    assert "Linear probes on elsewhere: this is the 2nd look at these test images (2 × compare)" in html
    assert package.compare_models("one", "other", **asked).record.probe_looks is None


def test_one_start_of_both_stands_once(runs):
    asked = {"data": "images", "before": "zoo.yaml:narrow", "geometry": "feature_map,parameter_distance,interpolation_path"}
    found = package.compare_models("one", "one", **asked, **QUICK).record.geometry
    apart = {(row.first, row.second): row.distance.l2 for row in found.parameter_distance}
    assert list(apart) == [("A", "B"), ("A before", "A"), ("A before", "B")]
    assert apart["A", "B"] == 0 < apart["A before", "A"] == apart["A before", "B"]
    assert found.feature_map.reference == "A before" and len(found.feature_map.networks) == 3
    assert (found.interpolation_path.start, found.interpolation_path.end) == ("A", "B") and found.notes == {}


def test_vision_transformers_are_asked_where_they_look(runs):
    def transformer(seed):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module = timm.create_model("test_vit", pretrained=False, num_classes=3, img_size=32)
        return Backbone(
            module,
            name=f"vit-{seed}",
            architecture="test_vit",
            source="timm",
            preprocessing=Preprocessing(32, 32, 3, (0.5,) * 3, (0.5,) * 3, "bilinear", "squash", 1.0),
            family="vit",
            network=network_recipe("test_vit", {"num_classes": 3, "img_size": 32}),
        )

    found = package.compare_models(
        transformer(0),
        transformer(1),
        data="images",
        geometry=[],
        source_images="elsewhere",
        layers="blocks.0",
        out="vit",
        **QUICK,
    )
    geometry = found.record.geometry
    assert geometry.asked == ["attention"] and geometry.attention.reference == "A"
    assert geometry.source_attention.num_images == 20 and geometry.source_attention.images == "20 images of the source"
    assert 0 < geometry.attention.networks[1].overlap < 1 and len(geometry.attention.networks[1].attention) == 4
    html = found.report.read_text()
    assert 'id="attention"' in html and 'id="attention-source"' in html and "data:image/png;base64" in html


def test_what_was_asked_for_and_cannot_be_is_named(runs, crossgraft):
    unknown = crossgraft("compare", "one", "other", "--data", "images", *CODE, "--geometry", "sharpnes,filters")
    assert unknown.code == 2 and "Did you mean sharpness?" in unknown.err
    with pytest.raises(UnknownNameError, match="measure of geometry: pca"):
        package.compare_models("one", "other", data="images", geometry="pca", **QUICK)
    for asked, said in {
        "attention": "--geometry attention does not apply to these models: none of the models is a vision transformer",
        "parameter_distance": "--geometry parameter_distance does not apply to these models: A and B: the networks",
        "feature_map": "--geometry feature_map does not apply to these models: a common plane needs features of one width",
        "all,none": "contradicts itself",
    }.items():
        with pytest.raises(UsageError, match=said):
            package.compare_models("one", "other", data="images", geometry=asked, **QUICK)
    np.savez("first.npz", features=np.random.default_rng(0).standard_normal((12, 5)))
    with pytest.raises(UsageError, match="--probe is about images, and none are given"):
        package.compare_models("first.npz", "first.npz", probe="elsewhere", **QUICK)
    make_images(runs / "few", {"cat": 3, "dog": 3})
    with pytest.raises(DataError, match="do not do for a linear probe"):
        package.compare_models("one", "other", data="images", probe="few", **QUICK)
