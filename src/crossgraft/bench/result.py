"""What ``run_study`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crossgraft.bench.record import StudyRecord, StudyStateRecord
from crossgraft.compute import rounded_size
from crossgraft.errors import UsageError
from crossgraft.records.base import Record
from crossgraft.result import EXIT_PARTIAL, Result
from crossgraft.words.formatting import counted, rounded_time

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class StudyResult(Result[StudyRecord]):
    """A study, or with ``plan`` and ``status`` what there is of it.

    Attributes:
        state: What is done and what is left, where nothing was to be done.
        script: A batch script that does it on any cluster.
        numbers: Table of every number of every job; None without a record.
    """

    state: StudyStateRecord | None = None
    script: str | None = None
    numbers: pd.DataFrame | None = None

    @property
    def shown(self) -> Record:
        """The record, or the state."""
        return self.record if self.state is None else self.state

    def summary(self) -> str:
        """How many jobs are done, and what is left."""
        if self.state is not None:
            return "\n".join([*state_in_words(self.state), *([] if self.script is None else ["", self.script])])
        record = self.record
        return f"{record.title}: {record.num_done} of {counted(record.num_jobs, 'job')} done, {record.num_failed} failed."

    def to_frame(self) -> pd.DataFrame:
        """Every number of every job: job, levels, metric, value, interval.

        Raises:
            UsageError: Only the state was asked for.
        """
        if self.numbers is None:
            raise UsageError("Only plan or status was asked for, so there are no numbers.")
        return self.numbers

    @property
    def exit_code(self) -> int:
        """6 where a job failed or is not done."""
        return EXIT_PARTIAL if self.found is not None and self.found.num_done < self.found.num_jobs else 0

    def places(self) -> Mapping[str, object]:
        """Page and table."""
        return super().places() if self.out is None else {**super().places(), "Table": self.out / "results.csv"}


def state_in_words(state: StudyStateRecord) -> list[str]:
    """One fact a line."""
    counts = {
        "done": state.num_done,
        "failed": state.num_failed,
        "running": state.num_running,
        "stopped": state.num_stopped,
        "missing": state.num_missing,
    }
    said = ", ".join(f"{number} {name}" for name, number in counts.items() if number) or "none"
    lines = [f"{state.title}: {counted(state.num_jobs, 'job')} ({said})."]
    num_left = state.num_jobs - state.num_done - state.num_failed
    if num_left and state.seconds_per_job is not None and state.seconds_left is not None:
        lines.append(
            f"About {rounded_time(state.seconds_per_job)} a job: {rounded_time(num_left * state.seconds_per_job)} of computing "
            f"are left, {rounded_time(state.seconds_left)} with {counted(state.workers, 'job')} at a time."
        )
    elif num_left:
        lines.append("How long a job takes is known when the first one is done.")
    if state.num_bytes_per_job is not None:
        lines.append(f"About {rounded_size(state.num_bytes_per_job * state.num_jobs)} on the disk in the end.")
    for failure in state.failures:
        levels = ", ".join(f"{name} {level}" for name, level in failure.levels.items())
        lines.append(f"Failed: {levels}: {failure.reason}")
    return lines
