"""What a study costs beside its jobs: empty ones, done and looked up.

    OMP_NUM_THREADS=1 python benchmarks/study_overhead.py           # 10 000 jobs; two minutes
    OMP_NUM_THREADS=1 python benchmarks/study_overhead.py --smoke   # seconds

CPU milliseconds per job of claiming, calling, writing its result and looking at its folder, in one process; then those of a
process that sends its jobs to two others; and seconds of a status of all. The floor is what cannot be left out on any file
system: to make a folder, and to write, sync and rename two small files in it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pandas as pd

from crossgraft.bench.job import StudyJob
from crossgraft.bench.rounds import Rules, states_of, work_off
from crossgraft.progress import Reporter
from crossgraft.running.processes import Processes

TARGET_MS = 5.0
TARGET_STATUS_SECONDS = 1.0


class Nothing:
    """A result with one number."""

    def to_frame(self) -> pd.DataFrame:
        """One row."""
        return pd.DataFrame({"metric": ["accuracy"], "value": [0.5]})


def nothing(out: Path, reporter: Reporter) -> Nothing:
    """The job."""
    return Nothing()


class Here(Executor):
    """Does each call at once."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future that has its result."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def main() -> None:
    arguments = parse_arguments()
    number = arguments.jobs
    sys.modules["study_overhead"] = sys.modules["__main__"]
    jobs = [StudyJob(f"{index:016x}", "study_overhead:nothing", (), {}) for index in range(number)]
    with tempfile.TemporaryDirectory() as folder:
        floor = per_job(number, lambda: [write_two_files(Path(folder, "floor", job.key)) for job in jobs])
        own = per_job(number, lambda: work_off(Path(folder, "own"), jobs, Here(), Rules(), Reporter(quiet=True)))
        if not arguments.smoke:
            with Processes(2) as pool:
                sent = per_job(number, lambda: work_off(Path(folder, "sent"), jobs, pool, Rules(), Reporter(quiet=True)))
            print(f"sending to two processes   {sent:8.2f} ms per job of the one that sends")
        start = time.process_time()
        states_of(Path(folder, "own"), [job.key for job in jobs])
        status = time.process_time() - start
    print(f"floor: two files           {floor:8.2f} ms per job")
    print(f"an empty job               {own:8.2f} ms per job, {own / floor:.1f} x the floor; {verdict(own, TARGET_MS, 'ms')}")
    print(f"status of {number:6d} jobs     {status:8.2f} s; {verdict(status, TARGET_STATUS_SECONDS, 's')}")


def verdict(value: float, target: float, unit: str) -> str:
    return f"target {target:g} {unit}: {'met' if value <= target else 'missed'}"


def write_two_files(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in ("lease", "done"):
        with Path(folder, f"{name}.tmp").open("w") as file:
            json.dump({"metric": "accuracy", "value": 0.5}, file)
            file.flush()
            os.fsync(file.fileno())
        Path(folder, f"{name}.tmp").rename(folder / name)


def per_job(number: int, work: Any) -> float:
    """CPU milliseconds."""
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start) / number


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--smoke", action="store_true", help="few jobs")
    arguments = parser.parse_args()
    arguments.jobs = 50 if arguments.smoke else arguments.jobs
    return arguments


if __name__ == "__main__":
    main()
