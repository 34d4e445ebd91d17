"""What docs/results/itm.md says of scores by ITM, told to work in several ways, beside the results of fine-tuning."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
import pandas as pd
from drawing.ground_truth import GROUPS, SETS, networks
from tables import clustered_interval, markdown, mean, read_csv

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
    taus = judged.groupby(VARIANT)["tau"]
    of = {variant: (list(found["tau"]), list(found["group"])) for variant, found in judged.groupby(VARIANT)}
    rows = []
    for (standardized, adaptive), printed in PRINTED.items():
        variants = [(standardized, adaptive, number, *BASE[3:]) for number in ITERATIONS]
        cells = [f"{interval(*of[each])} / {paper:.3f}" for each, paper in zip(variants, printed, strict=True)]
        rows.append(["yes" if standardized else "no", "yes" if adaptive else "no", *cells])
    effects = []
    for what, (first, second) in EFFECTS.items():
        gaps = list(taus.get_group(first).to_numpy() - taus.get_group(second).to_numpy())
        ahead = sum(gap > 0 for gap in gaps)
        shown = interval(gaps, of[first][1], shown="{:+.3f}")
        effects.append(f"- {what}: {shown} in τ_w, ahead on {ahead} of {len(gaps)} sets.")
    batches, centres = ({each: (*BASE[:3], each, BASE[4]) for each in (32, 64, 128, 256)},
                        {each: (*BASE[:4], each) for each in ("one-hot", "random", "pca", "laplacian")})  # fmt: skip
    of_mean = judged.set_index(VARIANT).sort_index()
    spent = {size: f"{mean(of_mean.loc[each, 'cpu_seconds']):.2f}" for size, each in batches.items()}
    spread = {kind: f"{mean(of_mean.loc[each, 'spread']):.3f}" for kind, each in centres.items()}
    return {
        "num_sets": str(len(SETS)),
        "sets": "; ".join(SETS.values()),
        "num_groups": str(len({GROUPS.get(name, name) for name in SETS})),
        "seeds": str(judged["seeds"].max()),
        "table_2": markdown(["Standardised", "Adaptive η", *(f"{number} iterations" for number in ITERATIONS)], rows),
        "effects": "\n".join(effects),
        "batches": markdown(
            ["Batch size", "τ_w", "CPU seconds of one score"],
            [[size, interval(*of[each]), spent[size]] for size, each in batches.items()],
        ),
        "centres": markdown(
            ["Centres", "τ_w", "Spread"], [[kind, interval(*of[each]), spread[kind]] for kind, each in centres.items()]
        ),
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
    found = []
    for (name, weight), of_set in rows.groupby(["set", "lambda"]):
        areas = {each.name: each.result("auc") for each in networks(read_csv(results / "ground_truth" / f"{name}.csv"))}
        plain = rows[(rows["set"] == name) & (rows["lambda"] == 0)].set_index(["model", "seed"])["score"]
        own = of_set.set_index(["model", "seed"])["score"].reindex(plain.index)
        seeds = [of_set[of_set["seed"] == seed] for seed in sorted(of_set["seed"].unique())]
        same = [tau(each["score"], plain.xs(each["seed"].iloc[0], level="seed").reindex(each["model"])) for each in seeds]
        taus = [tau(each["score"], each["model"].map(areas)) for each in seeds]
        found.append({"group": GROUPS.get(name, name), "set": name, "weight": weight, "score": mean(own),
                      "moved": mean(np.abs(own - plain)), "same": mean(same), "tau": mean(taus)})  # fmt: skip
    judged = pd.DataFrame(found)
    lines, plain = [], judged[judged["weight"] == 0].set_index("set")["tau"]
    for weight, each in judged.groupby("weight"):
        groups = list(each["group"])
        gaps = list(each["tau"].to_numpy() - plain.reindex(each["set"]).to_numpy())
        cells = [f"{mean(each['score']):.3f}", f"{mean(each['moved']):.3f}", f"{mean(each['same']):.2f}"]
        gap = interval(gaps, groups, shown="{:+.3f}") if weight else "–"
        lines.append([f"{weight:g}", *cells, interval(list(each["tau"]), groups), gap])
    titles = ["λ", "Score", "Mean change", "Order as at λ = 0 (τ_w)", "τ_w with the AUC", "minus λ = 0"]
    return {"loss_weights": markdown(titles, lines), "num_loss_sets": str(len(plain))}


def tau(scores: pd.Series, areas: pd.Series) -> float:
    """0 where all scores are equal."""
    return 0.0 if np.ptp(scores) == 0 else weighted_kendall(scores.to_numpy(), areas.to_numpy())


def interval(values: list[float], groups: list[str], *, shown: str = "{:.3f}") -> str:
    """Mean with its interval over groups of related sets."""
    return f"{shown} [{shown}, {shown}]".format(mean(values), *clustered_interval(values, groups)).replace("-", "−")


def published() -> dict[str, str]:
    """What can be said of the paper's own figures, which have no features."""
    methods = {each.name: each for each in evaluate_published("itm").record.scenarios[0].methods}
    gain = methods["ITM"].gain
    assert gain is not None and gain.value is not None
    return {
        "printed": f"{methods['ITM'].mean.value:.3f}",
        "prior": f"{methods['static_prior'].mean.value:.3f}",
        "gain": f"{gain.value:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]".replace("-", "−"),
    }
