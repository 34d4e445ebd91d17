"""Weights for timm, torchvision and one's own code: the library alone gives the logits of the model."""

import copy
import json
import re

import pytest
import timm
import torch
from safetensors.torch import load_file
from torch import nn
from torchvision.models import vision_transformer

from crossgraft import export_model
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import ExportError
from crossgraft.models.adapted import add_adapters
from crossgraft.models.adapters import AdapterRecipe
from support.exported import NAMES, library_classifier, own_classifier, saved, vit_classifier
from support.small_classifiers import SmallCnn

DISTILLED = ("deit_tiny_distilled_patch16_224", {"depth": 1, "embed_dim": 24, "num_heads": 2})
RESIZED = ("swin_tiny_patch4_window7_224", {"depths": (1, 1, 1, 1), "embed_dim": 24})


def prepared(model, number=3):
    preprocessing = model.classifier.preprocessing
    size = (preprocessing.height_pixels, preprocessing.width_pixels)
    return torch.randn(number, 3, *size, generator=torch.Generator().manual_seed(number))


def logits(network, images):
    with torch.no_grad():
        return network(images)


def close(found, expected):
    return torch.allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [("test_resnet", {}), ("test_resnet", {"num_classes": 0}), ("mobilenetv3_small_050", {}), DISTILLED, RESIZED],
    ids=["linear head", "headless", "convolutional stem of a head", "two heads", "another size"],
)
def test_timm_alone_gives_the_same_logits(name, kwargs, tmp_path):
    model = saved(library_classifier(name, size=64, **kwargs))
    exported = export_model(model, out=tmp_path / "x")
    network = timm.create_model(f"local-dir:{tmp_path / 'x'}", pretrained=True).eval()
    images = prepared(model)
    assert close(logits(network, images), logits(model.classifier, images))
    assert logits(network, images).std(dim=0).max() > 1e-3
    assert (exported.record.loads_with, exported.record.notes) == ("timm", [])
    config = json.loads((tmp_path / "x" / "config.json").read_text())
    assert (config["architecture"], config["label_names"], config["num_classes"]) == (name, list(NAMES), 3)
    assert network.num_classes == 3


def test_timm_prepares_images_as_crossgraft_does(tmp_path):
    import numpy as np
    from PIL import Image

    model = saved(library_classifier("test_resnet"))
    export_model(model, out=tmp_path / "x")
    network = timm.create_model(f"local-dir:{tmp_path / 'x'}", pretrained=True)
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(network), is_training=False)
    picture = np.random.default_rng(0).integers(0, 255, (50, 41, 3), dtype=np.uint8)
    ours = prepare_batch([picture], model.classifier.preprocessing)[0]
    assert torch.allclose(transform(Image.fromarray(picture)), ours, atol=1e-5)


def test_a_model_for_torchvision_and_the_code_of_its_card(tmp_path, monkeypatch):
    model = saved(library_classifier("torchvision:shufflenet_v2_x0_5", size=64))
    exported = export_model(model, out=tmp_path / "x")
    assert exported.record.loads_with == "torchvision"
    assert exported.record.notes == ["timm cannot load it: it is a network of torchvision."]
    assert not (tmp_path / "x" / "config.json").exists()
    card = (tmp_path / "x" / "README.md").read_text()
    images = prepared(model)
    names = run_card(card, tmp_path / "x", monkeypatch, images=images)
    assert close(names["logits"].detach(), logits(model.classifier, images))
    assert "library_name" not in card


def test_a_network_of_ones_own_keeps_its_names(tmp_path, monkeypatch):
    model = saved(own_classifier())
    exported = export_model(model, out=tmp_path / "x")
    network = SmallCnn()
    network.fc = nn.Linear(8, 3)
    network.load_state_dict(load_file(tmp_path / "x" / "model.safetensors"))
    images = prepared(model)
    assert close(logits(network.eval(), images), logits(model.classifier, images))
    assert exported.record.loads_with == "your own code"
    assert "timm and torchvision cannot load it" in exported.record.notes[0]
    card = (tmp_path / "x" / "README.md").read_text()
    names = run_card(card, tmp_path / "x", monkeypatch, images=images, your_function=SmallCnn)
    assert close(names["logits"].detach(), logits(model.classifier, images))


