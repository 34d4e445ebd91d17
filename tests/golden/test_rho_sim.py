"""ρSIM against numbers that were computed apart from it (see rho_sim.json)."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from crossgraft.tune.sim import RhoSim
from crossgraft.tune.sim.distances import DISTANCES

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "rho_sim.json").read_text(encoding="utf-8"))["values"]
NAMES = {
    "cosine": "cos",
    "kl": "kl",
    "smooth_l1": "smooth_l1",
    "mse": "mse",
    "norm_l2": "norm_mse",
    "norm_mse": "norm_mse_squared_mean",
    "l1": "l1",
    "wasserstein": "wasserstein1_sorted_tokens",
}
"""Ours → theirs."""


@pytest.fixture(scope="module")
def arrays():
    with np.load(HERE / "rho_sim.npz", allow_pickle=False) as stored:
        return {name: torch.from_numpy(stored[name]) for name in stored.files}


@pytest.mark.parametrize("name", DISTANCES)
def test_every_distance(arrays, name):
    found = DISTANCES[name](arrays["zy"], arrays["zx"]).item()
    tokens = arrays["zx"].shape[1] if name == "kl" else 1  # theirs is averaged over images alone
    assert found * tokens == pytest.approx(GOLDEN[NAMES[name]], rel=1e-9)


def test_norms_and_squares_differ_by_what_the_width_says(arrays):
    ratio = DISTANCES["norm_l2"](arrays["zy"], arrays["zx"]) / DISTANCES["norm_mse"](arrays["zy"], arrays["zx"])
    width = arrays["zx"].shape[2]
    assert ratio.item() == pytest.approx(math.sqrt(width / GOLDEN["norm_mse_squared_mean"]), rel=0.02)


def released_block(arrays):
    """The block with the weights of the released code, and its ρSIM with those of its reconstructor."""
    block = nn.Sequential()
    block.add_module("f", nn.Conv2d(6, 10, 3, padding=1, dtype=torch.float64))
    block.f.load_state_dict({name: arrays[f"block.f.{name}"] for name in ("weight", "bias")})
    sim = RhoSim(block, blocks="f", rho=1.0, K=128, example=arrays["block_x"])
    (reconstructor,) = sim.reconstructors.by_block().values()
    theirs = {"adapt": "pre_proj.0", "predictor": "predictor.0"} | {f"projector.{n}": f"proj_x.{n}" for n in (0, 2, 4)}
    states = {
        name: arrays[f"block.{theirs[name.rpartition('.')[0]]}.{name.rpartition('.')[2]}"] for name in reconstructor.state_dict()
    }
    reconstructor.load_state_dict(states)
    return block, sim, reconstructor


def test_a_block_and_its_gradients(arrays):
    block, sim, reconstructor = released_block(arrays)
    maps = arrays["block_x"].clone().requires_grad_()
    torch.testing.assert_close(block(maps), arrays["block_y"])
    loss = sim.loss()
    assert loss.item() == pytest.approx(GOLDEN["block_loss_beta5e-3_rho1"], rel=1e-9)
    assert sim.block_losses["f"].item() == pytest.approx(GOLDEN["block_loss_beta5e-3_rho1"] / 5e-3, rel=1e-9)
    loss.backward()
    for found, name in (
        (maps.grad, "block_grad_x"),
        (block.f.weight.grad, "block_grad_f_weight"),
        (reconstructor.projector[0].weight.grad, "block_grad_proj0_weight"),
    ):
        torch.testing.assert_close(found, arrays[name], rtol=1e-7, atol=1e-12)


def test_the_reconstructor_is_as_large_as_the_released_one(arrays):
    _, sim, _ = released_block(arrays)
    assert sum(p.numel() for p in sim.parameters()) == 66_176 + 256 * 6 + 6 * 10
