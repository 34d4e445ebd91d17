"""Segmentation, beside Table 7 of the paper."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from drawing.sim_other_tables import OTHERS, arms_table, paired, pairs_table, told_difference, trivial_told, verdict
from tables import read_csv

TABLE_7 = {
    "UNet+FCN": "+0.84, +0.10, +0.02, +0.07",
    "UNet+DeepLabV3": "+0.07, +0.11, -0.37, +0.29",
    "UNet+PSPNet": "+0.24, +0.20, +0.04, +0.08",
}
"""Differences of Dice on DRIVE, STARE, CHASE-DB1 and HRF."""
COINS = "coins"


def fields(results: Path, figures: Path) -> dict[str, str]:
    masks = read_csv(results / "sim-other-tasks" / "segmentation.csv")
    dice = of_metric(masks, "Dice")
    return {
        "segmentation": arms_table(masks),
        "segmentation_trivial": trivial_told(masks),
        "segmentation_pairs": pairs_table(dice[dice["data"] != COINS], published=TABLE_7),
        "segmentation_coins": " and ".join(
            f"{told_difference(paired(dice[dice['data'] == COINS], 'rho_sim', other), 2)} to {name}"
            for other, name in OTHERS.items()
        ),
        "segmentation_verdict": verdict(dice),
    }


def of_metric(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    return rows[rows["metric"] == metric]
