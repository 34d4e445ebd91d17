"""What docs/results/ground_truth.md says of its trainings; and the same as a published table, in AUC and in accuracy."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from tables import body, markdown, mean, number, read_csv, typeset

from crossgraft.rank.ground_truth import noise_ceiling
from crossgraft.statistics import top_1_regret, weighted_kendall

FULL, CHEAP = "full", ("low:epochs=0.2", "low:size=0.5")
SETS = {
    "breastmnist": "BreastMNIST",
    "brain_mri": "Brain MRI, by look",
    "retinamnist": "RetinaMNIST",
    "omniglot_greek": "Omniglot, Greek",
    "busi": "BUSI, by look",
    "pneumoniamnist": "PneumoniaMNIST",
    "ham10000": "HAM10000, by lesion",
    "medical_mnist": "Medical MNIST",
    "cifar10": "CIFAR-10",
}
GROUPS = dict.fromkeys(("breastmnist", "busi"), "breast ultrasound")
"""Sets of one group have images in common."""
MIDDLE_OF_THREE = 5 / 6
"""The variance of three seeds is σ²·χ²₂/2, and the middle one of three such has the mean 5/6 σ²."""
COLUMNS = ("Network", "AUC", "Accuracy", "Balanced accuracy", "Learning rate", "Val", "1/5 epochs", "1/2 pixels", "CPU-s")


class Network(NamedTuple):
    """What is known of a network on a set: test metrics of each seed, of the learning rate that val picks."""

    name: str
    by_seed: pd.DataFrame
    low: pd.DataFrame
    seconds: pd.Series

    @property
    def first(self) -> pd.Series:
        """The training of the first seed."""
        return self.by_seed.iloc[0]

    def result(self, metric: str) -> float:
        """Mean over the seeds."""
        return mean(self.by_seed[metric])

    def deviation(self, metric: str) -> float | None:
        """Between seeds."""
        return statistics.stdev(self.by_seed[metric]) if len(self.by_seed) > 1 else None

    def shown(self, metric: str) -> str:
        """Both."""
        deviation = self.deviation(metric)
        return f"{self.result(metric):.3f}" + ("" if deviation is None else f" ± {deviation:.3f}")


def picked(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each network, fidelity and seed the training with the learning rate that val picks; test decides nothing."""
    best = rows.sort_values(["val_auc", "val_loss"], ascending=[False, True], kind="stable")
    return best.drop_duplicates(["model", "fidelity", "seed"]).sort_values("seed", kind="stable")


def networks(rows: pd.DataFrame) -> list[Network]:
    """All that are trained on a set, in the order of its rows."""
    chosen = picked(rows)
    spent = rows[rows["seed"] == 0].groupby(["model", "fidelity"])["cpu_seconds"].sum()
    return [
        Network(
            name,
            chosen[(chosen["model"] == name) & (chosen["fidelity"] == FULL)],
            chosen[(chosen["model"] == name) & (chosen["seed"] == 0)].set_index("fidelity").loc[list(CHEAP)],
            spent[name],
        )
        for name in dict.fromkeys(rows["model"])
    ]


def seed_deviation(found: list[Network], metric: str) -> float:
    """Between seeds, of the middle one of the networks with several: one training that went wrong does not decide."""
    known = [deviation for each in found if (deviation := each.deviation(metric)) is not None]
    return (statistics.median(each**2 for each in known) / MIDDLE_OF_THREE) ** 0.5


def fields(results: Path, figures: Path) -> dict[str, str]:
    folder = results / "ground_truth"
    rows = {name: read_csv(folder / f"{name}.csv") for name in SETS}
    known = {name: networks(each) for name, each in rows.items()}
    for metric in ("auc", "accuracy"):
        (figures / f"table_{metric}.csv").write_text(table(folder, known, metric), encoding="utf-8", newline="")
    return {
        "trainings": str(sum(map(len, rows.values()))),
        "hours": f"{sum(each['cpu_seconds'].sum() for each in rows.values()) / 3600:.1f}",
        "cheap": body(cheap_row(SETS[name], each) for name, each in known.items()),
        "sets": "\n\n".join(section(SETS[name], rows[name], each) for name, each in known.items()),
    }


def cheap_row(title: str, found: list[Network]) -> list[str]:
    truth = np.array([each.result("auc") for each in found])
    cells = [title, str(len(found)), ranked([each.first["val_auc"] for each in found], truth)]
    for kind in CHEAP:
        share = sum(each.seconds[kind] for each in found) / sum(each.seconds[FULL] for each in found)
        cells += [ranked([each.low.loc[kind, "val_auc"] for each in found], truth), f"{100 * share:.0f} %"]
    return [*cells, f"{noise_ceiling(truth, np.full(len(truth), seed_deviation(found, 'auc'))):.2f}"]


def ranked(values: list[float], truth: np.ndarray) -> str:
    """Weighted Kendall, and the regret of the first in points."""
    cheap = np.array(values)
    return typeset(f"{weighted_kendall(cheap, truth):.2f} ({100 * top_1_regret(cheap, truth):.1f})")


def section(title: str, rows: pd.DataFrame, found: list[Network]) -> str:
    some = rows.iloc[0]
    said = (
        f"## {title}\n\n{some['num_train']} training and {some['num_test']} test images. The best first; intervals are 95 %, of "
        "the test images, of the first seed; ± is the standard deviation between seeds.\n\n"
    )
    lines = []
    for each in sorted(found, key=lambda each: -each.result("auc")):
        first = each.first
        area = f"{each.shown('auc')} [{first['auc_low']:.3f}, {first['auc_high']:.3f}]"
        tested = [area, each.shown("accuracy"), each.shown("balanced_accuracy")]
        val = [f"{value:.3f}" for value in (first["val_auc"], *each.low["val_auc"])]
        lines.append([each.name, *tested, f"{first['learning_rate']:g}", *val, f"{each.seconds.sum():.0f}"])
    return said + markdown(COLUMNS, lines)


def table(folder: Path, known: dict[str, list[Network]], metric: str) -> str:
    """What ``rank --published`` and ``select --replay`` read; val is that of the first seed."""
    parts = []
    for name, found in known.items():
        scores = read_csv(folder / f"{name}-scores.csv").pivot(index="model", columns="score", values="value")
        parts += [
            {"target": name, "model": each.name, "result": f"{each.result(metric):.6f}"}
            | {"val": f"{each.first[f'val_{metric}']:.8g}", "seconds": f"{each.seconds[FULL]:.8g}"}
            | {"group": GROUPS.get(name, name), "family": each.first["family"]}
            | {kind: f"{each.low.loc[kind, f'val_{metric}']:.6f}" for kind in CHEAP}
            | {score: number(value, ".8g") for score, value in scores.loc[each.name].items()}
            for each in found
        ]
    columns = dict.fromkeys(name for name in parts[0] if name not in scores)
    names = dict.fromkeys(read_csv(folder / f"{next(iter(known))}-scores.csv")["score"])
    return pd.DataFrame(parts)[[*columns, *names]].replace("–", "").to_csv(index=False, lineterminator="\n")
