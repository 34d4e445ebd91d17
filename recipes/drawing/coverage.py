"""What docs/results/coverage.md says of coverage.csv: how often each interval holds the truth."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from tables import markdown, read_csv

DRAWS, LEAST = 2000, 0.93


def fields(results: Path, figures: Path) -> dict[str, str]:
    rows = read_csv(results / "coverage.csv")
    shares = ["held", "below", "above"]
    rows[shares] = rows[shares].mul(rows["draws"], axis=0).round().div(rows["draws"], axis=0)  # of 4 decimals the exact ones
    low = rows[(rows["draws"] >= DRAWS / 10) & (rows["held"] < LEAST)]
    told = "; ".join(f"{row.quantity}, {row.design} ({percent(row.held)})" for row in low.itertuples())
    zero = rows["no_width"].sum()
    return {
        "low": f", except {told}" if told else "",
        "zero": f", except {zero}" if zero else "",
        "tables": "\n\n".join(of_quantity(name, own) for name, own in rows.groupby("quantity", sort=False)),
    }


def of_quantity(name: str, rows: pd.DataFrame) -> str:
    lines: list[list[str]] = []
    for row in rows.itertuples():
        cells = (
            [percent(row.held), percent(row.below), percent(row.above), f"{row.width:.3g}"]
            if row.draws >= DRAWS / 10
            else 4 * ["—"]
        )
        lines.append([row.design, *cells, percent(row.without / DRAWS) if row.without else "—"])
    head = ["design", "held", "below", "above", "mean width", "without an interval"]
    return f"## {name[0].upper() + name[1:]}\n{markdown(head, lines)}"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"
