"""How long the jobs of a study take, from some that are done, or from the plans of some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from crossgraft.bench.done import read_done
from crossgraft.bench.job import StudyJob, prepared
from crossgraft.bench.study import SEED, Cell, Study
from crossgraft.errors import CrossgraftError
from crossgraft.progress import Reporter
from crossgraft.seeding import generator

if TYPE_CHECKING:
    from pathlib import Path

MOST_READ = 200
"""Jobs that are done whose times are read, so that ``--status`` stays quick."""
MOST_PLANNED = 30
PLANNING_SECONDS = 30.0
"""After which no further job is planned."""
SHRINKAGE = 0.1
"""In jobs: how far a level that few known jobs have is drawn to the mean of all."""


def seconds_of_done(study: Study, out: Path, done: Sequence[StudyJob]) -> dict[str, float]:
    """Key of a job → seconds, of some that are done, drawn from all over the study."""
    drawn = generator(0, "bench", "times").permutation(len(done))[:MOST_READ]
    keys = frozenset(done[place].key for place in drawn)
    return {job.key: job.seconds for job in read_done(out, study.only(keys))}


def seconds_of_plans(study: Study, missing: Sequence[int], reporter: Reporter) -> dict[str, float]:
    """Key of a job → seconds that its plan says, of some of ``missing`` that have each level between them.

    Of a study of several settings and networks no job stands for all.

    Raises:
        CrossgraftError: None of the jobs can be planned; the reason of the first.
    """
    chosen = list(_of_every_level(study.cells, missing))[:MOST_PLANNED]
    known: dict[str, float] = {}
    failed: CrossgraftError | None = None
    start = reporter.clock()
    with reporter.stage("Asking jobs how long they take", total=len(chosen), unit="jobs") as stage:
        for place in chosen:
            if known and reporter.clock() - start > PLANNING_SECONDS:
                break
            job = study.jobs[place]
            try:
                seconds = planned_seconds(job)
            except CrossgraftError as error:
                failed = failed or error
                reporter.warn(f"{', '.join(study.cells[place].values())} cannot be planned: {error}")
            else:
                if seconds is not None:
                    known[job.key] = seconds
            stage.advance()
    if failed is not None and not known:
        raise failed
    return known


def planned_seconds(job: StudyJob) -> float | None:
    """What the plan of one job says, where its verb makes plans."""
    planned = prepared(job)
    function: Any = planned.func
    if "plan" not in function.options.__dataclass_fields__:
        return None
    result = planned(plan=True, reporter=Reporter(quiet=True))
    seconds: float | None = getattr(result.shown, "expected_seconds", None)
    return None if seconds is None else seconds + (getattr(result.shown, "seconds_beside", None) or 0.0)


def _of_every_level(cells: Sequence[Cell], places: Sequence[int]) -> Iterator[int]:
    """The first cell, then those, in random order, that have a level which none before had."""
    seen: set[tuple[str, str]] = set()
    order = [0, *(1 + generator(0, "bench", "plans").permutation(len(places) - 1))] if places else []
    for number, at in enumerate(order):
        levels = set(_levels(cells[places[at]]))
        if number == 0 or not levels <= seen:
            seen |= levels
            yield places[at]


def _levels(cell: Cell) -> list[tuple[str, str]]:
    """What may make a job longer: all but its seed."""
    return [(factor, level) for factor, level in cell.items() if factor != SEED]


def expected_seconds(study: Study, known: Mapping[str, float]) -> Float[np.ndarray, " jobs"]:
    """Seconds of every job, from those of the ``known``, by key.

    log t = μ + Σ_f α_f(level of f): each level makes a job longer or shorter by a factor of its own. Least squares, with
    ``SHRINKAGE``, so that a level which no known job has counts as a mean one; then scaled to the sum of the known times.

    Returns:
        As many as jobs, shape (jobs,), in seconds.
    """
    rows = [place for place, job in enumerate(study.jobs) if job.key in known]
    took = np.array([known[study.jobs[place].key] for place in rows])
    logs = np.log(np.maximum(took, 1e-3))
    levels = list(dict.fromkeys(level for place in rows for level in _levels(study.cells[place])))
    design = np.array(
        [[level in of_cell for level in levels] for of_cell in (set(_levels(study.cells[place])) for place in rows)], float
    )
    gram = design.T @ design + SHRINKAGE * np.eye(len(levels))
    effects = dict(zip(levels, np.linalg.solve(gram, design.T @ (logs - logs.mean())).tolist(), strict=True))
    expected = np.exp([logs.mean() + sum(effects.get(level, 0.0) for level in _levels(cell)) for cell in study.cells])
    return expected * took.sum() / expected[rows].sum()
