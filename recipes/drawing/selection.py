"""What docs/results/selection.md says of selection.csv: regret of each way to choose, within several budgets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from tables import Lines, body, markdown, read_csv, sections

from crossgraft.select.replay.page import METHOD_TITLES

BUDGETS = ("3%", "10%", "25%", "50%")
STARTS = {"known": "other targets known", "cold": "cold start"}
KEY = ["table", "start", "budget", "method"]
LIMIT = 0.001
"""What ``select`` may be above the plain list, as a fraction of accuracy or AUC."""
BEYOND, LOW, HIGH = (f"beyond_select.{name}" for name in ("value", "low", "high"))


def fields(results: Path, figures: Path) -> dict[str, str]:
    rows = read_csv(results / "selection.csv")
    judged = rows[rows["budget"].isin(BUDGETS[1:]) & rows["mean_regret"].notna()]
    of_tables = {
        table: "\n\n".join(of_start(own[own["start"] == start], title) for start, title in STARTS.items())
        for table, own in rows.groupby("table", sort=False)
    }
    return {
        **limit_in_words(judged),
        "counts": body(counts(judged)),
        "better": better(rows),
        "each_table": sections(of_tables, "##"),
    }


def limit_in_words(judged: pd.DataFrame) -> dict[str, str]:
    """How far ``select`` is above the plain list."""
    above = -judged[judged["method"] == "prior_order_best_val"][BEYOND]
    return {
        "places": str(len(above)),
        "differ": str((above != 0).sum()),
        "above": f"{100 * max(0.0, above.max()):.4f}",
        "below": f"{100 * max(0.0, -above.min()):.4f}",
        "holds": "holds" if above.max() <= LIMIT else "is broken",
    }


def counts(judged: pd.DataFrame) -> Lines:
    """How often a way is separably better or worse than ``select``."""
    for method in list(METHOD_TITLES)[1:]:
        for start, title in STARTS.items():
            own = judged[(judged["method"] == method) & (judged["start"] == start)]
            above, below = (own[HIGH] < 0).sum(), (own[LOW] > 0).sum()
            yield [METHOD_TITLES[method], title, len(own), above, below, len(own) - above - below]


def better(rows: pd.DataFrame) -> str:
    """Where a way that keeps to the budget is separably better."""
    found = rows[(rows[HIGH] < 0) & (rows["method"] != "all_trained")]
    lines = [
        f"- {table}, {STARTS[start]}, {budget}: {METHOD_TITLES[method]}, by {-100 * value:.2f} "
        f"[{-100 * high:.2f}, {-100 * low:.2f}] points."
        for table, start, budget, method, value, low, high in found[[*KEY, BEYOND, LOW, HIGH]].itertuples(index=False)
    ]
    return "\n".join(lines or ["- none."])


def of_start(rows: pd.DataFrame, title: str) -> str:
    """One row per way, one column per budget."""
    columns = ["mean_regret", "low", "high", "worst_regret"]
    lines = [
        [words, *(cell(*row) for row in rows.loc[rows["method"] == method, columns].itertuples(index=False))]
        for method, words in METHOD_TITLES.items()
    ]
    return markdown([title, *BUDGETS], lines)


def cell(mean: float, low: float, high: float, worst: float) -> str:
    if np.isnan(mean):
        return "—"
    interval = "" if np.isnan(low) else f" [{100 * low:.2f}, {100 * high:.2f}]"
    return f"{100 * mean:.2f}{interval} ({100 * worst:.2f})"
