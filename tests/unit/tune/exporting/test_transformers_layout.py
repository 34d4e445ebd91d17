"""Weights for transformers: it alone, by the lines of the card, gives the logits of the model."""

import json

import pytest
import torch
from safetensors.torch import load_file

from crossgraft import export_model
from crossgraft.errors import ExportError
from crossgraft.models import load_backbone
from crossgraft.models.classifier import make_classifier
from support.exported import NAMES, saved
from support.transformers_folders import transformers, write_folder

from .test_graphs import check
from .test_safetensors import close, logits, prepared, run_card

WITHOUT_HEAD = [
    f"{name}Model"
    for name in ("Beit", "CLIPVision", "ConvNext", "Dinov2", "DINOv3ViT", "IJepa", "SiglipVision", "Swin", "Swinv2", "ViT")
]
WITH_HEAD = ["ViTForImageClassification", "Dinov2ForImageClassification"]
GRAPHS = [
    *((name, "onnx") for name in (*WITHOUT_HEAD, WITH_HEAD[1])),
    *((name, "torch") for name in ("ConvNextModel", "Swinv2Model", WITH_HEAD[0])),
]
"""Both formats write the same program, which ONNX translates besides."""


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A model with logits of a natural size on a small random network of this class; with a pooler or without."""
    made = {}

    def make(name, size=None):
        if (name, size) not in made:
            folder = tmp_path_factory.mktemp(name)
            write_folder(folder, name)
            classifier = make_classifier(load_backbone(f"transformers:{folder}", image_size=size), 3, seed=0).eval()
            with torch.no_grad():
                classifier.head.weight.mul_(30)
            made[name, size] = saved(classifier)
        return made[name, size]

    return make


@pytest.mark.parametrize(("name", "size"), [*((name, None) for name in (*WITHOUT_HEAD, *WITH_HEAD)), ("ViTModel", 48)])
def test_transformers_alone_gives_the_same_logits(name, size, tuned, tmp_path, monkeypatch):
    model = tuned(name, size)
    exported = export_model(model, out=tmp_path / "x")
    assert exported.record.loads_with == "transformers"
    images = prepared(model)
    card = (tmp_path / "x" / "README.md").read_text().replace("FOLDER_OF_THIS_CARD", ".")
    with torch.no_grad():
        found = run_card(card, tmp_path / "x", monkeypatch, images=images)
    expected = logits(model.classifier, images)
    assert close(found["logits"], expected) and expected.std(dim=0).max() > 1e-3
    assert found["probabilities"].shape == (3, 3)
    said = json.loads((tmp_path / "x" / "config.json").read_text())
    assert said["architectures"] == [name]
    if name in WITH_HEAD:
        assert said["id2label"] == {str(place): label for place, label in enumerate(NAMES)}
        assert not (tmp_path / "x" / "head.safetensors").exists()
    else:
        assert set(load_file(tmp_path / "x" / "head.safetensors")) == {"weight", "bias"}
        assert (
            transformers.AutoModel.from_pretrained(tmp_path / "x", local_files_only=True).config.model_type == said["model_type"]
        )


@pytest.mark.parametrize("name", ["Siglip2VisionModel", "ViTMAEModel"])
def test_networks_that_take_more_than_images_are_refused(name, tuned, tmp_path):
    with pytest.raises(ExportError, match=r"Use --format torch or onnx"):
        export_model(tuned(name), out=tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "format"), GRAPHS)
def test_graphs_of_every_kind_say_the_same(name, format, tuned, tmp_path):
    if format == "onnx":
        pytest.importorskip("onnxruntime")
    export_model(tuned(name), format=format, out=tmp_path / "x")
    check(tmp_path / "x", tuned(name), format, batches=(1, 3))
