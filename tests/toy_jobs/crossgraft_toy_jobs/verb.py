"""The verb."""

import os
import signal
import time
from dataclasses import dataclass, replace

import pandas as pd

from crossgraft.errors import DataError
from crossgraft.options._option import configuration
from crossgraft.records.base import SCHEMA_VERSION, Record
from crossgraft.result import Result
from crossgraft.running import verb
from crossgraft_toy_jobs import ToilOptions


class ToilRecord(Record):
    schema_version: int = SCHEMA_VERSION
    kind: str = "toil"
    value: float
    begun_at: int


@dataclass(frozen=True, eq=False, repr=False)
class Toil(Result[ToilRecord]):
    def summary(self):
        return f"{self.record.value}"

    def to_frame(self):
        rows = [("accuracy", self.record.value), ("begun_at", self.record.begun_at)]
        return pd.DataFrame(rows, columns=["metric", "value"])


@verb("toil", ToilOptions)
def toil(data, options, run):
    """Do nothing.

    Args:
        data: A word.
        {options}
    """
    with run.directory(data, typed=configuration(options), resolved={}, out=options.out) as folder:
        step = folder.path / "step"
        first = int(step.read_text()) if step.exists() else 0
        memory = b"x" * (options.megabytes * 2**20)
        for number in range(first, options.steps):
            time.sleep(options.step_seconds)
            folder.write("step", str(number + 1))
        if options.error == "full":
            raise OSError(28, "No space left on device")
        if options.error is not None:
            raise DataError(options.error)
        if options.die:
            os.kill(os.getpid(), signal.SIGKILL)
        value = (len(data) + options.steps + 7 * options.seed % 5) / 100 + options.bonus
        record = ToilRecord(value=value, begun_at=first + 0 * len(memory))
        folder.write_record("report.json", record)
        folder.finish()
        return replace(Toil(record), out=folder.path)
