"""``crossgraft select --replay``: what the rule of ``select`` gives on a table of results, beside simpler ways."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crossgraft.errors import UnknownNameError
from crossgraft.rank.published.benchmark import read_benchmark_table
from crossgraft.rank.published.tables import published_tables
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import open_run
from crossgraft.running.verb import Run, verb
from crossgraft.select.options import ReplayOptions
from crossgraft.select.planning import parse_budget
from crossgraft.select.replay import ReplayResult, known_rows, replay, replay_published


@verb("select", ReplayOptions)
def replay_selection(table: str | Path, options: ReplayOptions, run: Run) -> ReplayResult:
    """Replay a table of results: what ``select_model`` would have handed over on each target, beside simpler ways.

    The code of ``select_model`` decides; trainings are looked up. The target at hand and its relatives (``group``) are unknown;
    the other targets of the table are known as results of one's own, or, with ``cold``, other publications and ImageNet alone.
    Beside it: the first of the order, the order with the best on val, the highest ImageNet top-1, successive halving, a random
    order, all trained.

    Args:
        table: CSV file (see ``read_benchmark_table``), or the name of a published table, whose publication is unknown then.
        {options}

    Returns:
        Mean and worst regret of each way within each budget, with intervals over groups of targets, and the weighted Kendall of
        the order; with ``out`` also ``report.json``, ``report.html`` and ``replay.csv`` there.

    Raises:
        UnknownNameError: Neither a CSV file nor a published table.
        DataError: A table is badly shaped.
        UsageError: A budget cannot be read, is below one training, or is a time where the table has no seconds.

    Cost:
        About three seconds of one core for 300 models × 20 targets.
    """
    budgets = [parse_budget(text) for text in options.budget.split(",")]
    known = [] if options.known is None else known_rows(read_benchmark_table(options.known))
    names = [each.name for each in published_tables()]
    if str(table) in names:
        record = replay_published(str(table), budgets, known=known, is_cold=options.cold, seed=options.seed)
    elif Path(table).suffix.lower() == ".csv":
        benchmark = read_benchmark_table(table)
        record = replay(benchmark, budgets, known=known, is_cold=options.cold, seed=options.seed)
    else:
        raise UnknownNameError("published table", str(table), names, hint="Or give a CSV file of your own results.")
    result = ReplayResult(record)
    return result if options.out is None else _written(result, table, options, run)


def _written(result: ReplayResult, table: str | Path, options: ReplayOptions, run: Run) -> ReplayResult:
    changed = {"budget": options.budget, "known": options.known, "cold": options.cold}
    line = run.said_again(changed, out=options.out or ".")
    with open_run(
        Path(options.out or "."),
        command="select --replay",
        command_line=line.replace(f"crossgraft {run.command} ", f"crossgraft {run.command} --replay ", 1),
        config={"replay": Path(table).name, **changed, "known": None if options.known is None else Path(options.known).name},
        seed=options.seed,
        overwrite=options.overwrite,
    ) as directory:
        page = publish(directory, result.record, run.reporter, tables={"replay.csv": result.to_frame()})
        return replace(result, out=directory.path, report=page)
