"""Predictions are those of the evaluation, whatever holds the images; labels are found by name."""

import functools
import json

import numpy as np
import pytest
import torch
from PIL import Image

import crossgraft
from crossgraft.compute import limit_threads
from crossgraft.data import open_dataset, prepare_batch
from crossgraft.errors import DataError, RunDirectoryError, UnreadableImageError, UsageError
from crossgraft.models.classifier import make_classifier
from crossgraft.models.load import load_backbone
from crossgraft.models.spec import ModelSpec
from crossgraft.tune.saving.save_model import describe_saved_model, save_model
from crossgraft.tune.saving.saved_model import answer, load_saved_model
from support.medical import ct_slice, write_ct
from support.tiny import make_images
from support.tuning_records import threshold, tuning_record

predict = functools.partial(crossgraft.predict, workers=1)
CLASSES = ("benign", "malignant")


def saved(folder, record):
    backbone = load_backbone(ModelSpec("small", "test_resnet", weights="random"), image_size=32)
    classifier = make_classifier(backbone, len(record.dataset.class_names), seed=0)
    with torch.no_grad():
        classifier.head.weight.mul_(100)  # so that images differ
    save_model(folder, classifier, describe_saved_model(record, classifier, seed=0))
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("run") / "model", tuning_record(class_names=CLASSES))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "images"
    make_images(folder, dict.fromkeys(CLASSES, 5))
    return folder


def logits_of(predictions):
    return np.asarray([row.logits for row in predictions.record.rows])


def test_logits_are_those_of_the_evaluation(model, folder):
    dataset = open_dataset(folder)
    images = prepare_batch([dataset.read(row) for row in range(10)], load_saved_model(model).classifier.preprocessing)
    with limit_threads(1):
        expected = load_saved_model(model).logits(images).numpy()
    assert np.abs(expected - expected.mean(axis=0)).max() > 1e-3
    assert (logits_of(predict(model, folder)) == expected).all()
    for size in (1, 3):
        np.testing.assert_allclose(logits_of(predict(model, folder, batch_size=size)), expected, rtol=0, atol=1e-5)


def test_every_form_of_the_images_gives_the_same(model, folder, tmp_path):
    expected = logits_of(predict(model, folder))
    dataset = open_dataset(folder)
    pixels = np.stack([dataset.read(row) for row in range(10)])
    names = [dataset.image_name(row) for row in range(10)]
    table = folder / "rows.csv"
    table.write_text("\n".join(["path", *names]))
    np.savez(tmp_path / "a.npz", images=pixels)
    for form in (dataset, pixels, list(pixels), table, tmp_path / "a.npz"):
        assert (logits_of(predict(model, form)) == expected).all()
    table.unlink()
    one = predict(model, folder / names[3])
    np.testing.assert_allclose(logits_of(one)[0], expected[3], rtol=0, atol=1e-5)
    assert list(one.names) == ["03.png"]


def test_probabilities_are_calibrated_and_decisions_are_by_the_threshold(model, folder):
    predictions = predict(model, folder)
    frame = predictions.to_frame()
    scaled = logits_of(predictions) / 1.83
    expected = np.exp(scaled) / np.exp(scaled).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(frame[["probability benign", "probability malignant"]], expected, atol=1e-9)
    assert frame["decision"].tolist() == [CLASSES[int(p >= 0.41)] for p in expected[:, 1]]
    assert frame["predicted"].tolist() == [CLASSES[int(p > 0.5)] for p in expected[:, 1]]
    np.testing.assert_allclose(frame["probability"], expected.max(axis=1))
    assert frame["image"].tolist()[:2] == ["benign/00.png", "benign/01.png"]


def test_a_threshold_moves_decisions_and_not_probabilities():
    record = tuning_record(class_names=CLASSES, calibration=None)
    facts = _facts(record)
    logits = np.log(np.array([[0.55, 0.45], [0.65, 0.35]], dtype=np.float32))
    assert answer(facts, logits).decisions == [["malignant"], ["benign"]]
    plain = answer(facts.model_copy(update={"thresholds": []}), logits)
    assert plain.decisions == [["benign"], ["benign"]]
    np.testing.assert_allclose(plain.certainty, [0.55, 0.65], atol=1e-6)


