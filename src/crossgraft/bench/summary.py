"""From the folders of jobs to one table, and from that to means, paired differences and ranks."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from crossgraft.bench.job import JOBS
from crossgraft.bench.lease import DONE, FAILED
from crossgraft.bench.numbers import NAMED
from crossgraft.bench.record import CellRecord, FactorRecord, FailureRecord, LevelDifference, StudyRecord
from crossgraft.bench.rounds import reason_of
from crossgraft.bench.study import SEED, Cell, Study
from crossgraft.errors import DataError
from crossgraft.metrics.rows import METRICS
from crossgraft.rank.published.record import FriedmanRecord
from crossgraft.records.base import CheckRecord, Reference
from crossgraft.statistics import friedman, mean_interval
from crossgraft.words.formatting import counted

if TYPE_CHECKING:
    import pandas as pd

_DEMSAR = Reference(key="Ranks", text="Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7 (2006) 1.")
LEAST_TARGETS = 5
"""Fewer targets give Friedman's test, an approximation, no meaning (Demšar, section 3.2.2)."""


@dataclass(frozen=True)
class DoneJob:
    """A job that is done.

    Attributes:
        key: Name of its folder.
        cell: Its levels.
        run: Run folder, below that of the study.
        seconds: Seconds of the attempt that ended it.
        numbers: Rows of ``numbers_of``.
    """

    key: str
    cell: Cell
    run: str
    seconds: float
    numbers: Sequence[Mapping[str, Any]]

    def first(self, metric: str | None) -> Mapping[str, Any] | None:
        """The first number that is called ``metric``; the first of all when None."""
        return next((row for row in self.numbers if metric in (None, row["metric"]) and row["value"] is not None), None)


def read_done(folder: Path, study: Study) -> list[DoneJob]:
    """The jobs that are done, in the order of the study.

    Raises:
        DataError: The ``done.json`` of a job is damaged.
    """
    done: list[DoneJob] = []
    for cell, job in zip(study.cells, study.jobs, strict=True):
        file = folder / JOBS / job.key / DONE
        if file.exists():
            try:
                content = json.loads(file.read_text(encoding="utf-8"))
                run = f"{JOBS}/{job.key}/{content['run']}"
                done.append(DoneJob(job.key, cell, run, float(content["seconds"]), content["numbers"]))
            except (ValueError, KeyError, TypeError) as error:
                raise DataError(f"{file} is damaged. Remove the folder of this job; the same command does it again.") from error
    return done


def tidy_frame(done: Sequence[DoneJob], factors: Sequence[str]) -> pd.DataFrame:
    """One row a number: job, levels, metric, value, interval, what else its result says it is about, run folder, seconds."""
    import pandas as pd

    rows = [
        {"job": job.key, **job.cell, **{_beside(name, factors): value for name, value in row.items()}}
        | {"run": job.run, "seconds": job.seconds}
        for job in done
        for row in job.numbers
    ]
    first = ["job", *factors, *NAMED]
    known = dict.fromkeys([*first, *(name for row in rows for name in row)])
    return pd.DataFrame(rows, columns=[*(name for name in known if name not in ("run", "seconds")), "run", "seconds"])


def _beside(name: str, factors: Sequence[str]) -> str:
    """A word of a result that is called like a factor keeps a name of its own."""
    return f"result_{name}" if name in (*factors, "job", "run", "seconds") else name


def summarise(study: Study, folder: Path, done: Sequence[DoneJob]) -> StudyRecord:
    """Means, differences and ranks of what is done."""
    failures = [
        FailureRecord(job=job.key, levels=dict(cell), reason=reason_of(folder, job.key))
        for cell, job in zip(study.cells, study.jobs, strict=True)
        if (folder / JOBS / job.key / FAILED).exists() and not (folder / JOBS / job.key / DONE).exists()
    ]
    metric = study.metric or next((str(row["metric"]) for job in done if (row := job.first(None)) is not None), None)
    facts = None if metric is None else METRICS.get(metric)
    if study.larger_is_better is None and facts is not None:
        study = replace(study, larger_is_better=facts.higher_is_better)
    num_open, seconds = len(study.jobs) - len(done) - len(failures), sum(job.seconds for job in done)
    study, done = _by_rows(study, done)
    cells = _cells(study, done, failures, metric, (-math.inf, math.inf) if facts is None else facts.limits)
    test, reason = _ranks(study, cells)
    return StudyRecord(
        title=study.title,
        command=study.command,
        factors=[FactorRecord(name=name, levels=list(levels)) for name, levels in study.factors.items()],
        num_jobs=len(study.jobs),
        num_done=len(study.jobs) - num_open - len(failures),
        num_failed=len(failures),
        seconds=seconds,
        metric=metric,
        larger_is_better=study.larger_is_better is not False,
        compare=study.compare,
        over=study.over,
        cells=cells,
        differences=_differences(study, done, metric),
        friedman=test,
        no_friedman_reason=reason,
        failures=failures,
        checks=_checks(num_open, len(failures)),
        references=[_DEMSAR] if test is not None else [],
    )


