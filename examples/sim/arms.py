"""What the examples share: the arms that are compared, the command, and the table that is left.

Each trains one network per arm and seed: ``without`` ρSIM, with ``rho_sim``, and with its ``placebo``, which asks each image for
the tokens of another at the same price. Arms of one seed start from the same weights and see the same batches, so that their
differences are paired. What is in the table already is not trained again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
import torch
from torch import nn

from crossgraft.tune.sim import RhoSim

ARMS: Mapping[str, Mapping[str, object]] = {"without": {"weight": 0.0}, "rho_sim": {}, "placebo": {"placebo": True}}
"""Name of each arm → options of ρSIM."""
TRIVIAL = "trivial"
"""Arm of the best answer that nothing was trained for."""

Measured = Mapping[str, float]
"""Metric → value."""


def sim_of(arm: str, network: nn.Module, example: object, *, seed: int, **options: object) -> RhoSim:
    """ρSIM as this arm has it; ``example`` is what the network takes."""
    return RhoSim(network, example=example, seed=seed, **{**options, **ARMS[arm]})


def parameters_of(network: nn.Module, sim: RhoSim) -> list[nn.Parameter]:
    """What an optimiser moves: of the network, and of the reconstructors where there are any."""
    return [*network.parameters(), *(sim.parameters() if sim.weight else ())]


class Table:
    """A CSV file with one row per metric of each training, written after every training."""

    KEY = ("data", "network", "arm", "seed")

    def __init__(self, file: Path) -> None:
        self.file = file
        self.rows = pd.read_csv(file).to_dict("records") if file.is_file() else []

    def measure(self, data: str, network: str, arm: str, seed: int, work: Callable[[], Measured]) -> None:
        """Do the work of one training, unless its rows are there."""
        key = dict(zip(self.KEY, (data, network, arm, seed), strict=True))
        if any(all(row[name] == value for name, value in key.items()) for row in self.rows):
            return
        begun = time.process_time()
        found = work()
        seconds = round(time.process_time() - begun, 1)
        self.rows += [{**key, "metric": name, "value": round(value, 6), "cpu_seconds": seconds} for name, value in found.items()]
        self.file.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(self.rows).to_csv(self.file, index=False)
        print(f"{data}, {network}, {arm}, seed {seed}: " + ", ".join(f"{name} {value:.3f}" for name, value in found.items()))


def read_command(description: str | None) -> argparse.Namespace:
    """``FILES OUT.csv [--seeds 3] [--smoke]``."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, help="folder of the published files")
    parser.add_argument("out", type=Path, help="table that rows are added to")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each arm")
    parser.add_argument("--smoke", action="store_true", help="a few steps of everything")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    return asked
