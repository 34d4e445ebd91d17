"""What docs/results/benchmark.md says of benchmark.csv: means over targets, with intervals over groups of related ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from tables import markdown, read_csv, sections, typeset

from crossgraft.rank.published.evaluate import mean_over_targets
from crossgraft.rank.published.record import MeanRecord

CONTROL, CEILING = "Static prior", "Noise ceiling"
ORDER, COLD, IMAGENET, ELSEWHERE = "Order of select", "Cold start", "ImageNet top-1", "Mean rank elsewhere"
WITH_TOP1, WITH_ELSEWHERE = "Cold start, networks with ImageNet top-1", "Cold start, networks known elsewhere"
KNOWN_WITH_TOP1 = "Order of select, networks with ImageNet top-1"
PAIRS = {
    "As a cold start, beside ImageNet top-1": (WITH_TOP1, IMAGENET),
    "As a cold start, beside the mean rank in other publications": (WITH_ELSEWHERE, ELSEWHERE),
    "With the other targets known, beside ImageNet top-1": (KNOWN_WITH_TOP1, IMAGENET),
}
FIRST = (
    *(CONTROL, "Aggregation", ORDER, COLD, IMAGENET, WITH_TOP1, KNOWN_WITH_TOP1),
    *(ELSEWHERE, WITH_ELSEWHERE, "Validation alone"),
)
IN_SHORT = ("Aggregation", ORDER, COLD, IMAGENET, "Fine-tuning at 64 pixels", "Validation alone", "Linear probe")


def fields(results: Path, figures: Path) -> dict[str, str]:
    rows = read_csv(results / "benchmark.csv")
    methods = list(rows["method"].unique())
    said = [f"- {method}: {verdict(rows, method, CONTROL)}" for method in IN_SHORT]
    more = [f"- {title}, on the same networks: {verdict(rows, *pair)}" for title, pair in PAIRS.items()]
    return {
        "targets": str(len(rows.drop_duplicates(["table", "target"]))),
        "tables": str(rows["table"].nunique()),
        "groups": str(rows["group"].nunique()),
        "beside_prior": "\n".join(said),
        "otherwise": "\n".join(more),
        "beside": sections({title: beside(rows, *pair) for title, pair in PAIRS.items()}, "##"),
        "together": of_methods(rows, [*(each for each in FIRST if each in methods), *(m for m in methods if m not in FIRST)]),
        "each_table": sections({name: of_table(own) for name, own in rows.groupby("table", sort=False)}, "##"),
    }


def paired(rows: pd.DataFrame, method: str, control: str) -> pd.DataFrame:
    """τ_w of both and the group, on every target that has both, in the order of the first."""
    one, other = (rows[rows["method"] == each] for each in (method, control))
    return one.merge(other, on=["table", "target"], suffixes=("", "_control"))


def gain(both: pd.DataFrame) -> MeanRecord:
    return mean_over_targets((both["weighted_kendall"] - both["weighted_kendall_control"]).to_numpy(), list(both["group"]))


def verdict(rows: pd.DataFrame, method: str, control: str) -> str:
    both = paired(rows, method, control)
    if not len(both):
        return "no table has it."
    found = gain(both)
    if found.low is None or found.high is None or found.low <= 0 <= found.high:
        return f"not separable, {shown(found, signed=True)} on {len(both)} targets."
    return f"{'better' if found.low > 0 else 'worse'}, {shown(found, signed=True)} on {len(both)} targets."


def beside(rows: pd.DataFrame, method: str, control: str) -> str:
    """The order of ``select`` beside one part of it, table by table, on the networks that both have."""
    lines: list[list[str]] = []
    for name in (*rows["table"].unique(), "all"):
        both = paired(rows if name == "all" else rows[rows["table"] == name], method, control)
        if len(both):
            means = (typeset(f"{both[f'weighted_kendall{end}'].to_numpy().mean():.3f}") for end in ("", "_control"))
            lines.append([name, str(len(both)), *means, shown(gain(both), signed=True)])
    return markdown(["table", "targets", "τ_w of the order", control, "difference"], lines)


def of_table(rows: pd.DataFrame) -> str:
    """All methods of one table, the best first."""
    taus = {method: own["weighted_kendall"].to_numpy().mean() for method, own in rows.groupby("method", sort=False)}
    table = of_methods(rows, sorted(taus, key=lambda method: -taus[method]))
    without = "Noise ceiling: not known, because no standard deviations between seeds are printed."
    return table if CEILING in taus else f"{table}\n\n{without}"


def of_methods(rows: pd.DataFrame, methods: list[str]) -> str:
    lines: list[list[str]] = []
    for method in methods:
        own = rows[rows["method"] == method]
        groups = list(own["group"])
        tau = mean_over_targets(own["weighted_kendall"].to_numpy(), groups, limits=(-1, 1))
        regret = mean_over_targets(100 * own["regret"].to_numpy(), groups, limits=(0, np.inf))
        gained = "control" if method == CONTROL else shown(gain(paired(rows, method, CONTROL)), signed=True)
        lines.append([method, str(len(own)), str(len(set(groups))), shown(tau), gained, shown(regret)])
    return markdown(["method", "targets", "groups", "τ_w", "minus static prior", "regret"], lines)


def shown(mean: MeanRecord, *, signed: bool = False) -> str:
    """A mean with its interval, where there is one."""
    if mean.value is None:
        return "—"
    values = [mean.value] if mean.low is None or mean.high is None else [mean.value, mean.low, mean.high]
    first, *ends = [f"{value:+.3f}" if signed else f"{value:.3f}" for value in values]
    return typeset(f"{first} [{', '.join(ends)}]".removesuffix(" []"))
