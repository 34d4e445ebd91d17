"""From the numbers of the jobs that are done to means, paired differences and ranks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from crossgraft.bench.done import DoneJob, with_metric
from crossgraft.bench.job import JOBS
from crossgraft.bench.lease import DONE, FAILED
from crossgraft.bench.record import CellRecord, FactorRecord, FailureRecord, LevelDifference, StudyRecord
from crossgraft.bench.rounds import reason_of
from crossgraft.bench.study import SEED, Cell, Study
from crossgraft.errors import DataError
from crossgraft.metrics.rows import METRICS
from crossgraft.rank.published.record import FriedmanRecord
from crossgraft.records.base import CheckRecord, Reference
from crossgraft.statistics import friedman, mean_interval
from crossgraft.words.formatting import counted

_DEMSAR = Reference(key="Ranks", text="Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7 (2006) 1.")
LEAST_TARGETS = 5
"""Fewer targets give Friedman's test, an approximation, no meaning (Demšar, section 3.2.2)."""


def summarise(study: Study, folder: Path, done: Sequence[DoneJob]) -> StudyRecord:
    """Means, differences and ranks of what is done."""
    failures = [
        FailureRecord(job=job.key, levels=dict(cell), reason=reason_of(folder, job.key))
        for cell, job in zip(study.cells, study.jobs, strict=True)
        if (folder / JOBS / job.key / FAILED).exists() and not (folder / JOBS / job.key / DONE).exists()
    ]
    study = with_metric(study, done)
    metric = study.metric
    facts = None if metric is None else METRICS.get(metric)
    limits = (-math.inf, math.inf) if facts is None else facts.limits
    if study.larger_is_better is None and facts is not None:
        study = replace(study, larger_is_better=facts.higher_is_better)
    num_open, seconds = len(study.jobs) - len(done) - len(failures), sum(job.seconds for job in done)
    peak_mb = max((job.peak_mb for job in done if job.peak_mb is not None), default=None)
    study, done = _by_rows(study, done)
    cells = _cells(study, done, failures, limits)
    test, reason = _ranks(study, cells)
    return StudyRecord(
        title=study.title,
        command=study.command,
        factors=[FactorRecord(name=name, levels=list(levels)) for name, levels in study.factors.items()],
        num_jobs=len(study.jobs),
        num_done=len(study.jobs) - num_open - len(failures),
        num_failed=len(failures),
        seconds=seconds,
        peak_mb=peak_mb,
        metric=metric,
        larger_is_better=study.larger_is_better,
        compare=study.compare,
        over=study.over,
        cells=cells,
        differences=_differences(study, done, limits),
        friedman=test,
        no_friedman_reason=reason,
        failures=failures,
        checks=_checks(num_open, len(failures)) + _checks_of_numbers(study, done),
        references=[_DEMSAR] if test is not None else [],
    )


def _by_rows(study: Study, done: Sequence[DoneJob]) -> tuple[Study, Sequence[DoneJob]]:
    """With the rows of each result as if each were that of a job of its own."""
    if not study.rows:
        return study, done
    ((column, levels),) = study.rows.items()
    cells = [{**cell, column: level} for cell in study.cells for level in levels]
    parts = [
        replace(job, cell={**job.cell, column: level}, numbers=[row for row in job.numbers if str(row.get(column)) == level])
        for job in done
        for level in levels
    ]
    return replace(study, cells=cells, factors={**study.factors, column: levels}), parts


def _checks(num_open: int, num_failed: int) -> list[CheckRecord]:
    checks: list[CheckRecord] = []
    if num_open:
        text = f"{counted(num_open, 'job')} {'is' if num_open == 1 else 'are'} not done. The same command does them."
        checks.append(CheckRecord(title="Not finished", severity="warning", text=text))
    if num_failed:
        text = f"{counted(num_failed, 'job')} failed. Means and differences are of the others alone."
        checks.append(CheckRecord(title="Failed jobs", severity="warning", text=text))
    return checks


def _checks_of_numbers(study: Study, done: Sequence[DoneJob]) -> list[CheckRecord]:
    """Whether what is compared is one number of each job, of one version."""
    checks: list[CheckRecord] = []
    alike = [rows for job in done if (rows := job.compared(study))]
    asked = ", ".join([str(study.metric), *(f"{name} {word}" for name, word in study.about.items())])
    if done and not any(job.numbers for job in done):
        text = f"What crossgraft {study.command} finds has no numbers. Its pages stand in the folders of the jobs."
        checks.append(CheckRecord(title="Nothing to compare", severity="warning", text=text))
    elif done and not alike:
        names = ", ".join(dict.fromkeys(str(row["metric"]) for row in done[0].numbers)) or "none"
        text = f"No job has the number {asked}; there are: {names}. Correct the key `metric`: no job is done again for it."
        checks.append(CheckRecord(title="Nothing to compare", severity="warning", text=text))
    elif (most := max(map(len, alike), default=0)) > 1:
        first = {name: word for name, word in alike[0][0].items() if isinstance(word, str) and "reason" not in name}
        words = ", ".join(f"{name} {word}" for name, word in first.items() if name != "metric") or "it says no more"
        text = (
            f"A job has up to {most} numbers {asked}. Compared is the first, in the first job: {words}. "
            f"Name another by its columns in results.csv, such as `metric: {{metric: {study.metric}, …}}`."
        )
        checks.append(CheckRecord(title="Several numbers of one name", severity="warning", text=text))
    if len(versions := sorted({job.version for job in done})) > 1:
        text = f"Jobs were done by crossgraft {' and '.join(versions)}, which need not give the same numbers."
        checks.append(CheckRecord(title="Several versions", severity="warning", text=text))
    return checks


