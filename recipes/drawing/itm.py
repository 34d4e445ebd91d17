"""What docs/results/itm.md says of scores by ITM, told to work in several ways, beside the results of fine-tuning."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
import pandas as pd
from drawing.ground_truth import GROUPS, SETS, networks
from tables import body, clustered_interval, mean, read_csv, typeset

from crossgraft import evaluate_published
from crossgraft.statistics import weighted_kendall

VARIANT = ["standardized", "adaptive", "iterations", "batch_size", "centres"]
BASE = (1, 1, 500, 256, "one-hot")
"""What the paper recommends."""
ITERATIONS = (100, 200, 500, 1000)
PRINTED = {  # (standardised, adaptive): average weighted Kendall after these iterations (ITM, Table 2)
    (0, 0): (0.443, 0.482, 0.519, 0.541),
    (0, 1): (0.471, 0.496, 0.508, 0.532),
    (1, 0): (0.557, 0.534, 0.576, 0.569),
    (1, 1): (0.523, 0.545, 0.605, 0.608),
}
EFFECTS = {
    "Standardising, with adaptive η": (BASE, (0, *BASE[1:])),
    "Adaptive η, with standardising": (BASE, (1, 0, *BASE[2:])),
    "1 000 iterations instead of 100": ((1, 1, 1000, *BASE[3:]), (1, 1, 100, *BASE[3:])),
}


def fields(results: Path, figures: Path) -> dict[str, str]:
    judged = pd.concat(judge(results, name) for name in SETS)
    of = {variant: found.reset_index() for variant, found in judged.groupby(VARIANT)}
    shown = {variant: interval(found["tau"], found["group"]) for variant, found in of.items()}
    rows = []
    for (standardized, adaptive), printed in PRINTED.items():
        variants = [(standardized, adaptive, number, *BASE[3:]) for number in ITERATIONS]
        cells = [f"{shown[each]} / {paper:.3f}" for each, paper in zip(variants, printed, strict=True)]
        rows.append(["yes" if standardized else "no", "yes" if adaptive else "no", *cells])
    effects = []
    for what, (first, second) in EFFECTS.items():
        gaps = of[first]["tau"] - of[second]["tau"]
        said = interval(gaps, of[first]["group"], shown="{:+.3f}")
        effects.append(f"- {what}: {said} in τ_w, ahead on {sum(gaps > 0)} of {len(gaps)} sets.")
    batches = {size: (*BASE[:3], size, BASE[4]) for size in (32, 64, 128, 256)}
    centres = {kind: (*BASE[:4], kind) for kind in ("one-hot", "random", "pca", "laplacian")}
    return {
        "num_sets": str(len(SETS)),
        "sets": "; ".join(SETS.values()),
        "num_groups": str(judged["group"].nunique()),
        "seeds": str(judged["seeds"].max()),
        "table_2": body(rows),
        "effects": "\n".join(effects),
        "batches": body([size, shown[each], f"{mean(of[each]['cpu_seconds']):.2f}"] for size, each in batches.items()),
        "centres": body([kind, shown[each], f"{mean(of[each]['spread']):.3f}"] for kind, each in centres.items()),
        **loss_weights(results),
        **published(),
    }


def judge(results: Path, name: str) -> pd.DataFrame:
    """Weighted Kendall of every variant on one set: mean over the seeds, and its standard deviation."""
    areas = {each.name: each.result("auc") for each in networks(read_csv(results / "ground_truth" / f"{name}.csv"))}
    found = []
    for variant, rows in read_csv(results / "itm" / f"{name}.csv").groupby(VARIANT, sort=False):
        taus = [tau(of_seed["score"], of_seed["model"].map(areas)) for _, of_seed in rows.groupby("seed")]
        about = {"group": GROUPS.get(name, name), "seeds": len(taus), "tau": mean(taus), "spread": statistics.stdev(taus)}
        found.append(dict(zip(VARIANT, variant, strict=True)) | about | {"cpu_seconds": mean(rows["cpu_seconds"])})
    return pd.DataFrame(found)


def loss_weights(results: Path) -> dict[str, str]:
    """What λ of eq. 8 does to the score, to its order, and to the agreement with fine-tuning."""
    rows = read_csv(results / "itm" / "loss-weights.csv")
    rows = rows.merge(rows[rows["lambda"] == 0], on=["set", "model", "seed"], suffixes=("", "_plain"))
    found = []
    for (name, weight), of_set in rows.groupby(["set", "lambda"]):
        areas = {each.name: each.result("auc") for each in networks(read_csv(results / "ground_truth" / f"{name}.csv"))}
        seeds = [of_seed for _, of_seed in of_set.groupby("seed")]
        found.append({
            "group": GROUPS.get(name, name),
            "set": name,
            "weight": weight,
            "score": mean(of_set["score"]),
            "moved": mean(np.abs(of_set["score"] - of_set["score_plain"])),
            "same": mean(tau(each["score"], each["score_plain"]) for each in seeds),
            "tau": mean(tau(each["score"], each["model"].map(areas)) for each in seeds),
        })  # fmt: skip
    judged = pd.DataFrame(found)
    lines, plain = [], judged[judged["weight"] == 0].set_index("set")["tau"]
    for weight, each in judged.groupby("weight"):
        cells = [f"{mean(each['score']):.3f}", f"{mean(each['moved']):.3f}", f"{mean(each['same']):.2f}"]
        gap = interval(each["tau"] - each["set"].map(plain), each["group"], shown="{:+.3f}") if weight else "–"
        lines.append([f"{weight:g}", *cells, interval(each["tau"], each["group"]), gap])
    return {"loss_weights": body(lines), "num_loss_sets": str(len(plain))}


def tau(scores: pd.Series, areas: pd.Series) -> float:
    """0 where all scores are equal."""
    return 0.0 if np.ptp(scores) == 0 else weighted_kendall(scores.to_numpy(), areas.to_numpy())


def interval(values: pd.Series, groups: pd.Series, *, shown: str = "{:.3f}") -> str:
    """Mean with its interval over groups of related sets."""
    return typeset(f"{shown} [{shown}, {shown}]".format(mean(values), *clustered_interval(list(values), list(groups))))


def published() -> dict[str, str]:
    """What can be said of the paper's own figures, which have no features."""
    methods = {each.name: each for each in evaluate_published("itm").record.scenarios[0].methods}
    gain = methods["ITM"].gain
    return {
        "printed": f"{methods['ITM'].mean.value:.3f}",
        "prior": f"{methods['static_prior'].mean.value:.3f}",
        "gain": typeset(f"{gain.value:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"),
    }