def _by_rows(study: Study, done: Sequence[DoneJob]) -> tuple[Study, Sequence[DoneJob]]:
    """With the rows of each result as if each were that of a job of its own."""
    if not study.rows:
        return study, done
    ((column, levels),) = study.rows.items()
    cells = [{**cell, column: level} for cell in study.cells for level in levels]
    parts = [
        replace(job, cell={**job.cell, column: level}, numbers=[row for row in job.numbers if row.get(column) == level])
        for job in done
        for level in levels
    ]
    return replace(study, cells=cells, factors={**study.factors, column: levels}), parts


def _checks(num_open: int, num_failed: int) -> list[CheckRecord]:
    checks: list[CheckRecord] = []
    if num_open:
        text = f"{counted(num_open, 'job')} are not done. The same command does them."
        checks.append(CheckRecord(title="Not finished", severity="warning", text=text))
    if num_failed:
        text = f"{counted(num_failed, 'job')} failed. Means and differences are of the others alone."
        checks.append(CheckRecord(title="Failed jobs", severity="warning", text=text))
    return checks


def _without_seed(cell: Cell) -> tuple[tuple[str, str], ...]:
    return tuple((factor, level) for factor, level in cell.items() if factor != SEED)


def _cells(
    study: Study, done: Sequence[DoneJob], failures: Sequence[FailureRecord], metric: str | None, limits: tuple[float, float]
) -> list[CellRecord]:
    rows: list[CellRecord] = []
    for levels in dict.fromkeys(_without_seed(cell) for cell in study.cells):
        jobs = [job for job in done if _without_seed(job.cell) == levels]
        numbers = [row for job in jobs if (row := job.first(metric)) is not None]
        values = [float(row["value"]) for row in numbers]
        common: dict[str, Any] = {
            "levels": dict(levels),
            "num_done": len(jobs),
            "num_failed": sum({*_without_seed(failure.levels)} <= {*levels} for failure in failures),
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


def _differences(study: Study, done: Sequence[DoneJob], metric: str | None) -> list[LevelDifference]:
    """Every level of the compared factor minus the first one: paired, averaged over seeds and then over targets."""
    if study.compare is None:
        return []
    reference, *others = study.factors[study.compare]
    values: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for job in done:
        if (row := job.first(metric)) is not None and study.compare in job.cell:
            rest = tuple((factor, level) for factor, level in job.cell.items() if factor != study.compare)
            values.setdefault(job.cell[study.compare], {})[rest] = float(row["value"])
    return [_difference(level, reference, values, by_seed=_has_one_target(study)) for level in others]


def _has_one_target(study: Study) -> bool:
    """Whether jobs of one level differ in their seeds alone."""
    return all(len(levels) < 2 for factor, levels in study.factors.items() if factor not in (study.compare, SEED))


def _difference(
    level: str, reference: str, values: Mapping[str, Mapping[tuple[tuple[str, str], ...], float]], *, by_seed: bool
) -> LevelDifference:
    one, other = values.get(level, {}), values.get(reference, {})
    pairs = [rest for rest in one if rest in other]
    by_target: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for rest in pairs:
        target = rest if by_seed else _without_seed(dict(rest))
        by_target.setdefault(target, []).append(one[rest] - other[rest])
    if not by_target:
        return LevelDifference(level=level, reference=reference, value=None, num_pairs=0, reason="no job of both is done")
    mean = mean_interval(np.array([fmean(each) for each in by_target.values()]))
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
    by_target: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
    for cell in cells:
        rest = tuple((factor, level) for factor, level in cell.levels.items() if factor != study.compare)
        if cell.value is not None and study.compare in cell.levels:
            by_target.setdefault(rest, {})[cell.levels[study.compare]] = cell.value
    whole = [row for row in by_target.values() if len(row) == len(methods)]
    if len(methods) < 3 or len(whole) < LEAST_TARGETS:
        return None, f"Ranks need three levels of {study.compare} and {LEAST_TARGETS} targets that all of them are done on."
    sign = -1.0 if study.larger_is_better is False else 1.0
    try:
        test = friedman(np.array([[sign * row[method] for method in methods] for row in whole]))
    except DataError as error:
        return None, str(error)
    record = FriedmanRecord(
        methods=methods,
        mean_ranks=test.mean_ranks.tolist(),
        statistic=test.statistic,
        p_value=test.p_value,
        critical_difference=test.critical_difference,
        cliques=test.cliques,
        num_targets=len(whole),
    )
    return record, None
