"""What the folders of the jobs that are done say, as one table, and as some lines for the terminal that waits."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from crossgraft.bench.job import JOBS, NAMED, is_named_by
from crossgraft.bench.lease import DONE, end_of
from crossgraft.bench.rounds import LOOK_SECONDS, states_of
from crossgraft.bench.study import Cell, Study
from crossgraft.errors import DataError
from crossgraft.words.text_table import text_table

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


MOST_LEVELS = 12


class SoFar:
    """Jobs done, failed and running, and the mean of the compared number by level.

    It looks at the folders, so that what other machines do is in it, too; each job is read once.

    Args:
        folder: Folder of the study.
        study: The study.
        lease_seconds: A process that shows no sign of life for so long is given up.
        clock: Seconds of a clock that never goes back.
    """

    def __init__(
        self, folder: Path, study: Study, *, lease_seconds: float = 60.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder, self._study, self._seconds, self._clock = folder, study, lease_seconds, clock
        self._open = {job.key: cell for cell, job in zip(study.cells, study.jobs, strict=True)}
        self._counts = Counter[str]()
        self._values: dict[str, list[float]] = {}
        self._next_look = clock()
        self._lines: list[str] = []

    def lines(self) -> list[str]:
        """What is known; costs a look at the folders at most once a second."""
        if self._clock() >= self._next_look:
            self._next_look = self._clock() + LOOK_SECONDS
            self._look()
            self._lines = self._in_words()
        return self._lines

    def _look(self) -> None:
        for key, cell in list(self._open.items()):
            ended = end_of(f"{self._folder}/{JOBS}/{key}")
            if ended is None:
                continue
            del self._open[key]
            self._counts[ended] += 1
            try:
                job = read_job(self._folder, key, cell)
            except (DataError, OSError):  # whoever makes the table says so
                continue
            for level, value in () if job is None else self._compared(job):
                self._values.setdefault(level, []).append(value)

    def _compared(self, job: DoneJob) -> Iterator[tuple[str, float]]:
        """Level and value of each number of a job that is compared."""
        self._study = with_metric(self._study, [job])
        compare, rows = self._study.compare or "", job.compared(self._study)
        for level in self._study.rows.get(compare, [job.cell.get(compare, "all")]):
            of_level = [row for row in rows if compare not in self._study.rows or str(row.get(compare)) == level]
            if of_level:
                yield level, float(of_level[0]["value"])

    def _in_words(self) -> list[str]:
        num_running = Counter(states_of(self._folder, self._open, seconds=self._seconds).values())["running"]
        counts = {"done": self._counts["done"], "failed": self._counts["failed"], "running": num_running}
        said = [", ".join(f"{number} {name}" for name, number in counts.items())]
        if not self._values:
            return said
        compare = self._study.compare or ""
        order = self._study.rows.get(compare) or self._study.factors.get(compare, ["all"])
        levels = [level for level in order if level in self._values]
        head = [compare, "jobs", f"mean {self._study.metric}"]
        table = [[level, str(len(self._values[level])), f"{fmean(self._values[level]):.4g}"] for level in levels[:MOST_LEVELS]]
        more = [f"… and {len(levels) - MOST_LEVELS} more"] if len(levels) > MOST_LEVELS else []
        return [*said, *text_table(head, table, right=head[1:]).splitlines(), *more]
