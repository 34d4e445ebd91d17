"""For servers: a model repository of Triton, read back by a parser of its own, and OpenVINO, whose answers are compared."""

import json
import re
import sys

import numpy as np
import pytest
import torch

from crossgraft import export_model
from crossgraft.data.transforms import normalise_images
from crossgraft.errors import MissingExtraError, RunDirectoryError
from crossgraft.export.record import ExportedModelRecord
from crossgraft.export.source_model import example_images
from crossgraft.export.triton import configuration
from support.exported import own_classifier, saved

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def parsed(text):
    """Text form of a protocol buffer, literally: field → values, in order."""
    tokens = [token for line in text.splitlines() if not line.startswith("#") for token in _TOKEN.findall(line)]

    def message(end):
        fields = {}
        while tokens and tokens[0] != end:
            name = tokens.pop(0)
            if tokens[0] == ":":
                tokens.pop(0)
            fields.setdefault(name, []).append(value())
        if end:
            assert tokens.pop(0) == end
        return fields

    def value():
        token = tokens.pop(0)
        if token == "{":
            return message("}")
        if token == "[":
            listed = []
            while tokens[0] != "]":
                listed.append(value())
                if tokens[0] == ",":
                    tokens.pop(0)
            tokens.pop(0)
            return listed
        return json.loads(token) if token.startswith('"') or token.lstrip("-").isdigit() else token

    return message(None)


@pytest.fixture(scope="module")
def model():
    return saved(own_classifier())


@pytest.fixture(scope="module")
def repository(model, tmp_path_factory):
    pytest.importorskip("onnxruntime", reason="the extra export is not installed")
    return export_model(model, format="triton", out=tmp_path_factory.mktemp("served") / "repository")


def test_the_repository_is_as_the_server_reads_it(repository, model):
    import onnxruntime

    (name,) = [path.name for path in repository.out.iterdir() if path.is_dir()]
    config = parsed((repository.out / name / "config.pbtxt").read_text(encoding="utf-8"))
    assert config["name"] == [name] and config["backend"] == ["onnxruntime"] and config["max_batch_size"] == [64]
    session = onnxruntime.InferenceSession(repository.out / name / "1" / "model.onnx", providers=["CPUExecutionProvider"])
    for kind, tensors in (("input", session.get_inputs()), ("output", session.get_outputs())):
        assert [tensor.name for tensor in tensors] == [entry["name"][0] for entry in config[kind]]
        assert [tensor.shape[1:] for tensor in tensors] == [entry["dims"][0] for entry in config[kind]]
        assert {tensor.type for tensor in tensors} == {"tensor(float)"}
        assert {entry["data_type"][0] for entry in config[kind]} == {"TYPE_FP32"}
    assert config["output"][1]["label_filename"] == ["labels.txt"]
    assert (repository.out / name / "labels.txt").read_text(encoding="utf-8").split() == list(model.facts.class_names)


def test_the_configuration_states_preprocessing_and_use(repository):
    (file,) = repository.out.glob("*/config.pbtxt")
    said = {entry["key"][0]: entry["value"][0]["string_value"][0] for entry in parsed(file.read_text("utf-8"))["parameters"]}
    assert said["use"] == "Research use, not a medical device."
    assert (
        "from 0 to 1, already resized" in said["preprocessing"]
        and "mean and standard deviation are inside" in said["preprocessing"]
    )
    assert repository.record.model.preprocessing.description in said["preprocessing"]
    assert json.loads(said["thresholds"]) == repository.record.model.thresholds


def test_files_in_folders_are_listed_and_looked_after(repository, model):
    listed = {file.name for file in repository.record.files}
    there = {path.relative_to(repository.out).as_posix() for path in repository.out.rglob("*") if path.is_file()}
    assert listed == there - {"export.json"} and any(name.endswith("/1/model.onnx") for name in listed)
    (folder,) = [path for path in repository.out.iterdir() if path.is_dir()]
    (folder / "2").mkdir()
    (folder / "2" / "model.onnx").write_bytes(b"another version")
    with pytest.raises(RunDirectoryError, match=rf"{folder.name}/2/model\.onnx beside an export"):
        export_model(model, format="triton", out=repository.out, overwrite=True)
    (folder / "2" / "model.onnx").unlink()
    (folder / "2").rmdir()


def test_names_cannot_break_the_configuration(repository):
    wild = {"class_names": ['a"}\n', "b\\"], "decision": 'say "yes"\n}', "trained_on": "../x\n y"}
    about = ExportedModelRecord.model_validate(repository.record.model.model_dump() | wild)
    config = parsed(configuration(about))
    assert config["name"] == ["x_y-" + config["name"][0].removeprefix("x_y-")] and "/" not in config["name"][0]
    (decision,) = [each["value"][0]["string_value"][0] for each in config["parameters"] if each["key"] == ["decision"]]
    assert decision == 'say "yes"\\n}'


def test_openvino_says_what_the_network_says(model, tmp_path):
    openvino = pytest.importorskip("openvino", reason="the extra openvino is not installed")
    exported = export_model(model, format="openvino", out=tmp_path / "openvino")
    assert {file.name for file in exported.record.files} >= {"model.xml", "model.bin", "description.json"}
    assert exported.record.agreement.checked_with.startswith("OpenVINO 20")
    loaded = openvino.Core().compile_model(exported.out / "model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    images = example_images(model.classifier.preprocessing, 3)
    with torch.no_grad():
        logits = model.classifier(normalise_images(images, model.classifier.preprocessing, full_range=1)).numpy()
    found = loaded({"images": images.numpy()})
    np.testing.assert_allclose(found["logits"], logits, rtol=0, atol=1e-5 * max(1, np.abs(logits).max()))
    calibrated = torch.softmax(torch.from_numpy(logits) / model.facts.temperature, dim=1)
    np.testing.assert_allclose(found["probabilities"], calibrated, rtol=0, atol=1e-5)
    assert np.ptp(logits, axis=0).max() > 1e-2  # the test could not tell images apart


def test_a_missing_package_is_named_with_its_extra(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MissingExtraError, match=r"openvino, which is not installed\. Run: pip install 'crossgraft\[openvino\]'"):
        export_model(model, format="openvino", out=tmp_path / "openvino")
