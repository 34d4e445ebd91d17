"""One face for saved runs, graphs, classifiers and functions: the same images, the same probabilities."""

import os

import numpy as np
import pytest

import crossgraft
from crossgraft.audit.subjects import Subject, subject_of
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.errors import DataError, RunDirectoryError, UsageError
from crossgraft.export.onnx_model import INPUT
from crossgraft.models import ModelSpec
from crossgraft.tune.saving.saved_model import load_saved_model


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    labels = np.arange(40) % 2
    pixels = random.integers(0, 120, (40, 32, 32, 3)) + (100 * labels)[:, None, None, None]
    return dataset_from_arrays(pixels.astype(np.uint8), ["no", "yes"] * 20, name="some")


@pytest.fixture(scope="module")
def tuned(data, tmp_path_factory):
    spec = ModelSpec("small", "test_resnet", weights="random")
    out = tmp_path_factory.mktemp("subjects") / "run"
    common = {"workers": 1, "device": "cpu", "ledger": False}
    return crossgraft.fine_tune(data, model=spec, epochs=1, image_size=32, out=out, **common)


def test_a_run_is_one_subject_however_it_is_given(tuned, data):
    expected = np.array([row.probabilities for row in tuned.predict(data).record.rows])
    for model in (tuned, tuned.out, str(tuned.out), load_saved_model(tuned.out)):
        subject = subject_of(model)
        np.testing.assert_allclose(subject.probabilities(data), expected, atol=1e-6)
        assert subject.class_names == ("no", "yes") and subject.name == "small" and subject.model is not None
    assert subject_of(subject) is subject


def test_an_exported_graph_says_the_same(tuned, data, tmp_path):
    pytest.importorskip("onnxruntime")
    exported = crossgraft.export_model(tuned, out=tmp_path / "exported", format="onnx")
    subject = subject_of(exported.out / "model.onnx")
    assert subject.class_names == ("no", "yes") and "model.onnx" in subject.name
    np.testing.assert_allclose(subject.probabilities(data), subject_of(tuned).probabilities(data), atol=1e-4)


def test_a_graph_that_fails_when_it_is_run_is_named(tuned, data, tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    exported = crossgraft.export_model(tuned, out=tmp_path / "exported", format="onnx")
    path = exported.out / "model.onnx"
    graph = onnx.load(path)
    graph.graph.input[0].name = "other"
    for node in graph.graph.node:
        node.input[:] = ["other" if name == INPUT else name for name in node.input]
    onnx.save(graph, path)
    with pytest.raises(DataError, match=r"model\.onnx can be read, but fails on images of shape"):
        subject_of(path).probabilities(data)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_is_no_graph(tmp_path):
    pytest.importorskip("onnxruntime")
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(DataError, match="is a folder, a pipe or a device"):
        subject_of(tmp_path / "pipe.onnx")


def test_a_function_and_a_classifier_get_lists_of_images(data):
    sizes = []

    def bright(images):
        sizes.append(len(images))
        share = np.array([image.mean() / 255 for image in images])
        return np.column_stack([1 - share, share])

    class Learned:
        classes_ = np.array([0, 1])
        predict_proba = staticmethod(bright)

    asked = subject_of(bright, class_names=["no", "yes"])
    assert asked.name == "bright" and asked.class_names == ("no", "yes")
    found = asked.probabilities(data)
    np.testing.assert_allclose(found[:, 1], [data.read(row).mean() / 255 for row in range(40)])
    np.testing.assert_array_equal(subject_of(Learned()).probabilities(data), found)
    assert subject_of(Learned()).class_names == ("0", "1")
    one = subject_of(lambda images: bright(images)[:, 1], class_names=["no", "yes"])
    np.testing.assert_array_equal(one.probabilities(data), found)
    many = data.take(np.arange(130) % 40)
    sizes.clear()
    asked.probabilities(many)
    assert sizes == [64, 64, 2]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda images: np.ones((len(images), 3)) / 3, "shape"),
        (lambda images: np.ones((1, 2)) / 2, r"shape \(1, 2\) for a batch of 40 images"),
        (lambda images: np.ones((len(images), 2, 1)) / 2, "shape"),
        (lambda images: 0.5, r"shape \(\) for a batch of 40 images"),
        (lambda images: None, r"shape \(\) for a batch of 40 images"),
        (lambda images: ["ill"] * len(images), "no array of numbers"),
        (lambda images: [[0.5, 0.5], *[[0.5]] * (len(images) - 1)], "no array of numbers"),
        (lambda images: np.full((len(images), 2), np.nan), "no probabilities"),
        (lambda images: np.full((len(images), 2), 2.0), "no probabilities"),
        (lambda images: np.full((len(images), 2), 0.9), "do not sum to 1"),
    ],
)
def test_answers_that_are_none(data, answer, said):
    with pytest.raises(DataError, match=said):
        subject_of(answer, class_names=["no", "yes"]).probabilities(data)


def test_rows_are_counted_batch_by_batch(data):
    """A row too many in one batch and one too few in the next would give images the answers of others."""
    sizes = iter([65, 63, 2])
    subject = subject_of(lambda images: np.full((next(sizes), 2), 0.5), class_names=["no", "yes"])
    with pytest.raises(DataError, match=r"shape \(65, 2\) for a batch of 64 images"):
        subject.probabilities(data.take(np.arange(130) % 40))


def test_bad_subjects(tmp_path):
    (tmp_path / "broken.onnx").write_bytes(b"nothing")
    for model, error, said in (
        (lambda images: images, UsageError, "classes of function are not known"),
        (tmp_path / "nowhere", RunDirectoryError, "nowhere"),
        (tmp_path / "broken.onnx", DataError, "broken.onnx"),
    ):
        with pytest.raises(error, match=said):
            subject_of(model)
    with pytest.raises(UsageError, match="cannot be asked about images"):
        subject_of(3, class_names=["a", "b"])
    assert Subject("x", ("a",), lambda *_: np.ones((1, 1))).partitions
