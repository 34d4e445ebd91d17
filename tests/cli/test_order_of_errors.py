"""A wrong data path or column is said before models that are missing, and no image is decoded for it."""

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from crossgraft.data import opening as _data_first
from crossgraft.rank import verb

COMMANDS = {
    "rank": ("rank", "{data}", "--models", "{model}", "--scores", "logme"),
    "tune": ("tune", "{data}", "--model", "{model}", "--epochs", "1"),
    "tune --compare": ("tune", "{data}", "--model", "{model}", "--compare", "linear,full"),
    "compare": ("compare", "{model}", "resnet18", "--data", "{data}"),
    "audit": ("audit", "{model}", "--data", "{data}", "--confounder", "tag"),
}
MODELS = ("gone.safetensors", "resnet19", "none.yaml")


def run(crossgraft, command, data, model, *more):
    return crossgraft(*(word.format(data=data, model=model) for word in COMMANDS[command]), *more)


@pytest.fixture
def no_pixels(monkeypatch):
    """Any image that is decoded fails the test."""

    def refuse(*_, **__):
        pytest.fail("an image was opened")

    monkeypatch.setattr(Image, "open", refuse)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("model", MODELS)
def test_a_wrong_path_comes_first(workspace, crossgraft, command, model):
    outcome = run(crossgraft, command, "imges", model)
    assert outcome.code == 3 and "imges" in outcome.err and "Did you mean images" in outcome.err
    assert model not in outcome.err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_column_comes_first(workspace, crossgraft, command, no_pixels):
    rows = [f"{label}/{number:02d}.png,{label}" for label in ("benign", "malignant") for number in range(12)]
    (workspace / "images" / "table.csv").write_text("\n".join(["file,diagnosis", *rows]))
    outcome = run(crossgraft, command, "images/table.csv", MODELS[0], "--label-column", "diagnose")
    assert outcome.code in (2, 3) and "diagnose" in outcome.err and "diagnosis" in outcome.err
    assert MODELS[0] not in outcome.err


@pytest.mark.parametrize("command", COMMANDS)
def test_where_the_data_are_right_the_model_is_said(workspace, crossgraft, command, no_pixels):
    outcome = run(crossgraft, command, "images", MODELS[0])
    assert outcome.code == 4 and MODELS[0] in outcome.err


TRAINED = """
import torch
from torch import nn


class Trained(nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = nn.Parameter(torch.arange(3.0 * 4).reshape(4, 3, 1, 1))
        self.head = nn.Linear(4, 2)
        self.pretrained_cfg = {"input_size": (3, 16, 16)}

    def forward(self, images):
        return self.head(nn.functional.conv2d(images, self.filters).mean((2, 3)))


def trained():
    return Trained()
"""


def test_a_control_that_cannot_be_drawn_is_said_before_any_image_is_looked_at(workspace, crossgraft, no_pixels):
    (workspace / "trained_models.py").write_text(TRAINED)
    models = "tiny_models:tiny,trained_models:trained"
    outcome = crossgraft("rank", "images", "--models", models, "--scores", "logme", "--workers", "1")
    assert outcome.code == 2 and "No random-weight control for trained_models:trained" in outcome.err


def test_a_checkpoint_that_does_not_fit_is_said_before_any_image_is_looked_at(workspace, crossgraft, no_pixels):
    save_file({"fc.weight": torch.zeros(2, 3)}, workspace / "other.safetensors", metadata={"architecture": "test_resnet"})
    outcome = crossgraft("rank", "images", "--models", "tiny_models:tiny,other.safetensors", "--scores", "logme")
    assert outcome.code == 3 and "The weights other.safetensors do not fit" in outcome.err


def test_data_that_could_be_fetched_are_not_for_the_sake_of_an_error(workspace, crossgraft, monkeypatch):
    monkeypatch.setattr(_data_first, "list_rows", lambda *_: pytest.fail("the data were listed"))
    outcome = run(crossgraft, "rank", "hf:someone/something", MODELS[0], "--allow-download")
    assert outcome.code == 4 and MODELS[0] in outcome.err


def test_weights_that_are_missing_are_said_before_any_model_looks(workspace, crossgraft, monkeypatch):
    monkeypatch.setattr(verb, "check_rows", lambda *_, **__: pytest.fail("images were looked at"))
    outcome = crossgraft("rank", "images", "--models", "tiny_models:tiny,resnet18", "--scores", "logme", "--workers", "1")
    assert outcome.code == 4 and "The weights of resnet18 are not on this machine" in outcome.err
