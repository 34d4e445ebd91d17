"""L2-SP against the numbers of the Transfer-Learning-Library (see l2_sp.json)."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from crossgraft.tune.regularizers import L2SP, StepContext
from support.small_classifiers import wrap

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "l2_sp.json").read_text(encoding="utf-8"))["values"]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3))
        self.fc = nn.Linear(5, 2)

    def forward(self, images):
        return self.fc(self.net(images).mean((2, 3)))


def body_term(start, now):
    """The term of the body at α = 1 for the weights ``now``, which training started from ``start``."""
    classifier = wrap(Net(), size=8).double()
    regularizer = L2SP(alpha=1.0)
    classifier.body.net.load_state_dict(start)
    regularizer.attach(classifier)
    classifier.body.net.load_state_dict(now)
    images = torch.rand(2, 3, 8, 8, dtype=torch.float64)
    features, logits = classifier.features_and_logits(images)
    context = StepContext(classifier, images, torch.eye(3)[:2], torch.arange(2), features, logits, 0, 1, torch.Generator(), 2, 2)
    return regularizer.loss(context)["body"].item()


@pytest.fixture(scope="module")
def weights():
    with np.load(HERE / "l2_sp.npz", allow_pickle=False) as arrays:
        return {
            model: {
                name.removeprefix(f"{model}."): torch.from_numpy(arrays[name])
                for name in arrays.files
                if name.startswith(f"{model}.")
            }
            for model in ("m0", "m1")
        }


def test_the_pull_to_the_start_equals_the_library(weights):
    assert body_term(weights["m0"], weights["m1"]) == pytest.approx(GOLDEN["start"], rel=1e-13)


def test_from_zero_it_is_the_usual_penalty_of_the_library(weights):
    zero = {name: torch.zeros_like(tensor) for name, tensor in weights["m1"].items()}
    assert body_term(zero, weights["m1"]) == pytest.approx(GOLDEN["zero"], rel=1e-13)