def test_labels_are_decided_one_by_one_and_none_is_an_answer():
    names = ("oedema", "effusion")
    facts = _facts(tuning_record(class_names=names, task="multi-label", calibration=None))
    facts = facts.model_copy(update={"thresholds": [threshold("effusion", 0.9)]})
    p = np.array([[0.6, 0.8], [0.4, 0.95], [0.1, 0.2]])
    found = answer(facts, np.log(p / (1 - p)).astype(np.float32))
    assert found.decisions == [["oedema"], ["effusion"], []]
    np.testing.assert_allclose(found.probabilities, p, atol=1e-6)
    np.testing.assert_allclose(found.certainty, [0.2, 0.2, 0.6], atol=1e-6)


def _facts(record):
    backbone = load_backbone(ModelSpec("small", "test_resnet", weights="random"), image_size=32)
    classifier = make_classifier(backbone, len(record.dataset.class_names), seed=0)
    return describe_saved_model(record, classifier, seed=0)


def test_metrics_are_measured_where_classes_are_known_whatever_their_order(model, folder, tmp_path):
    predictions = predict(model, folder)
    frame = predictions.to_frame()
    (accuracy,) = [row for row in predictions.record.metrics if row.metric == "accuracy"]
    assert accuracy.value == pytest.approx((frame["decision"] == frame["target"]).mean())
    assert (accuracy.low, accuracy.split) != (None, "test")
    swapped = tmp_path / "swapped"
    (swapped / "malignant").mkdir(parents=True)
    (swapped / "malignant" / "x.png").write_bytes((folder / "benign" / "00.png").read_bytes())
    alone = predict(model, swapped)
    assert alone.record.rows[0].target == "malignant"
    truth = float(alone.record.rows[0].decision == "malignant")
    assert next(row.value for row in alone.record.metrics if row.metric == "accuracy") == truth


def test_classes_that_the_model_does_not_know_are_predicted_and_not_measured(model, folder):
    dataset = open_dataset(folder)
    rows = [dataset.read(row) for row in range(10)]
    from crossgraft.data import dataset_from_arrays

    known = predict(model, dataset_from_arrays(rows[:6], ["benign", "malignant", "cyst"] * 2))
    assert known.record.metrics[0].num_images == 4
    assert "The model does not know the classes cyst; 2 images" in known.record.warnings[0]
    strange = predict(model, dataset_from_arrays(rows[:4], ["a", "b"] * 2))
    assert strange.record.metrics == []
    assert "nothing is measured" in strange.record.warnings[0]
    assert predict(model, np.stack(rows)).record.warnings == []


def test_the_training_images_are_recognised(folder, tmp_path):
    record = tuning_record(class_names=CLASSES)
    data = record.dataset.model_copy(update={"fingerprint": open_dataset(folder).fingerprint})
    own = saved(tmp_path / "model", record.model_copy(update={"dataset": data}))
    assert "too high" in predict(own, folder).record.warnings[0]


def test_images_that_were_trained_on_are_counted_one_by_one(folder, tmp_path):
    own = saved(tmp_path / "model", tuning_record(class_names=CLASSES))
    known = [digest.hex() for digest in open_dataset(folder).image_digests[:3]]
    (tmp_path / "training_images.json").write_text(json.dumps(known))
    record = (mixed := predict(tmp_path, folder)).record
    (warning,) = record.warnings
    assert warning.startswith("3 of 10 images had a part in the fine-tuning")
    assert warning.endswith("They are not measured: the metrics are of 7 other images.")
    assert (record.num_seen, record.metrics[0].num_images) == (3, 7)
    assert mixed.to_frame()["seen"].tolist() == [True] * 3 + [False] * 7
    (tmp_path / "training_images.json").write_text(json.dumps(["ab" * 32]))
    unseen = predict(own, folder)
    assert (unseen.record.warnings, unseen.record.num_seen) == ([], 0)
    assert "seen" not in unseen.to_frame()
    (tmp_path / "training_images.json").write_text(json.dumps([d.hex() for d in open_dataset(folder).image_digests]))
    everything = predict(own, folder).record
    assert "too high" in everything.warnings[0]
    assert everything.metrics[0].num_images == 10
    (tmp_path / "training_images.json").write_text("{")
    with pytest.raises(DataError, match=r"training_images.json is damaged.*remove it"):
        predict(own, folder)


