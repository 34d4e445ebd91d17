"""Programs of torch.export and ONNX: loaded without crossgraft they say what the model says."""

import json

import numpy as np
import pytest
import torch

from crossgraft import export_model
from crossgraft.data.transforms import normalise_images
from crossgraft.export import graph
from crossgraft.models.adapted import add_adapters
from crossgraft.models.adapters import AdapterRecipe
from crossgraft.tasks import recorded_task
from support.exported import NAMES, library_classifier, own_classifier, saved, vit_classifier

MEAN_IS_INSIDE = "mean and standard deviation are inside"


def expected(model, images):
    """Logits and probabilities of the classifier itself, by the way that predictions go."""
    with torch.no_grad():
        logits = model.classifier(normalise_images(images, model.classifier.preprocessing, full_range=1)).numpy()
    return logits, recorded_task(model.facts).probabilities(logits, model.facts.temperature)


def read_torch(folder):
    inside = {"description.json": ""}
    module = torch.export.load(folder / "model.pt2", extra_files=inside).module()
    return lambda images: [output.detach().numpy() for output in module(images)], json.loads(inside["description.json"])


def read_onnx(folder):
    import onnxruntime

    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    description = json.loads(session.get_modelmeta().custom_metadata_map["crossgraft"])
    return lambda images: session.run(None, {"images": images.numpy()}), description


READ = {"torch": read_torch, "onnx": read_onnx}


def check(folder, model, format, *, batches=(1, 3, 7)):
    answer, description = READ[format](folder)
    for number in batches:
        size = (model.classifier.preprocessing.height_pixels, model.classifier.preprocessing.width_pixels)
        images = torch.rand(number, 3, *size, generator=torch.Generator().manual_seed(number))
        logits, probabilities = expected(model, images)
        found = answer(images)
        assert found[0] == pytest.approx(logits, abs=1e-5 * max(1.0, float(np.abs(logits).max())))
        assert found[1] == pytest.approx(probabilities, abs=1e-5)
        assert np.ptp(found[0], axis=0).max() > 1e-4 or number == 1  # another image, another answer
    assert description == json.loads((folder / "description.json").read_text())
    assert description["class_names"] == model.facts.class_names
    assert description["temperature"] == model.facts.temperature
    assert MEAN_IS_INSIDE in description["input"]
    return description


@pytest.mark.parametrize("format", READ)
def test_a_network_that_does_not_run_is_no_limit_of_an_exporter(tmp_path, monkeypatch, format):
    monkeypatch.setattr(graph, "activate", None)
    with pytest.raises(TypeError, match="not callable"):
        export_model(saved(own_classifier()), format=format, out=tmp_path / format)


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """A small network of one's own in both formats; tracing takes seconds."""
    folder = tmp_path_factory.mktemp("exports")
    model = saved(own_classifier())
    return model, {name: export_model(model, format=name, out=folder / name) for name in READ}


@pytest.mark.parametrize("format", READ)
def test_a_graph_says_what_the_model_says_for_any_batch(exports, format):
    model, exported = exports
    description = check(exported[format].out, model, format)
    assert description["thresholds"] == {}
    assert description["decision"] == "the most probable class"
    agreement = exported[format].record.agreement
    assert agreement.largest_logit_difference <= agreement.allowed_logit_difference
    assert agreement.largest_probability_difference <= agreement.allowed_probability_difference
    assert (agreement.num_images, agreement.batch_sizes) == (8, [1, 2, 5])


@pytest.mark.parametrize("format", READ)
def test_no_place_of_this_machine_is_in_any_file(exports, format):
    import zipfile

    folder = exports[1][format].out
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(contents) == {READ_FILE[format], "description.json", "MODEL_CARD.md", "export.json"}
    if format == "torch":
        with zipfile.ZipFile(folder / "model.pt2") as archive:
            contents |= {name: archive.read(name) for name in archive.namelist()}
    for name, content in contents.items():
        assert not [word for word in (b"site-packages", b'.py"', b"/src/", b"/home/", b"/tmp/") if word in content], name


READ_FILE = {"torch": "model.pt2", "onnx": "model.onnx"}


def test_the_card_shows_how_it_is_used_and_the_code_runs(exports, monkeypatch):
    import re

    for exported in exports[1].values():
        card = (exported.out / "MODEL_CARD.md").read_text()
        (code,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
        images = torch.rand(4, 3, 32, 32)
        names = {"images": images if exported.record.format == "torch" else images.numpy()}
        monkeypatch.chdir(exported.out)
        exec(code, names)
        assert names["class_names"] == list(NAMES)
        assert tuple(names["probabilities"].shape) == (4, 3)
        assert "Research use, not a medical device" in card


def test_several_labels_are_sigmoids_without_a_temperature(tmp_path):
    model = saved(own_classifier(), several_labels=True, temperature=None)
    description = check(export_model(model, format="torch", out=tmp_path / "x").out, model, "torch")
    assert description["decision"] == "every label whose probability reaches 0.5"
    assert description["temperature"] is None


def test_two_classes_keep_their_threshold(tmp_path):
    model = saved(own_classifier(2), temperature=0.05)  # probabilities close to 0 and 1
    description = check(export_model(model, format="torch", out=tmp_path / "x").out, model, "torch")
    assert description["thresholds"] == {"malignant": 0.41}
    assert description["decision"] == "malignant where its probability reaches its threshold, else benign"


def test_adaptformer_is_a_part_of_the_graph(tmp_path):
    import copy

    classifier = copy.deepcopy(vit_classifier())
    options = {"bottleneck": 4, "scale": 0.5, "dropout": 0.0, "norm": "none"}
    bare = saved(copy.deepcopy(classifier))
    add_adapters(classifier, [AdapterRecipe("adaptformer", classifier.blocks[0], options)], seed=0)
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in classifier.named_parameters():
            if name in classifier.adapter_parameters:
                parameter.add_(torch.randn(parameter.shape, generator=random))
    model = saved(classifier)
    images = torch.rand(2, 3, 32, 32, generator=random)
    assert np.abs(expected(model, images)[0] - expected(bare, images)[0]).max() > 1e-3
    check(export_model(model, format="torch", out=tmp_path / "x").out, model, "torch")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["test_vit", "test_resnet", "test_efficientnet", "test_convnext"])
def test_networks_of_timm(name, tmp_path):
    """In the format that translates the program which the other one keeps as it is."""
    model = saved(library_classifier(name))
    check(export_model(model, format="onnx", out=tmp_path / "x").out, model, "onnx")


@pytest.mark.slow
def test_a_head_that_cannot_be_put_back_is_in_the_graph(tmp_path):
    model = saved(library_classifier("torchvision:squeezenet1_1", size=64), several_labels=True)
    check(export_model(model, format="onnx", out=tmp_path / "x").out, model, "onnx")


@pytest.mark.slow
def test_weights_that_are_too_large_for_one_file_lie_beside_it(tmp_path, monkeypatch):
    from crossgraft.export import onnx_model

    monkeypatch.setattr(onnx_model, "LARGEST_FILE_BYTES", 100)
    model = saved(own_classifier())
    exported = export_model(model, format="onnx", out=tmp_path / "x")
    check(exported.out, model, "onnx")
    assert "model.onnx.data" in [file.name for file in exported.record.files]
