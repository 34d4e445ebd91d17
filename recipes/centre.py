"""How far networks of five tasks lie from the mean of their weights, by FULL and RepSim: a table of docs/results/repsim.md.

    python recipes/centre.py data docs/results/repsim/centre.csv      # data as for recipes/continual.py, with two more sets

The trainings are those of recipes/continual.py, on five sets instead of three; what is in --out is not trained again.
"""

from __future__ import annotations

from itertools import product

import pandas as pd
from continual import CODE, SEEDS, WAYS, arguments, start_in, trained

import crossgraft
from crossgraft.running.unattended import unattended

SETS = ("breastmnist", "pneumoniamnist", "retinamnist", "medical_mnist", "cifar10")


def main() -> None:
    """Run the script."""
    given = arguments(__doc__)
    start, tables = start_in(given.data), list[pd.DataFrame]()
    for seed, way in product(SEEDS, WAYS):
        runs = [trained(given, name, start, way, seed, name, way, seed) for name in SETS]
        found = crossgraft.compare_centre(runs, before=start, allow_code=CODE, device="cpu").to_frame()
        named = found[["to_centre_l2", "to_start_l2"]].round(5).assign(task=SETS, way=way, seed=seed)
        tables.append(named[["task", "way", "seed", "to_centre_l2", "to_start_l2"]])
        pd.concat(tables).to_csv(given.table, index=False)


if __name__ == "__main__":
    with unattended():
        main()
