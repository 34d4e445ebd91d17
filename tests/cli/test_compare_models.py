"""``crossgraft compare``: two models, layer by layer, in their features and in their mistakes."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

import crossgraft as package
from crossgraft.compare.record import ModelComparisonRecord
from crossgraft.data import Split
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import DataError, RunDirectoryError, UnknownNameError, UsageError
from crossgraft.models import load_backbone, read_zoo
from crossgraft.similarity import linear_cka, prediction_similarity
from crossgraft.tune.saving.saved_model import load_saved_model
from support.few_pages import leave_out_pages
from support.tiny import make_images

CODE = ("--code", "tiny_models.py", "--workers", "1")
TUNED = (*CODE, "--epochs", "1", "--no-store", "--holdout", "0.5", "--val-fraction", "0")
QUICK = {"allow_code": "tiny_models.py", "workers": 1, "device": "cpu", "ledger": False}


@pytest.fixture
def runs(workspace, run_once):
    """Two fine-tuned networks of the same images."""
    run_once("tune", "images", "--model", "zoo.yaml:narrow", *TUNED, out="one")
    run_once("tune", "images", "--model", "zoo.yaml:wide", *TUNED, out="other")
    return workspace


def record_of(folder):
    return ModelComparisonRecord.model_validate_json((folder / "report.json").read_bytes())


def test_every_number_is_that_of_its_measure(runs, crossgraft):
    before = "--before", "zoo.yaml:narrow,zoo.yaml:wide"
    command = ("compare", "one", "other", "--data", "images", *before, "--linear-probe", *CODE)
    done = crossgraft(*command)
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == "Report: runs/compare-images/report.html"
    record = record_of(runs / "runs" / "compare-images")
    assert [(pair.first, pair.second, pair.of) for pair in record.pairs] == [
        ("A", "B", "models"),
        ("A before", "A", "change"),
        ("B before", "B", "change"),
        ("A before", "B before", "before"),
    ]
    data = package.open_dataset("images", use_split=None)
    rows = np.sort(Split.load(runs / "one" / "split.json").rows("test"))
    saved = [load_saved_model(name, allow_code="tiny_models.py") for name in ("one", "other")]
    given = [_looked(each.classifier, data, rows) for each in saved]
    pair = record.pairs[0]
    for i, row in enumerate(pair.cka.rows):
        for j, column in enumerate(pair.cka.columns):
            expected = linear_cka(given[0]["layers"][row], given[1]["layers"][column], debiased=True)
            assert pair.cka.values[i][j] == pytest.approx(expected, abs=1e-6)
    assert pair.cka.rows == ["body.0", "body.2"] and pair.cka.estimator == "debiased linear cka"
    assert pair.measured("cka").value == pytest.approx(linear_cka(given[0]["features"], given[1]["features"]), abs=1e-6)
    found = prediction_similarity(*(each["classes"] for each in given), data.targets[rows])
    assert (pair.mistakes.value, pair.mistakes.independent_high) == pytest.approx((found, found.high))
    assert not pair.mistakes.by_probe and record.pairs[1].mistakes.by_probe
    assert record.model("A before").probe_train_images == len(Split.load(runs / "one" / "split.json").rows("train"))
    changed = record.pairs[1]
    assert changed.cka.rows == changed.cka.columns and len(changed.cca) == 2
    assert changed.cca[0].positions == len(rows) * 49 and changed.cca[0].positions_asked_for == 20_000
    assert all(each.cka_untrained is not None and each.measured("cka").untrained is not None for each in record.pairs)
    frames = [pd.read_csv(runs / "runs" / "compare-images" / f"{name}.csv") for name in ("features", "layers")]
    assert len(frames[0]) == 40 and set(frames[1]["of"]) == {"models", "untrained"}
    html = (runs / "runs" / "compare-images" / "report.html").read_text()
    assert str(runs) not in html and "These networks" in html and "A before and after fine-tuning" in html
    shown = json.loads((runs / "runs" / "compare-images" / "thumbnails.json").read_text())
    said = np.array([[answer["decision"] for answer in each["answers"]] for each in shown])
    assert said.T.tolist() == [[data.class_names[place] for place in each["classes"]] for each in given]
    assert [each["row"] - 1 for each in shown] == rows.tolist() and "Image by image" in html
    again = crossgraft(*command, "--quiet")
    assert again.code == 0 and again.out.splitlines()[-1] == done.out.splitlines()[-1]
    other = crossgraft("compare", "one", "other", "--data", "images", *CODE, "--quiet", "--seed", "1")
    assert other.out.splitlines()[-1] == "Report: runs/compare-images-2/report.html"


def _looked(classifier, data, rows):
    batch = prepare_batch([data.read(int(row)) for row in rows], classifier.preprocessing)
    with torch.no_grad():
        outputs, layers = batch, {}
        for number, part in enumerate(classifier.body.body):
            outputs = part(outputs)
            if number in (0, 2):
                layers[f"body.{number}"] = outputs.mean((2, 3)).numpy()
        features, logits = classifier.features_and_logits(batch)
    return {"layers": layers, "features": features.numpy(), "classes": logits.argmax(1).numpy()}


def test_a_start_and_its_fine_tuning_are_a_change(runs):
    (start,) = read_zoo("zoo.yaml:narrow", allow_code="tiny_models.py")
    found = package.compare_models(start, "one", data="images", **QUICK)
    assert found.record.pairs[0].of == "change"
    assert found.summary().startswith("Fine-tuning left the penultimate features at a debiased CKA of")
    assert "The layer that changed most is" in found.summary()
    assert "no head for these classes (--linear-probe" in found.record.pairs[0].mistakes_reason
    backbone = load_backbone(start)
    same = package.compare_models(backbone, start, data="images", **QUICK).record.pairs[0]
    assert same.measured("cka").value == pytest.approx(1) and same.of == "models"
    assert same.measured("procrustes").value == pytest.approx(0, abs=1e-6)
    with pytest.raises(UsageError, match="A was not fine-tuned from wide"):
        package.compare_models("one", "one", data="images", before="zoo.yaml:wide", **QUICK)
    with pytest.raises(UsageError, match="names the starts of A and B"):
        package.compare_models("one", "one", data="images", before=["a", "b", "c"], **QUICK)


def test_features_on_disk_stand_in_for_a_model(runs):
    random = np.random.default_rng(0)
    rows = random.standard_normal((12, 5))
    np.savez("first.npz", block=rows, features=rows @ random.standard_normal((5, 3)), dead=np.ones((12, 2)))
    np.savez("second.npz", block=rows[:, :2], dead=np.zeros((12, 4)))
    found = package.compare_models("first.npz", "second.npz", layers="block,dead", **QUICK).record
    (pair,) = found.pairs
    assert found.dataset is None and pair.cka_untrained is None
    assert pair.cka.values[0][0] == pytest.approx(linear_cka(rows, rows[:, :2], debiased=True))
    assert pair.cka.left_out_rows == {"dead": "all images have the same features"}
    assert "same features in y" in pair.measured("cca").reason  # its last array is the dead one
    assert pair.mistakes is None and "features without images" in pair.mistakes_reason
    beside = package.compare_models("one", "first.npz", data="images", **QUICK).record
    assert beside.pairs[0].cka.rows == ["body.0", "body.2"] and beside.num_images == 12
    np.savez("short.npz", block=rows[:7])
    with pytest.raises(DataError, match=r"B \(short\) has features of 7 images; what is compared are 12 of them, or all 24"):
        package.compare_models("one", "short.npz", data="images", **QUICK)
    np.savez("three.npz", block=rows[:3])
    with pytest.raises(DataError, match="at least 4 images; there are 3"):
        package.compare_models("three.npz", "three.npz", **QUICK)
    with pytest.raises(UnknownNameError, match="array of first: blok"):
        package.compare_models("first.npz", "second.npz", layers="blok", **QUICK)
    np.savez("nan.npz", block=np.where(rows > 1, np.nan, rows))
    with pytest.raises(DataError, match="some of block are NaN or infinite"):
        package.compare_models("first.npz", "nan.npz", layers="block", **QUICK)
    with pytest.raises(UsageError, match="--before is about networks"):
        package.compare_models("one", "first.npz", data="images", before="zoo.yaml:narrow", **QUICK)
    with pytest.raises(UsageError, match="give --data"):
        package.compare_models("one", "first.npz", **QUICK)


def test_other_images_and_other_classes(runs, crossgraft):
    make_images(runs / "others", {"cat": 10, "dog": 10}, size=20)
    refused = crossgraft("compare", "one", "other", "--data", "others", *CODE)
    assert refused.code == 3 and "split was made for 24 other images" in refused.err and "--other-data" in refused.err
    allowed = package.compare_models("one", "other", data="others", other_data=True, **QUICK)
    pair = allowed.record.pairs[0]
    assert pair.mistakes is None and "benign, malignant apart, and these images are cat, dog" in pair.mistakes_reason
    assert pair.measured("cka").value > 0 and "may have learned" in allowed.record.notes[0]
    with pytest.raises(UnknownNameError, match=r"layer of narrow: body\.1x"):
        package.compare_models("one", "other", data="images", layers="body.1x", **QUICK)
    with pytest.raises(UsageError, match="B is a int"):
        package.compare_models("one", 3, data="images", **QUICK)


def test_folds_and_splits_that_do_not_fit_are_named(runs, crossgraft, monkeypatch):
    leave_out_pages(monkeypatch, of_comparisons=True)
    folds = ("tune", "images", "--model", "zoo.yaml:narrow", *CODE, "--epochs", "1", "--no-store", "--folds", "3")
    assert crossgraft(*folds, "--out", "folds").code == 0
    with pytest.raises(RunDirectoryError, match="one model per fold, and a comparison needs one"):
        package.compare_models("folds", "one", data="images", **QUICK)
    fold = package.compare_models("folds/folds/fold-1", "zoo.yaml:wide", data="images", **QUICK).record
    assert fold.images_in_words == "8 test rows of fold 1"
    whole = json.loads((runs / "folds" / "report.json").read_text())
    assert fold.dataset.fingerprint == whole["dataset"]["fingerprint"]
    for pair in (("folds/folds/fold-1", "folds/folds/fold-2"), ("one", "folds/folds/fold-1")):
        with pytest.raises(UsageError, match="have other test rows"):
            package.compare_models(*pair, data="images", **QUICK)


def test_a_comparison_of_fine_tunings_of_an_earlier_version_goes_on(runs, crossgraft, monkeypatch):
    """``tune --compare`` once wrote to ``runs/compare-images``, which ``compare`` uses now."""
    leave_out_pages(monkeypatch, of_comparisons=False)
    tune = ("tune", "images", "--model", "tiny_models:tiny", *CODE, "--epochs", "1", "--no-store", "--compare", "linear,l2_sp")
    old = crossgraft(*tune, "--out", "runs/compare-images", "--quiet")
    assert old.code == 0, old.err
    again = crossgraft(*tune, "--json", "--quiet")
    assert again.code == 0 and not (runs / "runs" / "tune-compare-images").exists()
    assert json.loads(again.out)["seconds"] == json.loads((runs / "runs/compare-images/report.json").read_text())["seconds"]
    assert crossgraft("compare", "one", "other", "--data", "images", *CODE, "--quiet").code == 0
    assert record_of(runs / "runs" / "compare-images-2").num_images == 12
    assert crossgraft(*tune, "--seed", "3", "--quiet").code == 0
    assert (runs / "runs" / "tune-compare-images" / "report.json").is_file()


def test_a_start_takes_images_as_its_fine_tuning_does(runs, run_once, crossgraft):
    run_once("tune", "images", "--model", "zoo.yaml:narrow", *TUNED, "--image-size", "24", out="small")
    command = ("--data", "images", *CODE, "--no-ledger", "--geometry", "none")
    done = crossgraft("compare", "zoo.yaml:narrow", "small", *command, "--out", "change")
    assert done.code == 0, done.err
    record = record_of(runs / "change")
    assert record.models[0].images_become == record.models[1].images_become and record.pairs[0].is_a_change
    assert any(note.startswith("A (narrow) takes images as its fine-tuning does (") for note in record.notes)
    (narrow,) = read_zoo("zoo.yaml:narrow", allow_code="tiny_models.py")
    data = package.open_dataset("images", use_split=None)
    rows = np.sort(Split.load(runs / "small" / "split.json").rows("test"))
    saved = load_saved_model("small", allow_code="tiny_models.py").classifier
    start, batch = load_backbone(narrow, image_size=24), [data.read(int(row)) for row in rows]
    features = [
        start(prepare_batch(batch, start.preprocessing)).features.numpy(),
        saved.features_and_logits(prepare_batch(batch, saved.preprocessing))[0].detach().numpy(),
    ]
    expected = linear_cka(*features, debiased=True)
    assert record.pairs[0].measured("cka_debiased").value == pytest.approx(expected, abs=1e-6)
    before = package.compare_models("one", "small", data="images", before="zoo.yaml:narrow", **QUICK).record
    taken = {each.label: each.images_become for each in before.models}
    assert taken["A before"] == taken["A"] != taken["B"] == taken["B before"]
    three = package.compare_models("zoo.yaml:narrow", "small", data="images", before="zoo.yaml:narrow", **QUICK).record
    assert len({each.images_become for each in three.models}) == 1
    crossgraft("compare", "zoo.yaml:narrow", "small", *command, "--image-size", "20", "--out", "asked")
    page = (runs / "asked" / "report.html").read_text(encoding="utf-8")
    assert "A and B take images in two ways" in page
    assert "take images in two ways" not in (runs / "change" / "report.html").read_text(encoding="utf-8")