def run_card(card, folder, monkeypatch, **names):
    (code,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    monkeypatch.chdir(folder)
    exec(code, names)
    return names


def test_the_card_begins_with_what_the_hub_reads(tmp_path):
    import yaml

    model = saved(library_classifier("test_resnet"))
    export_model(model, out=tmp_path / "x")
    header = yaml.safe_load((tmp_path / "x" / "README.md").read_text().split("---")[1])
    assert (header["library_name"], header["license"]) == ("timm", "apache-2.0")
    assert {"timm", "crossgraft"} <= set(header["tags"])
    unknown = model.facts.model.model_copy(update={"licence": "ask the authors: x"})
    export_model(saved(model.classifier, model=unknown), out=tmp_path / "y")
    assert "license" not in yaml.safe_load((tmp_path / "y" / "README.md").read_text().split("---")[1])


def test_a_head_with_layers_behind_it_is_refused(tmp_path):
    model = saved(library_classifier("torchvision:squeezenet1_1", size=64))
    with pytest.raises(ExportError, match=r"cannot be put in the place of its own: .* Use --format torch or onnx"):
        export_model(model, out=tmp_path / "deep" / "x")
    assert list(tmp_path.iterdir()) == []


def with_adapters(kind, options, layer):
    classifier = copy.deepcopy(vit_classifier())
    add_adapters(classifier, [AdapterRecipe(kind, f"{classifier.blocks[0]}{layer}", options)], seed=0)
    with torch.no_grad():
        for name, parameter in classifier.named_parameters():
            if name in classifier.adapter_parameters:
                parameter.add_(0.3)
    return saved(classifier)


def test_lora_becomes_a_part_of_the_weights(tmp_path):
    model = with_adapters("lora", {"r": 2, "alpha": 4.0}, ".attn.qkv")
    exported = export_model(model, out=tmp_path / "x")
    state = load_file(tmp_path / "x" / "model.safetensors")
    assert not [name for name in state if "lora" in name]
    assert "The adapters are part of the exported weights." in exported.record.notes
    assert not torch.equal(state["blocks.0.attn.qkv.weight"], vit_classifier().body.blocks[0].attn.qkv.weight)
    assert any("lora" in name for name in model.classifier.state_dict())  # the model itself stays as it was
    images = prepared(model)
    network = timm.models.VisionTransformer(img_size=32, patch_size=16, embed_dim=16, depth=1, num_heads=2, num_classes=3)
    network.load_state_dict(state)
    assert close(logits(network.eval(), images), logits(model.classifier, images))


def test_adaptformer_is_refused_by_name(tmp_path):
    model = with_adapters("adaptformer", {"bottleneck": 4, "scale": 0.5, "dropout": 0.0, "norm": "none"}, "")
    with pytest.raises(ExportError, match=r"adaptformer: its bottleneck is not linear.* Use --format torch or onnx"):
        export_model(model, out=tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_half_precision_is_exported_in_float32_and_said(tmp_path):
    model = saved(copy.deepcopy(own_classifier()).to(torch.bfloat16))
    exported = export_model(model, out=tmp_path / "x")
    assert exported.record.notes[0] == "The weights were bfloat16 and are exported as float32."
    state = load_file(tmp_path / "x" / "model.safetensors")
    assert {tensor.dtype for tensor in state.values() if tensor.is_floating_point()} == {torch.float32}
    assert model.classifier.head.weight.dtype == torch.bfloat16


@pytest.mark.slow
@pytest.mark.parametrize("name", ["test_vit", "test_efficientnet", "test_convnext", "levit_128s", "mobilenetv2_035"])
def test_more_networks_of_timm(name, tmp_path):
    model = saved(library_classifier(name, size=224 if name == "levit_128s" else 64))
    export_model(model, out=tmp_path / "x")
    network = timm.create_model(f"local-dir:{tmp_path / 'x'}", pretrained=True).eval()
    images = prepared(model)
    assert close(logits(network, images), logits(model.classifier, images))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vit_b_16", "googlenet"])
def test_torchvision_is_called_as_the_network_was_built(name, tmp_path, monkeypatch):
    build = vision_transformer._vision_transformer
    one_layer = lambda *args, num_layers, **options: build(*args, num_layers=1, **options)  # noqa: E731
    monkeypatch.setattr(vision_transformer, "_vision_transformer", one_layer)  # of twelve, which take seconds to draw and write
    exported = export_model(saved(library_classifier(f"torchvision:{name}", size=64)), out=tmp_path / "x")
    assert exported.record.agreement.largest_logit_difference < 1e-5
