"""What docs/results/fine-tuning.md says of its tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from tables import (
    Difference,
    Lines,
    body,
    by_pair,
    difference,
    gaps,
    interval,
    markdown,
    mean,
    median,
    read,
    read_csv,
    sections,
    signed,
    verdict,
)

SETS = {"breastmnist": "BreastMNIST", "retinamnist": "RetinaMNIST", "pneumoniamnist": "PneumoniaMNIST"}
METRICS = {"auc": "AUC", "accuracy": "Accuracy", "balanced_accuracy": "Balanced accuracy"}
FOLDED = {**METRICS, "calibration_error": "Calibration error"}
PUBLISHED = {  # first, second, metric
    ("head first", "full", "auc"): "thesis, Table 3.2: freezing first is ahead in 7 of 7 sets",
    ("full", "scratch", "auc"): "thesis, Table 3.2: pretrained weights are ahead in 7 of 7 sets",
    ("full", "linear", "accuracy"): "RepSim, Table 1: ahead in 5 of 5 sets",
    ("linear", "scratch", "accuracy"): "RepSim, Table 1: ahead in 5 of 5 sets",
}


def fields(results: Path, figures: Path) -> dict[str, str]:
    rows = read(results / "fine-tuning", SETS)
    folds = read_csv(results / "fine-tuning" / "folds.csv")
    return {
        "tables": sections({title: of_set(rows[rows["set"] == name]) for name, title in SETS.items()}),
        "orderings": body(orderings(rows)),
        "verdicts": "\n".join(verdicts(rows)),
        "folds": body(of_folds(folds)),
        "leak": leak(folds),
    }


def of_set(rows: pd.DataFrame) -> str:
    """Mean ± standard deviation over seeds, and the ends of the interval of the test images, averaged."""
    lines: list[list[str]] = []
    for (model, variant), own in rows.groupby(["model", "variant"], sort=False):
        ends = {metric: interval(*(mean(own[f"{metric}_{end}"]) for end in ("low", "high"))) for metric in METRICS}
        said = [f"{mean(own[metric]):.3f} ± {own[metric].std():.3f} {ends[metric]}" for metric in METRICS]
        lines.append([model, variant, *said, median(own["seconds"], ".0f")])
    return markdown(["Network", "Method", *METRICS.values(), "Seconds"], lines)


def found(rows: pd.DataFrame) -> Iterator[tuple[str, str, str, Difference, str]]:
    """First and second method, metric, their difference over pairs of set and network, and what is published."""
    for (first, second, metric), published in PUBLISHED.items():
        yield first, second, metric, difference(by_pair(gaps(rows, first, second, metric))), published


def orderings(rows: pd.DataFrame) -> Lines:
    for first, second, metric, gap, published in found(rows):
        yield [first, second, METRICS[metric], signed(gap), gap.ahead_of_pairs, published]


def verdicts(rows: pd.DataFrame) -> Iterator[str]:
    """One sentence for each published ordering: it shows here, its opposite shows, or neither."""
    for first, second, _, gap, published in found(rows):
        yield f"- **{first} over {second}** ({published.partition(':')[0]}): {verdict(gap)}."


def of_folds(folds: pd.DataFrame) -> Lines:
    for name, own in folds.groupby("settings", sort=False):
        overall = own[own["class_name"].isna()].set_index("metric").loc[list(FOLDED)]
        ends = ["" if math.isnan(row.low) else f" {interval(row.low, row.high)}" for row in overall.itertuples()]
        yield [name, *(f"{value:.3f}{each}" for value, each in zip(overall["value"], ends, strict=True))]


def leak(folds: pd.DataFrame) -> str:
    """How much more folds of pictures promise."""
    by_metric = folds[folds["class_name"].isna()].pivot(index="metric", columns="settings", values="value")
    less = by_metric["images"] - by_metric["lesions"]
    return ", ".join(f"{title} {less[metric]:+.3f}" for metric, title in METRICS.items())
