"""recipes/own_models.py runs without data, and measures what docs/results/own-models.md says."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "results" / "own-models.md"
# One image of 624 more or less is 0.16 points; another processor may add in another order and turn a few over.
POINTS = 0.5


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("own_models")


def numbers(line):
    return [float(text) for text in re.findall(r"\d+\.\d+", line)]


def label(line):
    return re.split(r"\s{2,}\d", line)[0].strip()


@pytest.mark.slow
def test_without_data(recipe, capsys):
    recipe.main(["--smoke"])
    out = capsys.readouterr().out
    assert [label(line) for line in out.splitlines() if "resnet" in line][-1] == "resnet56 · CIFAR-10"
    assert "area under the ROC curve" in out


@pytest.mark.real_data
@pytest.mark.slow
def test_measures_what_the_page_says(recipe, real_data, capsys):
    recipe.main(["--data-dir", str(real_data / "datasets"), "--weights-dir", str(real_data / "weights")])
    said = capsys.readouterr().out
    block = re.search(r"```text\n(CIFAR-10, .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    measured, stated = said.splitlines(), block[1].splitlines()
    assert [label(line) for line in measured] == [label(line) for line in stated]
    for found, expected in zip(measured, stated, strict=True):
        assert numbers(found) == pytest.approx(numbers(expected), abs=POINTS), found
    lines = said.partition("MobileNets: ")[2].splitlines()[1:]
    assert len(lines) == len(json.loads((real_data / "weights" / "fidelity_reference.json").read_text())["checkpoints"]) - 1
    assert all(numbers(line)[0] < 1e-4 for line in lines)  # the reference is printed to 4 decimals


class Recognises(nn.Module):
    """An encoder whose features are the drawings themselves."""

    def forward(self, x):
        return x


class Stub:
    module = Recognises()


def test_few_shot_accuracy_of_encoders_that_know_all_or_nothing(recipe):
    rng = np.random.default_rng(0)
    apart = [torch.full((20, 1, 2, 2), float(10 * c)) + 0.1 * torch.from_numpy(rng.random((20, 1, 2, 2))) for c in range(8)]
    alike = [torch.from_numpy(rng.random((20, 1, 2, 2))) for _ in range(8)]
    assert recipe.few_shot(Stub, apart, train_mode=False, num_episodes=5).tolist() == [1] * 5
    chance = recipe.few_shot(Stub, alike, train_mode=False, num_episodes=80).mean()
    assert chance == pytest.approx(0.2, abs=0.03)


def test_interval_of_episodes(recipe):
    mean, low, high = recipe.mean_with_interval(np.array([0.0, 1.0, 0.0, 1.0]))
    assert mean == 0.5
    assert high - mean == pytest.approx(mean - low) == pytest.approx(3.182446 * 0.5773503 / 2, rel=1e-5)
