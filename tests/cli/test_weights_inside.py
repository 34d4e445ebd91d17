"""Weights under a key of a checkpoint, and under a prefix of its names: every command that reads weights takes both."""

import pytest
import torch
from safetensors.torch import load_file

from crossgraft.options._option import options_of
from crossgraft.options.command import COMMANDS

INSIDE = ("--weights-key", "teacher", "--weights-prefix", "backbone.")
COMMON = ("--code", "tiny_models.py", "--device", "cpu", "--workers", "1")
ABOUT_FOLDERS = ("list",)


@pytest.mark.parametrize("name", [name for name in COMMANDS.names() if name not in ABOUT_FOLDERS])
def test_a_command_that_takes_a_folder_of_weights_takes_a_place_in_their_files(name):
    taken = {each for group in COMMANDS.get(name).options for each in options_of(group)}
    assert {"weights_key", "weights_prefix"} <= taken or "weights_dir" not in taken


@pytest.fixture
def nested(workspace):
    """A zoo whose one model is the teacher of a checkpoint."""
    state = load_file(workspace / "narrow.safetensors")
    content = {f"backbone.{key}": value for key, value in state.items()} | {"projector.weight": torch.zeros(2)}
    torch.save({"epoch": 3, "teacher": content}, workspace / "nested.pth")
    (workspace / "nested.yaml").write_text("- {name: nested, source: 'tiny_models:tiny', weights: nested.pth}\n")
    return "nested.yaml:nested"


@pytest.fixture
def tuned(nested, run_once):
    run_once("tune", "images", "--model", nested, *INSIDE, *COMMON, "--epochs", "1", "--no-images", out="run")
    return "run"


def test_interpolate(nested, tuned, crossgraft):
    said = crossgraft("interpolate", tuned, "images", *COMMON, "--alphas", "0,1")
    assert said.code == 2 and f"--model {nested} --weights-key teacher --weights-prefix backbone." in said.err
    done = crossgraft("interpolate", tuned, "images", "--model", nested, *INSIDE, *COMMON, "--alphas", "0,1", "--out", "way")
    assert done.code == 0, done.err
    linear = ("--linear", tuned, *INSIDE)
    refused = crossgraft("interpolate", tuned, "images", *linear, *COMMON)
    assert refused.code == 2 and "Give --model too, or leave --weights-key out" in refused.err


def test_compare(nested, tuned, crossgraft):
    words = ("--data", "images", *COMMON, "--geometry", "none", "--no-images")
    done = crossgraft("compare", tuned, nested, "--before", nested, *INSIDE, *words, "--out", "both")
    assert done.code == 0, done.err  # the start of the run is the teacher, so the right weights were read
    beside = crossgraft("compare", "tiny_models:tiny", nested, *INSIDE, *words, "--out", "beside")
    assert beside.code == 0, beside.err  # what is no checkpoint needs no place in one
    without = crossgraft("compare", "tiny_models:tiny", nested, *words, "--out", "without")
    assert without.code == 3 and "--weights-key" in without.err
    nothing = crossgraft("compare", "tiny_models:tiny", tuned, *INSIDE, *words, "--out", "nothing")
    assert nothing.code == 2 and "none of the models is one" in nothing.err
