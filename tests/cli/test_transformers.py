"""Commands with networks of transformers, from folders."""

import json

import pytest

from support.transformers_folders import write_folder

QUIET = ("--workers", "1", "--quiet")
TUNE = ("tune", "images", "--epochs", "1", "--device", "cpu", *QUIET)


@pytest.fixture
def folders(workspace):
    """``dino`` has no head and ``chest`` has one."""
    write_folder(workspace / "dino", "Dinov2Model")
    write_folder(workspace / "chest", "ViTForImageClassification")


def run_all(crossgraft, *commands):
    said = []
    for command in commands:
        outcome = crossgraft(*command)
        assert outcome.code == 0, outcome.err
        said.append(outcome.out)
    return said


def test_a_folder_is_ranked_tuned_compared_exported_and_predicts(folders, workspace, crossgraft):
    run_all(
        crossgraft,
        ("rank", "images", "--models", "transformers:dino,transformers:chest", "--scores", "logme", *QUIET, "--out", "ranked"),
        (*TUNE, "--model", "transformers:dino", "--method", "adaptformer:4", "--out", "tuned"),
        ("compare", "tuned", "transformers:dino", "--data", "images", *QUIET, "--out", "compared"),
        ("export", "tuned", "--format", "torch", "--quiet"),
    )
    models = json.loads((workspace / "ranked" / "report.json").read_text())["models"]
    assert {each["name"] for each in models if each["role"] == "candidate"} == {"transformers:dino", "transformers:chest"}
    (workspace / "dino").rename(workspace / "elsewhere")  # a run needs neither folder nor hub
    run_all(crossgraft, ("predict", "tuned", "images", *QUIET, "--out", "predicted"))
    assert len((workspace / "predicted" / "predictions.csv").read_text().splitlines()) == 25


@pytest.mark.parametrize(("name", "method"), [("dino", "full"), ("chest", "lora:2")])
def test_every_method_gives_a_model_for_onnx(name, method, folders, crossgraft):
    _, said = run_all(
        crossgraft,
        (*TUNE, "--model", f"transformers:{name}", "--method", method, "--out", "tuned"),
        ("export", "tuned", "--format", "onnx", "--quiet", "--json"),
    )
    assert json.loads(said)["kind"] == "export"


def test_what_features_are_is_said(folders, crossgraft):
    outcome = crossgraft("rank", "images", "--models", "transformers:dino", "--scores", "logme", "--workers", "1", "--out", "r")
    assert "transformers:dino: its features are the class token after the last norm." in outcome.err