def _without(factor: str, cell: Cell) -> tuple[tuple[str, str], ...]:
    return tuple((name, level) for name, level in cell.items() if name != factor)


def _cells(
    study: Study, done: Sequence[DoneJob], failures: Sequence[FailureRecord], limits: tuple[float, float]
) -> list[CellRecord]:
    rows: list[CellRecord] = []
    by_cell: dict[tuple[tuple[str, str], ...], list[DoneJob]] = {_without(SEED, cell): [] for cell in study.cells}
    for job in done:
        by_cell[_without(SEED, job.cell)].append(job)
    num_failed = Counter(_without(SEED, failure.levels) for failure in failures)
    for levels, jobs in by_cell.items():
        numbers = [row for job in jobs if (row := job.first(study)) is not None]
        values = [float(row["value"]) for row in numbers]
        common: dict[str, Any] = {
            "levels": dict(levels),
            "num_done": len(jobs),
            "num_failed": sum(number for failed, number in num_failed.items() if {*failed} <= {*levels}),
        }
        if len(values) == 1:
            low, high = numbers[0]["low"], numbers[0]["high"]
            reason = None if low is not None else "one job, whose result has none"
            of = None if low is None else "one job"
            rows.append(CellRecord(**common, value=values[0], low=low, high=high, interval_of=of, no_interval_reason=reason))
        elif values:
            mean = mean_interval(np.array(values), limits=limits)
            of = None if mean.low is None else "seeds"
            rows.append(
                CellRecord(
                    **common, value=mean.mean, low=mean.low, high=mean.high, interval_of=of, no_interval_reason=mean.reason
                )
            )
        else:
            rows.append(CellRecord(**common, no_interval_reason="no job has this number"))
    return rows


def _differences(study: Study, done: Sequence[DoneJob], limits: tuple[float, float]) -> list[LevelDifference]:
    """Every level of the compared factor minus the first one: paired in all else, averaged in each target, then over targets."""
    if study.compare is None:
        return []
    reference, *others = study.factors[study.compare]
    values: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for job in done:
        if (row := job.first(study)) is not None and study.compare in job.cell:
            values.setdefault(job.cell[study.compare], {})[_without(study.compare, job.cell)] = float(row["value"])
    reach = limits[1] - limits[0]
    return [_difference(level, reference, values, _unit(study), (-reach, reach)) for level in others]


def _unit(study: Study) -> str | None:
    """The factor whose levels are independent of each other: the targets, or where there is one alone, the seeds."""
    others = [factor for factor, levels in study.factors.items() if len(levels) > 1 and factor not in (study.compare, SEED)]
    return study.over if others else SEED


def _difference(
    level: str,
    reference: str,
    values: Mapping[str, Mapping[tuple[tuple[str, str], ...], float]],
    unit: str | None,
    limits: tuple[float, float],
) -> LevelDifference:
    one, other = values.get(level, {}), values.get(reference, {})
    by_target: dict[str | None, list[float]] = {}
    for rest in one:
        if rest in other:
            by_target.setdefault(dict(rest).get(unit or ""), []).append(one[rest] - other[rest])
    if not by_target:
        return LevelDifference(level=level, reference=reference, value=None, num_pairs=0, reason="no job of both has this number")
    mean = mean_interval(np.array([fmean(each) for each in by_target.values()]), limits=limits)
    return LevelDifference(
        level=level,
        reference=reference,
        value=mean.mean,
        low=mean.low,
        high=mean.high,
        num_pairs=len(by_target),
        reason=mean.reason,
    )


def _ranks(study: Study, cells: Sequence[CellRecord]) -> tuple[FriedmanRecord | None, str | None]:
    """Friedman's test of the levels over the targets that all of them have; or why there is none."""
    if study.compare is None or study.over is None:
        return None, None
    methods = list(study.factors[study.compare])
    by_rest: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
    for cell in cells:
        if cell.value is not None and study.compare in cell.levels:
            by_rest.setdefault(_without(study.compare, cell.levels), {})[cell.levels[study.compare]] = cell.value
    by_target: dict[str | None, list[list[float]]] = {}
    for rest, row in by_rest.items():
        if len(row) == len(methods):
            by_target.setdefault(dict(rest).get(study.over), []).append([row[method] for method in methods])
    if len(methods) < 3 or len(by_target) < LEAST_TARGETS:
        return None, f"Ranks need three levels of {study.compare} and {LEAST_TARGETS} targets that all of them are done on."
    if study.larger_is_better is None:
        return None, "Ranks need to know whether larger or smaller is better: the key `better` says so."
    sign = 1.0 if study.larger_is_better else -1.0
    try:
        test = friedman(sign * np.array([np.mean(rows, axis=0) for rows in by_target.values()]))
    except DataError as error:
        return None, str(error)
    record = FriedmanRecord(
        methods=methods,
        mean_ranks=test.mean_ranks.tolist(),
        statistic=test.statistic,
        p_value=test.p_value,
        critical_difference=test.critical_difference,
        cliques=test.cliques,
        num_targets=len(by_target),
    )
    return record, None
