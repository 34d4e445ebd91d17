"""How far networks of five tasks lie from the mean of their weights, by FULL and RepSim: a table of docs/results/repsim.md.

    python recipes/centre.py data docs/results/repsim/centre.csv      # data as for recipes/continual.py, with two more sets

The trainings are those of recipes/continual.py, on five sets instead of three; what is in --out is not trained again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from continual import CODE, SEEDS, WAYS, folder_of, start_in, trained

import crossgraft
from crossgraft.running.unattended import unattended

SETS = ("breastmnist", "pneumoniamnist", "retinamnist", "medical_mnist", "cifar10")
OF_WAYS = ("full", "repsim")


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/continual"))
    given = parser.parse_args()
    start, tables = start_in(given.data), list[pd.DataFrame]()
    for seed in SEEDS:
        for way in (way for way in WAYS if way in OF_WAYS):
            runs = [trained(given.data / f"{name}.npz", start, way, seed, folder_of(given.out, name, way, seed)) for name in SETS]
            found = crossgraft.compare_centre(runs, before=start, allow_code=CODE, device="cpu").to_frame()
            tables.append(
                found.assign(task=SETS, way=way, seed=seed)[["task", "way", "seed", "to_centre_l2", "to_start_l2"]].round(5)
            )
            pd.concat(tables).to_csv(given.table, index=False)


if __name__ == "__main__":
    with unattended():
        main()
