"""What ``crossgraft select`` would have handed over on published tables, within several budgets: docs/results/selection.md.

    python recipes/benchmark_select.py --out docs/results/selection.md
    python recipes/benchmark_select.py --smoke      # one small table; the same code

It runs ``crossgraft.select.replay``, which is ``crossgraft select --replay``, and keeps what it measured beside the page
as a CSV file.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from benchmark import ALL, SMOKE, replay_of
from benchmark_select_text import DECIDED, HEAD

from crossgraft.compute import limit_threads
from crossgraft.seeding import generator
from crossgraft.select.planning import parse_budget
from crossgraft.select.replay import replay
from crossgraft.select.replay.page import METHOD_TITLES

BUDGETS = ("3%", "10%", "25%", "50%")
JUDGED = BUDGETS[1:]
STARTS = {"known": "other targets known", "cold": "cold start"}
LIMIT = 0.001
"""What ``select`` may be above the plain list, as a fraction of accuracy or AUC."""
BEYOND, BEYOND_LOW, BEYOND_HIGH = (f"beyond_select.{name}" for name in ("value", "low", "high"))
COLUMNS = ["table", "start", "budget", "method", "num_targets", "mean_regret", "low", "high", "worst_regret"]


def main(command_line: Sequence[str] | None = None) -> None:
    """Measure, keep the numbers and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/results/selection.md"))
    parser.add_argument("--smoke", action="store_true", help="One small table.")
    parser.add_argument("--page-only", action="store_true", help="Write the page of the numbers that are kept.")
    arguments = parser.parse_args(command_line)
    kept = arguments.out.with_suffix(".csv")
    if not arguments.page_only:
        with limit_threads(1):
            rows = pd.concat([each for name in (SMOKE if arguments.smoke else ALL) for each in measure(name)])
        rows = rows[[*COLUMNS, BEYOND, BEYOND_LOW, BEYOND_HIGH]]
        rows.to_csv(kept, index=False, float_format="%.6f", lineterminator="\n")
    arguments.out.write_text(write_page(pd.read_csv(kept)), encoding="utf-8")
    print(f"Page: {arguments.out.name}")


def measure(name: str) -> Iterator[pd.DataFrame]:
    """Every way on one table; where deviations are published but no val, again with one drawn run of each network as val."""
    found = replay_of(name)
    benchmarks = {name: found.benchmark}
    if found.benchmark.validation is None and (deviations := found.benchmark.standard_deviations) is not None:
        noise = generator(0, "one run", name).standard_normal(deviations.shape)
        val = found.benchmark.results + np.nan_to_num(deviations) * noise
        benchmarks[f"{name}, one run"] = replace(found.benchmark, validation=val)
    budgets = [parse_budget(text) for text in BUDGETS]
    known = {"metric": found.metric, "without": found.without, "names": found.names}
    for table, benchmark in benchmarks.items():
        for start in STARTS:
            record = replay(benchmark, budgets, is_cold=start == "cold", **known)
            yield pd.json_normalize([{"table": table, "start": start} | row.model_dump() for row in record.rows])
        print(table, flush=True)


def write_page(rows: pd.DataFrame) -> str:
    """All of it as Markdown."""
    judged = rows[rows["budget"].isin(JUDGED) & rows["mean_regret"].notna()]
    parts = [HEAD, _limit_in_words(judged), DECIDED, _counts(judged), _better(rows)]
    for table in rows["table"].unique():
        parts.append(f"## {table}")
        parts += [_table(rows[(rows["table"] == table) & (rows["start"] == start)], start) for start in STARTS]
    return "\n\n".join(parts) + "\n"


def _limit_in_words(judged: pd.DataFrame) -> str:
    """How far ``select`` is above the plain list."""
    above = -judged[judged["method"] == "prior_order_best_val"][BEYOND]
    verdict = "holds" if above.max() <= LIMIT else "is broken"
    return (
        f"On {len(above)} places (table, start, and a budget of 10, 25 or 50 %) the two differ on {(above != 0).sum()}; `select` "
        f"is above by {100 * max(0.0, above.max()):.4f} points at most and below by {100 * max(0.0, -above.min()):.4f} at most. "
        f"The condition {verdict}."
    )


def _counts(judged: pd.DataFrame) -> str:
    """How often a way is separably better or worse than ``select``."""
    lines = ["| way | start | places | better than select | worse | not separable |", "|---" * 6 + "|"]
    for method in list(METHOD_TITLES)[1:]:
        for start, title in STARTS.items():
            some = judged[(judged["method"] == method) & (judged["start"] == start)]
            better, worse = (some[BEYOND_HIGH] < 0).sum(), (some[BEYOND_LOW] > 0).sum()
            cells = [METHOD_TITLES[method], title, len(some), better, worse, len(some) - better - worse]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _better(rows: pd.DataFrame) -> str:
    """Where a way that keeps to the budget is separably better."""
    found = rows[(rows[BEYOND_HIGH] < 0) & (rows["method"] != "all_trained")]
    lines = [
        f"- {row.table}, {STARTS[row.start]}, {row.budget}: {METHOD_TITLES[row.method]}, by {-100 * value:.2f} "
        f"[{-100 * high:.2f}, {-100 * low:.2f}] points."
        for row, value, low, high in zip(found.itertuples(), found[BEYOND], found[BEYOND_LOW], found[BEYOND_HIGH], strict=True)
    ]
    head = "Separably better than `select` within the same budget, 3 % included:"
    return "\n".join([head, "", *(lines or ["- none."])])


def _table(rows: pd.DataFrame, start: str) -> str:
    """One row per way, one column per budget."""
    lines = [f"| {STARTS[start]} | {' | '.join(BUDGETS)} |", "|---" * (len(BUDGETS) + 1) + "|"]
    for method, title in METHOD_TITLES.items():
        cells = [_cell(*row) for row in rows.loc[rows["method"] == method, COLUMNS[5:]].to_numpy()]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(mean: float, low: float, high: float, worst: float) -> str:
    if np.isnan(mean):
        return "—"
    interval = "" if np.isnan(low) else f" [{100 * low:.2f}, {100 * high:.2f}]"
    return f"{100 * mean:.2f}{interval} ({100 * worst:.2f})"


if __name__ == "__main__":
    main()
