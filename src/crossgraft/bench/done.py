"""What the folders of the jobs that are done say, as one table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossgraft.bench.job import JOBS
from crossgraft.bench.lease import DONE
from crossgraft.bench.numbers import NAMED, is_named_by
from crossgraft.bench.study import Cell, Study
from crossgraft.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


OF_THE_RUN = ("run", "seconds", "peak_mb")
"""Columns that say where a job was done and what it cost."""


@dataclass(frozen=True)
class DoneJob:
    """A job that is done.

    Attributes:
        key: Name of its folder.
        cell: Its levels.
        run: Run folder, below that of the study.
        seconds: Seconds of the attempt that ended it.
        numbers: Rows of ``numbers_of``.
        version: That of crossgraft which ended it.
        primary: Metric and words of the number that stands for its result; empty: the first one.
        peak_mb: Megabytes that its process had at most meanwhile, what it kept from earlier jobs included; None: not known.
    """

    key: str
    cell: Cell
    run: str
    seconds: float
    numbers: Sequence[Mapping[str, Any]]
    version: str
    primary: Mapping[str, str] = field(default_factory=dict[str, str])
    peak_mb: float | None = None

    def compared(self, study: Study) -> list[Mapping[str, Any]]:
        """The numbers that ``study`` may mean, of which the first is compared; all of them where it names none."""
        return [
            row
            for row in self.numbers
            if study.metric in (None, row["metric"]) and row["value"] is not None and is_named_by(study.about, row)
        ]

    def first(self, study: Study) -> Mapping[str, Any] | None:
        """The number that is compared."""
        return next(iter(self.compared(study)), None)


def read_done(folder: Path, study: Study) -> list[DoneJob]:
    """The jobs that are done, in the order of the study.

    Raises:
        DataError: The ``done.json`` of a job is damaged.
    """
    jobs = (read_job(folder, job.key, cell) for cell, job in zip(study.cells, study.jobs, strict=True))
    return [job for job in jobs if job is not None]


def read_job(folder: Path, key: str, cell: Cell) -> DoneJob | None:
    """One job; None where it is not done.

    Raises:
        DataError: Its ``done.json`` is damaged.
    """
    file = folder / JOBS / key / DONE
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        run = f"{JOBS}/{key}/{content['run']}"
        numbers, version = list(map(dict, content["numbers"])), str(content["version"])
        peak = content.get("peak_bytes")
        peak_mb = None if peak is None else round(peak / 1e6, 1)
        return DoneJob(key, cell, run, float(content["seconds"]), numbers, version, content.get("primary", {}), peak_mb)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file} is damaged. Remove the folder of this job; the same command does it again.") from error


def with_metric(study: Study, done: Iterable[DoneJob]) -> Study:
    """The study with the number that it compares: where it names none, the one that stands for the result of the first job."""
    if study.metric is not None:
        return study
    for job in done:
        words = dict(job.primary) or {"metric": str((job.first(study) or {}).get("metric", ""))}
        metric = words.pop("metric")
        if metric:
            return replace(study, metric=metric, about=study.about if study.rows else words)
    return study


def tidy_frame(done: Sequence[DoneJob], factors: Sequence[str]) -> pd.DataFrame:
    """One row a number: job, levels, metric, value, interval, what else its result says it is about, and ``OF_THE_RUN``."""
    import pandas as pd

    rows = [
        {"job": job.key, **job.cell, **{_beside(name, factors): value for name, value in row.items()}}
        | {"run": job.run, "seconds": job.seconds, "peak_mb": job.peak_mb}
        for job in done
        for row in job.numbers
    ]
    first = ["job", *factors, *NAMED]
    known = dict.fromkeys([*first, *(name for row in rows for name in row)])
    frame = pd.DataFrame(rows, columns=[*(name for name in known if name not in OF_THE_RUN), *OF_THE_RUN])
    return frame.astype({"peak_mb": "float64"})


def _beside(name: str, factors: Sequence[str]) -> str:
    """A word of a result that is called like a factor keeps a name of its own."""
    return f"result_{name}" if name in (*factors, "job", *OF_THE_RUN) else name