def test_an_unreadable_image_is_named_or_keeps_a_row(model, tmp_path):
    make_images(tmp_path / "new", {"visit": 3})
    (tmp_path / "new" / "visit" / "01.png").write_bytes(b"nothing")
    with pytest.raises(UnreadableImageError, match=r"visit/01\.png"):
        predict(model, tmp_path / "new")
    frame = predict(model, tmp_path / "new", skip_unreadable=True).to_frame()
    assert frame["decision"].tolist()[1] == "unreadable"
    assert frame["image"].tolist() == ["visit/00.png", "visit/01.png", "visit/02.png"]
    assert frame["problem"].isna().tolist() == [True, False, True]


def test_16_bit_images_keep_their_levels(model, tmp_path):
    levels = np.arange(32 * 32, dtype=np.uint16).reshape(32, 32) * 60
    Image.fromarray(levels).save(tmp_path / "deep.png")
    fine = logits_of(predict(model, tmp_path / "deep.png"))
    assert (fine == logits_of(predict(model, levels[None]))).all()
    coarse = logits_of(predict(model, (levels // 257).astype(np.uint8)[None]))
    assert 0 < np.abs(fine - coarse).max() < 0.2


def test_the_run_directory_holds_names_in_the_table_only(model, folder, tmp_path):
    predictions = predict(model, folder, out=tmp_path / "out")
    assert "benign/00.png" in (tmp_path / "out" / "predictions.csv").read_text()
    assert (tmp_path / "out" / "predictions.csv").read_text().splitlines()[0].startswith("image,predicted,probability")
    for name in ("report.json", "report.html", "run.json"):
        text = (tmp_path / "out" / name).read_text()
        assert "00.png" not in text
        assert str(tmp_path) not in text
    assert json.loads(predictions.to_json())["rows"][0]["name"] == "benign/00.png"
    assert len(json.loads((tmp_path / "out" / "thumbnails.json").read_text())) == 10
    predict(model, folder, out=tmp_path / "named", show_names=True, no_images=True)
    assert "benign/00.png" in (tmp_path / "named" / "report.html").read_text()
    assert json.loads((tmp_path / "named" / "thumbnails.json").read_text()) == []
    assert "benign/00.png" in predictions._repr_html_()
    assert "10 images" in repr(predictions)


def test_another_model_in_the_same_directory_is_refused(model, folder, tmp_path):
    predict(model, folder, out=tmp_path / "out", no_images=True)
    predict(model, folder, out=tmp_path / "out", no_images=True)
    other = saved(tmp_path / "other", tuning_record(class_names=("a", "b", "c"), thresholds=[]))
    with pytest.raises(RunDirectoryError, match="another configuration"):
        predict(other, folder, out=tmp_path / "out", no_images=True)


def test_wrong_arguments_are_named(model, folder):
    with pytest.raises(UsageError, match="at least 1"):
        predict(model, folder, batch_size=0)
    with pytest.raises(UsageError, match="label_column belongs to opening"):
        predict(model, open_dataset(folder), label_column="x")


def test_images_of_scanners_are_read_as_in_training(tmp_path):
    pytest.importorskip("pydicom")
    record = tuning_record(class_names=CLASSES)
    backbone = load_backbone(ModelSpec("small", "test_resnet", weights="random"), image_size=32)
    classifier = make_classifier(backbone, 2, seed=0)
    with torch.no_grad():
        classifier.head.weight.mul_(100)
    for name, window in (("own", None), ("wide", "-600,1500")):
        save_model(tmp_path / name, classifier, describe_saved_model(record, classifier, seed=0, window=window))
    write_ct(tmp_path / "scan.dcm", ct_slice(3), patient="1")
    own, wide = (logits_of(predict(tmp_path / name, tmp_path / "scan.dcm")) for name in ("own", "wide"))
    assert np.abs(own - wide).max() > 1e-3
    assert (logits_of(predict(tmp_path / "own", tmp_path / "scan.dcm", window="-600,1500")) == wide).all()
    make_images(tmp_path / "photos", {"a": 1})  # where a window has no meaning it is no obstacle
    assert len(predict(tmp_path / "wide", tmp_path / "photos")) == 1
