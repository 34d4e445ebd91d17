"""Ten thousand jobs on Ray whose workers are killed at random: is the table that of a study which nobody disturbed?

    OMP_NUM_THREADS=1 python benchmarks/study_scale.py --out runs/scale    # 10 000 jobs, twice; minutes
    OMP_NUM_THREADS=1 python benchmarks/study_scale.py --smoke             # 50 jobs; seconds

Jobs do nothing, for as long as checkpoints of timm look at an image on the processor where timm measured them, scaled to
``--seconds`` on average. The same study is done twice: by processes of its own, undisturbed, and on a Ray that it starts, where
one of the workers is killed every ``--kill-every`` seconds on average. Started again with the same ``--out``, it goes on; rates
are then those of the jobs that were left.

Prints jobs a second, CPU milliseconds a job (of the process that submits, of the workers, and of Ray beside them), what a worker
spends beside a job on the clock, how many jobs were begun again, and whether both tables are equal.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import psutil

from crossgraft.rank.published.tables import imagenet_results

TESTS = Path(__file__).parents[1] / "tests"
LEVELS = {"data": 100, "settings": 10, "seeds": 10}
FEW = {"data": 5, "settings": 5, "seeds": 2}
LOOK_SECONDS = 0.2


@dataclass
class Done:
    """What one attempt at the study took.

    Attributes:
        num_jobs: Jobs that it did.
        seconds: From start to end of the command.
        kills: Workers that were killed.
        cpu: Process → whose it is, CPU seconds.
    """

    num_jobs: int
    seconds: float = 0.0
    kills: int = 0
    cpu: dict[psutil.Process, tuple[str, float]] = field(default_factory=dict)

    def per_job(self, whose: str) -> float:
        """CPU milliseconds."""
        return 1000 * sum(seconds for of, seconds in self.cpu.values() if of == whose) / max(1, self.num_jobs)


def main() -> None:
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as nowhere:
        folder = (arguments.out or Path(nowhere)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        lengths = write_study(folder / "study.yaml", FEW if arguments.smoke else LEVELS, arguments.seconds)
        for name, engine in (("undisturbed", "local"), ("killed", "ray")):
            done = do(folder, name, engine, arguments)
            tell(name, engine, done, lengths, arguments.workers)
        begun = attempts(folder / "killed")
        again = [number for number in begun if number > 1]
        print(f"begun more than once      {len(again)} of {len(begun)} jobs, at most {max(begun)} times; {sum(begun)} attempts")
        is_same = table(folder / "undisturbed").equals(table(folder / "killed"))
        print(f"tables                    {'equal' if is_same else 'DIFFERENT'}: {len(table(folder / 'killed'))} rows")
    if not is_same:
        sys.exit(1)


def write_study(path: Path, levels: dict[str, int], seconds: float) -> list[float]:
    """Write the study; seconds of each of its jobs."""
    of_image = [1 / rate for row in imagenet_results().values() if (rate := row.cpu_images_per_second) is not None]
    lengths = np.quantile(of_image, (np.arange(levels["data"]) + 0.5) / levels["data"])
    lengths *= seconds / lengths.mean()
    study = {
        "command": "toil",
        "grid": {
            "data": {
                f"checkpoint {number}": {"data": "x" * (number + 1), "step_seconds": length / 2}
                for number, length in enumerate(lengths.tolist())
            }
        },
        "settings": {f"setting {number}": {"bonus": number / 1000} for number in range(levels["settings"])},
        "seeds": levels["seeds"],
    }
    path.write_text(json.dumps(study, indent=1), encoding="utf-8")
    return lengths.tolist() * levels["settings"] * levels["seeds"]


def do(folder: Path, name: str, engine: str, arguments: argparse.Namespace) -> Done:
    """Do what is left of the study, and kill workers of Ray meanwhile."""
    sys.path.insert(0, str(TESTS))
    from support.toy_jobs import install

    before, rng = num_done(folder / name), random.Random(before_kills(folder / name))
    with tempfile.TemporaryDirectory() as site:
        command = [sys.executable, "-m", "crossgraft", "bench", "study.yaml", "--out", name, "--engine", engine, "--quiet"]
        # Ray gives its workers what others leave, which on a machine with other work is nothing.
        environment = {**os.environ, "PYTHONPATH": install(Path(site)), "OMP_NUM_THREADS": "1", "RAY_worker_niceness": "0"}
        start, done = time.monotonic(), Done(0)
        with (folder / f"{name}.log").open("a") as log:
            command += ["--workers", str(arguments.workers)]
            process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        next_kill, most = None, 2 if arguments.smoke else None
        while process.poll() is None:
            time.sleep(LOOK_SECONDS)
            workers = look(process.pid, done)
            if engine == "ray" and workers and done.kills != most:
                next_kill = next_kill or time.monotonic() + rng.expovariate(1 / arguments.kill_every)
                if time.monotonic() >= next_kill:
                    next_kill = None
                    done.kills += kill(rng.choice(workers))
    if process.returncode != 0:
        text = (folder / f"{name}.log").read_text(encoding="utf-8")
        sys.exit(f"{text}\nThe study ended with exit code {process.returncode}; the same command goes on.")
    done.seconds, done.num_jobs = time.monotonic() - start, num_done(folder / name) - before
    return done


def look(driver: int, done: Done) -> list[psutil.Process]:
    """Note what all processes took so far; those that are at work on a job of Ray."""
    workers = []
    try:
        of_driver = psutil.Process(driver)
        family = [of_driver, *of_driver.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
    for process in family:
        try:
            line, times = " ".join(process.cmdline()), process.cpu_times()
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        whose = "worker" if line.startswith("ray::") or "spawn_main" in line else "Ray"
        done.cpu[process] = ("driver" if process.pid == driver else whose, times.user + times.system)
        if line.startswith("ray::do_jobs"):
            workers.append(process)
    return workers


def kill(process: psutil.Process) -> bool:
    """Whether it was there."""
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return False
    return True


def tell(name: str, engine: str, done: Done, lengths: list[float], workers: int) -> None:
    """Two lines."""
    if not done.num_jobs:
        print(f"{name:12} ({engine:5})      was done before")
        return
    beside = 1000 * (workers * done.seconds / done.num_jobs - float(np.mean(lengths)))
    print(
        f"{name:12} ({engine:5})      {done.num_jobs} jobs in {done.seconds:.0f} s: {done.num_jobs / done.seconds:.1f} a second; "
        f"{done.kills} workers killed"
    )
    print(
        f"  CPU ms a job            {done.per_job('driver'):.2f} to submit and look, {done.per_job('worker'):.1f} in workers, "
        f"{done.per_job('Ray'):.2f} in Ray; of the clock {beside:.0f} ms a job in each of {workers} workers"
    )


def num_done(out: Path) -> int:
    return sum(1 for _ in out.glob("jobs/*/done.json"))


def before_kills(out: Path) -> int:
    """A seed that differs when the study goes on."""
    return num_done(out)


def attempts(out: Path) -> list[int]:
    """How often each job was begun."""
    return [sum(entry.name.startswith("lease-") for entry in os.scandir(job)) for job in (out / "jobs").iterdir()]


def table(out: Path) -> pd.DataFrame:
    """All numbers but how long jobs took, in which attempt they ended, and where that was begun."""
    frame = pd.read_csv(out / "results.csv")
    return frame[frame["metric"] != "begun_at"].drop(columns=["seconds", "peak_mb", "run"]).reset_index(drop=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder of both studies; by default they are removed at the end")
    parser.add_argument("--workers", type=int, default=4, help="processes that do jobs; 4 by default")
    parser.add_argument("--seconds", type=float, default=0.01, help="mean length of a job; 0.01 by default")
    parser.add_argument("--kill-every", type=float, default=2.0, help="seconds between two kills, on average; 2 by default")
    parser.add_argument("--smoke", action="store_true", help="50 jobs")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.workers, arguments.kill_every = 2, 1.0
    return arguments


if __name__ == "__main__":
    main()
