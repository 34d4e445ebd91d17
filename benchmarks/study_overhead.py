"""What a study costs beside its jobs: empty ones, done and looked up.

    OMP_NUM_THREADS=1 python benchmarks/study_overhead.py           # 10 000 jobs; two minutes
    OMP_NUM_THREADS=1 python benchmarks/study_overhead.py --smoke   # seconds

CPU milliseconds per job of claiming, calling, writing its result and looking at its folder, in one process; then those of a
process that sends its jobs to two others; seconds of a look at the folders of all, done and not begun; and those of
``crossgraft bench --status`` as a command, beside those of its ``--help``. The floor is what cannot be left out on any file
system: to make a folder, and to write, sync and rename two small files in it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pandas as pd

from crossgraft.bench.job import StudyJob
from crossgraft.bench.rounds import Rules, states_of, work_off
from crossgraft.progress import Reporter
from crossgraft.running.processes import Processes

TARGET_MS = 5.0
TARGET_LOOK_SECONDS = 0.1
TARGET_STATUS_SECONDS = 1.0
"""More than the help."""
STUDY = """\
command: tune
fixed: {{data: digits, epochs: 3, image_size: 16}}
grid: {{model: [resnet18, resnet50, vit_tiny_patch16_224, mobilenetv3_small_050, convnext_tiny]}}
settings: {{plain: {{}}, strong: {{weight_decay: 0.3}}, mixed: {{batch_transform: "mixup:0.2"}}, late: {{epochs: 4}}}}
seeds: {seeds}
"""


class Nothing:
    """A result with one number."""

    primary: Mapping[str, object] = {}

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
        looks = [per_job(1000, lambda at=at: states_of(Path(folder, at), [job.key for job in jobs])) for at in ("own", "none")]
        Path(folder, "study.yaml").write_text(STUDY.format(seeds=max(1, number // 20)))
        status, bare = (seconds_of_command(folder, "bench", *words) for words in (("study.yaml", "--status"), ("--help",)))
    print(f"floor: two files           {floor:8.2f} ms per job")
    print(f"an empty job               {own:8.2f} ms per job, {own / floor:.1f} x the floor; {verdict(own, TARGET_MS, 'ms')}")
    for what, look in zip(("done", "not begun"), looks, strict=True):
        print(f"a look at {number:6d} {what:9s} {look:7.2f} s; {verdict(look, TARGET_LOOK_SECONDS, 's')}")
    more = status - bare
    said = verdict(more, TARGET_STATUS_SECONDS, "s")
    print(f"--status of {number:6d} jobs   {status:8.2f} s, {more:.2f} s more than --help; {said}")


def seconds_of_command(folder: str, *words: str) -> float:
    """CPU seconds of a whole process."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "crossgraft", *words], cwd=folder, check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


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
