"""What docs/results/fine-tuning.md says of its tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from tables import Difference, Lines, body, interval, markdown, read_csv, sections, signed, verdict

SETS = {"breastmnist": "BreastMNIST", "retinamnist": "RetinaMNIST", "pneumoniamnist": "PneumoniaMNIST"}
METRICS = {"auc": "AUC", "accuracy": "Accuracy", "balanced_accuracy": "Balanced accuracy"}
FOLDED = {**METRICS, "calibration_error": "Calibration error"}


def fields(results: Path, figures: Path) -> dict[str, str]:
    cells, gaps, folds = (read_csv(results / "fine-tuning" / f"{name}.csv") for name in ("cells", "differences", "folds"))
    return {
        "tables": sections({title: of_set(cells[cells["set"] == name]) for name, title in SETS.items()}),
        "orderings": orderings(gaps),
        "verdicts": verdicts(gaps),
        "folds": body(of_folds(folds)),
        "leak": leak(folds),
    }


def of_set(cells: pd.DataFrame) -> str:
    """Mean ± standard deviation over seeds, and the ends of the interval of the test images, averaged."""
    lines: list[list[str]] = []
    for (model, variant), own in cells.groupby(["model", "variant"], sort=False):
        of_metric = own.set_index("metric")
        said = [
            f"{row['mean']:.3f} ± {row['standard_deviation']:.3f} {interval(row['low'], row['high'])}"
            for _, row in of_metric.loc[list(METRICS)].iterrows()
        ]
        lines.append([model, variant, *said, f"{own['seconds'].iloc[0]}"])
    return markdown(["Network", "Method", *METRICS.values(), "Seconds"], lines)


def orderings(gaps: pd.DataFrame) -> str:
    lines = [
        [row.first, row.second, METRICS[row.metric], signed(found_in(row)), f"{row.ahead} of {row.pairs}", row.published]
        for row in gaps.itertuples(index=False)
    ]
    return body(lines)


def found_in(row: tuple[object, ...]) -> Difference:
    return Difference(row.mean, row.low, row.high, row.ahead, row.pairs)


def verdicts(gaps: pd.DataFrame) -> str:
    """One sentence for each published ordering: it shows here, its opposite shows, or neither."""
    return "\n".join(
        f"- **{row.first} over {row.second}** ({row.published.partition(':')[0]}): {verdict(found_in(row))}."
        for row in gaps.itertuples(index=False)
    )


def of_folds(folds: pd.DataFrame) -> Lines:
    for name, own in folds.groupby("folds_of", sort=False):
        of_metric = own.set_index("metric").loc[list(FOLDED)]
        said = [f"{row.value:.3f} {interval(row.low, row.high)}" for row in of_metric.itertuples()]
        yield [name, *said, own["leakage"].iloc[0]]


def leak(folds: pd.DataFrame) -> str:
    """How much more folds of pictures promise."""
    found = folds.pivot(index="metric", columns="folds_of", values="value")
    return ", ".join(f"{title} {found['images'][metric] - found['lesions'][metric]:+.3f}" for metric, title in METRICS.items())
