"""Segmentation and translation, beside Tables 6 and 7 and Fig. 4 of the paper."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from drawing.sim_other_tables import OTHERS, arms_table, paired, pairs_table, told_difference, trivial_told, verdict
from tables import read_csv

from crossgraft.words.formatting import joined

TABLE_7 = {
    "UNet+FCN": "+0.84, +0.10, +0.02, +0.07",
    "UNet+DeepLabV3": "+0.07, +0.11, -0.37, +0.29",
    "UNet+PSPNet": "+0.24, +0.20, +0.04, +0.08",
}
"""Differences of Dice on DRIVE, STARE, CHASE-DB1 and HRF."""
OF_TRANSLATION = {
    "trivial": "Cats as they are",
    "floor": "Dogs, two halves",
    "without": "GAN alone",
    "patch_nce": "PatchNCE",
    "rho_sim": "ρSIM",
    "placebo": "Placebo",
}
COINS, FRECHET = "coins", "Fréchet distance"
GAN, NCE = OTHERS | {"without": "the GAN alone"}, {"patch_nce": "PatchNCE", "placebo": "its placebo"}


def fields(results: Path, figures: Path) -> dict[str, str]:
    masks, pets = (read_csv(results / "sim-other-tasks" / f"{name}.csv") for name in ("segmentation", "translation"))
    dice, distances = of_metric(masks, "Dice"), of_metric(pets, FRECHET)
    return {
        "segmentation": arms_table(masks),
        "segmentation_trivial": trivial_told(masks),
        "segmentation_pairs": pairs_table(dice[dice["data"] != COINS], published=TABLE_7),
        "segmentation_coins": " and ".join(
            f"{told_difference(paired(dice[dice['data'] == COINS], 'rho_sim', other), 2)} to {name}"
            for other, name in OTHERS.items()
        ),
        "segmentation_verdict": verdict(dice),
        "translation": arms_table(with_floor(pets), 2, OF_TRANSLATION),
        "translation_pairs": pairs_table(pets[pets["arm"] != "floor"], 2, others=GAN | NCE),
        "translation_learned": learned_told(distances),
        "translation_nce": verdict(distances, more_is_better=False, others=NCE, digits=2),
        "translation_verdict": verdict(distances, more_is_better=False, others=GAN, digits=2),
    }


def of_metric(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    return rows[rows["metric"] == metric]


def with_floor(rows: pd.DataFrame) -> pd.DataFrame:
    """Halves of the dogs stand in the line of the generator, the only network."""
    (network,) = rows[rows["arm"] == "rho_sim"]["network"].unique()
    return rows.assign(network=rows["network"].where(rows["arm"] != "floor", network))


def learned_told(distances: pd.DataFrame) -> str:
    """Of how many trainings the result is nearer to dogs than the cats as they are."""
    (as_they_are,) = distances[distances["arm"] == "trivial"]["value"]
    told = list[str]()
    for arm, name in OF_TRANSLATION.items():
        values = distances[distances["arm"] == arm]["value"]
        if arm not in ("trivial", "floor"):
            told.append(f"{(values < as_they_are).sum()} of {len(values)} ({name})")
    return joined(told)
