"""What a study has found so far, in some lines for the terminal that waits for it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean

from crossgraft.bench.done import DoneJob, read_job, with_metric
from crossgraft.bench.job import JOBS
from crossgraft.bench.lease import end_of
from crossgraft.bench.rounds import states_of
from crossgraft.bench.study import Study
from crossgraft.errors import DataError
from crossgraft.words.text_table import text_table

LOOK_SECONDS = 1.0
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
