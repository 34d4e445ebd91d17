"""IRM and VREx against the numbers of the Transfer-Learning-Library (see objectives.json)."""

import json
from pathlib import Path

import pytest
import torch

from crossgraft.losses import CrossEntropy
from crossgraft.tune.objectives import IRM, ObjectiveContext, VREx

GOLDEN = json.loads((Path(__file__).parent / "objectives.json").read_text(encoding="utf-8"))


def test_penalties_are_those_of_the_library():
    logits = torch.tensor(GOLDEN["logits"], dtype=torch.float64)
    targets = torch.eye(5, dtype=torch.float64)[torch.tensor(GOLDEN["labels"])]
    domains, loss = torch.arange(12) // 4, CrossEntropy()
    context = ObjectiveContext(loss(logits, targets), logits, targets, domains, 3, 0, loss, torch.Generator())
    irm, vrex = IRM()(context), VREx()(context)
    found = {"irm_penalty": irm["penalty"], "vrex_penalty": vrex["penalty"], "vrex_risk": vrex["risk"]}
    assert {name: value.item() for name, value in found.items()} == pytest.approx(GOLDEN["values"], rel=1e-9)
