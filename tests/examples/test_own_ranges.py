"""Networks whose pixels have ranges of their own: how images are prepared goes with them, into a run, a prediction and ONNX.

The packages are compared with where they are installed.
"""

import csv
import json
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from crossgraft.data.transforms import prepare_batch
from crossgraft.tune import load_saved_model
from support.workspace import crossgraft as crossgraft

from .conftest import EXAMPLES, forget

XRAY, MONAI = "torchxrayvision_densenet:densenet121", "monai_densenet:densenet121"
GREY = np.random.default_rng(0).integers(0, 256, (2, 224, 224, 1), dtype=np.uint8)
GREY[1] = GREY[1] // 3 + 40  # neither black nor white
LARGEST = 1024


def difference_of_range(found, expected):
    """Of pixels from -1024 to 1024, as a part of the largest."""
    return float(np.abs(np.asarray(found, np.float64) - expected).max()) / LARGEST


def test_pixels_of_torchxrayvision_go_from_minus_to_plus_1024(build):
    prepared = prepare_batch(list(GREY), build(XRAY).preprocessing)
    assert prepared.shape == (2, 1, 224, 224)
    assert difference_of_range(prepared[:, 0], (2 * (GREY[..., 0] / 255) - 1) * LARGEST) < 1e-6
    assert prepared.min() == pytest.approx(-LARGEST) and prepared.max() == pytest.approx(LARGEST)


def test_pixels_and_findings_are_those_of_torchxrayvision(build):
    xrv = pytest.importorskip("torchxrayvision")
    backbone = build(XRAY)
    theirs = xrv.models.DenseNet(weights=None).eval()
    theirs.load_state_dict(backbone.module.state_dict(), strict=True)
    prepared = prepare_batch(list(GREY), backbone.preprocessing)
    expected = np.stack([xrv.datasets.normalize(image[..., 0], 255) for image in GREY])
    assert difference_of_range(prepared[:, 0], expected) < 1e-6
    found = backbone(prepared)
    with torch.no_grad():
        torch.testing.assert_close(found.source_logits, theirs(prepared), rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(found.features, theirs.features2(prepared), rtol=1e-6, atol=1e-6)


def scaled(images):
    """Each image from its darkest to its brightest pixel, one after the other."""
    spans = [(image - image.min(), image.max() - image.min()) for image in images.astype(np.float64)]
    return np.stack([above / span if span else above for above, span in spans])


def test_each_image_is_scaled_by_itself(example):
    images = np.concatenate([GREY, np.full((1, 224, 224, 1), 7, np.uint8)])[..., 0][:, None]
    found = example("monai_densenet").ScaleIntensity()(torch.tensor(images / 255, dtype=torch.float32))
    np.testing.assert_allclose(found, scaled(images), atol=1e-6)


def test_pixels_and_outputs_are_those_of_monai(build):
    pytest.importorskip("monai")
    from monai.networks.nets import DenseNet121
    from monai.transforms import ScaleIntensity

    backbone = build(MONAI)
    theirs = DenseNet121(spatial_dims=2, in_channels=1, out_channels=2).eval()
    theirs.load_state_dict(backbone.module.state_dict(), strict=True)
    images = GREY[:, :64, :64]
    scale = ScaleIntensity()
    expected = torch.stack([torch.as_tensor(scale(image[..., 0][None].astype(np.float32))) for image in images])
    found = backbone(prepare_batch(list(images), backbone.preprocessing))
    with torch.no_grad():
        torch.testing.assert_close(found.source_logits, theirs(expected), rtol=1e-5, atol=1e-5)


@pytest.fixture
def grey_images(tmp_path, monkeypatch):
    """Two classes of eight grey images of middle brightness, so that answers are not all 0 or 1."""
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    for name, brightest in (("dim", 132), ("light", 150)):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(8):
            pixels = draw.integers(120, brightest, (32, 32), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "images" / name / f"{number}.png")
    before = set(sys.modules)
    yield tmp_path
    forget(set(sys.modules) - before)


@pytest.mark.parametrize("source", [XRAY, MONAI])
def test_the_range_goes_into_a_run_a_prediction_and_onnx(source, grey_images, crossgraft):
    if source == MONAI:
        pytest.importorskip("monai")
    onnxruntime = pytest.importorskip("onnxruntime")
    entry = {"name": "net", "source": source, "weights": "random", "kwargs": {"block_config": [1, 1], "num_classes": 5}}
    (grey_images / "zoo.yaml").write_text(json.dumps([entry]))
    own, quiet = ("--code", EXAMPLES), ("--workers", "1", "--quiet")
    settings = ("--image-size", "32", "--method", "linear", "--epochs", "1", "--device", "cpu")
    for command in (
        ("tune", "images", "--model", "zoo.yaml:net", *settings, *own, *quiet, "--out", "tuned"),
        ("predict", "tuned", "images", *own, *quiet, "--out", "predicted"),
        ("export", "tuned", "--format", "onnx", *own, "--quiet"),
    ):
        outcome = crossgraft(*command)
        assert outcome.code == 0, outcome.err
    model = load_saved_model(grey_images / "tuned", allow_code=EXAMPLES)
    paths = sorted((grey_images / "images").rglob("*.png"))
    images = np.stack([np.asarray(Image.open(path), np.float32)[None] / 255 for path in paths])
    inputs = (2 * images - 1) * LARGEST if source == XRAY else images
    with torch.no_grad():
        logits = model.classifier(torch.tensor(inputs))
    expected = (logits / (model.facts.temperature or 1.0)).softmax(1).numpy()
    with (grey_images / "predicted" / "predictions.csv").open() as file:
        rows = {row["image"]: row for row in csv.DictReader(file)}
    names = [path.relative_to(grey_images / "images").as_posix() for path in paths]
    found = [[float(rows[name][f"probability {each}"]) for each in model.facts.class_names] for name in names]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    session = onnxruntime.InferenceSession(next((grey_images / "tuned").rglob("model.onnx")), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"images": images})[1], expected, atol=1e-4)
