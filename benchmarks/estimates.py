"""How long commands say they will take, beside what they took, wall and CPU seconds. Command: python benchmarks/estimates.py.

Each command says once how long all of it will take, after it has measured that on this machine. The ratio is that time over what
went by from then to the end of the same process; CPU seconds are those of the whole process, what comes before included. The load
is the average of the last minute, when the command began and when it ended. *Of CPU* is the same ratio without what a load adds:
what was said, as it would be on an idle machine (without the waiting that the first thread had seen until then), over the CPU
seconds that the process took from then on; it is empty where the system does not tell. *Half-way* is what the command said at
about half of that time (between 30 and 70 %) to be left in all, over what was left; commands that are done within seconds say it
no more. Target: a ratio between 1/1.5 and 1.5, or, because seconds are all that matters in short commands, a difference of at
most 3 s. A plan says it of another command, all of whose seconds count. With ``--load 2``, two other programs that never wait
keep the machine busy all the time, so that what a load costs can be measured again.

Images are the digits of scikit-learn, networks two of timm with weights drawn by chance: speed does not depend on weights.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

NETWORKS = """
import timm


def small():
    return timm.create_model("{small}", pretrained=False)


def large():
    return timm.create_model("{large}", pretrained=False)
"""
ZOO = """
- {name: small, source: "networks:small"}
- {name: large, source: "networks:large"}
"""
FACTOR, SECONDS = 1.5, 3.0
"""What is near enough: one of the two."""
QUICK = "tune, full"
"""Of the commands, that of a smoke test."""
UNITS = {"s": 1, "min": 60, "h": 3600}


class Measured(NamedTuple):
    """One command: seconds that it said, that went by since then, and of the processor; load before and after.

    Attributes:
        of_cpu: Ratio without what a load adds.
        half_way: Ratio of what was said to be left to what was, where something was said about half-way.
    """

    said: float
    wall: float
    cpu: float
    load: tuple[float, float]
    half_way: float | None
    of_cpu: float | None

    @property
    def is_near(self) -> bool:
        """Whether it said about what went by."""
        within = 1 / FACTOR <= self.said / self.wall <= FACTOR
        return within or abs(self.said - self.wall) <= SECONDS


def commands(limit: int, epochs: int, workers: int | None) -> dict[str, list[str]]:
    """By name, in an order in which later ones find what they need."""
    crossgraft = [sys.executable, "-m", "crossgraft"]
    threads = [] if workers is None else ["--workers", str(workers)]
    code = ["--code", "networks.py", *threads]
    images = ["digits", "--limit", str(limit), "--image-size", "64", *code]
    tune = [*crossgraft, "tune", *images, "--model", "networks:large", "--no-store", "--epochs", str(epochs)]
    return {
        "check": [*crossgraft, "check", "digits", *threads, "--out", "check"],
        "rank": [*crossgraft, "rank", *images, "--models", "zoo.yaml", "--out", "rank"],
        "tune, full": [*tune, "--method", "full", "--out", "full"],
        "tune, linear": [*tune, "--method", "linear", "--out", "linear"],
        "tune --compare full,linear,l2_sp": [*tune, "--compare", "full,linear,l2_sp", "--out", "compare"],
        "tune --folds 3": [*tune, "--folds", "3", "--out", "folds"],
        "interpolate": [*crossgraft, "interpolate", "full", "digits", "--linear", "linear", *code, "--out", "curve"],
        "predict": [*crossgraft, "predict", "full", "digits", *code, "--out", "predict"],
    }


def plans(epochs: int, own: dict[str, list[str]]) -> dict[str, tuple[list[str], list[str]]]:
    """By name: a command that says how long the one after it will take."""
    tune, rank = own["tune, full"], own["rank"]
    tune = [*tune[: tune.index("--out")], "--out", "planned"]
    select = [*rank[:3], "select", *rank[4 : rank.index("--out")], "--no-store", "--epochs", str(epochs), "--budget", "1h"]
    select += ["--out", "selected"]
    bench = [*rank[:3], "bench", "study.yaml", "--code", "networks.py", "--workers", "1", "--out", "study"]
    return {f"{line[3]} --plan": ([*line, "--plan"], line) for line in (tune, select, bench)}


STUDY = """
command: tune
fixed: {{data: digits, limit: {limit}, image_size: 64, model: "networks:large", epochs: {epochs}, method: full, store: false}}
seeds: 2
"""
PLANNED = re.compile(r"(?:Time|whole command): about (.*?)(?: at most|\.)|a job: (.*?) of\s+computing")
"""Where a plan says how long it takes."""


def measure_plan(plan: list[str], command: list[str], folder: Path) -> Measured:
    """Run a command that says how long another one takes, then that."""
    process = subprocess.Popen(plan, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8")
    assert process.stdout is not None
    with process.stdout as told:
        text, spent = "", None
        for line in told:  # until it ends, what it spent can be read
            text, spent = text + line, spent_by(process.pid) or spent
    process.wait()
    found = PLANNED.search(text)
    if found is None:
        sys.exit(f"{' '.join(plan)} says no time:\n{text}")
    start = time.monotonic()
    done = measure(command, folder, must_say=False)
    said = seconds_of(found[1] or found[2])
    of_cpu = None if spent is None else said / spent.slowdown / done.cpu
    return done._replace(said=said, wall=time.monotonic() - start, half_way=None, of_cpu=of_cpu)


def measure(command: list[str], folder: Path, *, must_say: bool = True) -> Measured:
    """Run one command, and read what it says as it says it; where it may say nothing, ``said`` is 0 then."""
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert process.stderr is not None
    said, since, lines, before, spent = 0.0, 0.0, [], os.getloadavg()[0], None
    later: list[tuple[float, float]] = []
    with process.stderr as told:
        for line in told:
            lines.append(line)
            found = re.match(r"About ([^:]*?)(?: at most)?: ", line)
            if found and not since:
                said, since, spent = seconds_of(found[1]), time.monotonic(), spent_by(process.pid)
            left = re.search(r"\(([^()]*) left in all\)", line)
            if left and since:
                later.append((time.monotonic(), seconds_of(left[1])))
    _, status, usage = os.wait4(process.pid, 0)
    end = time.monotonic()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3, 5) or (must_say and not since):  # 3 and 5: something was found
        sys.exit(f"{' '.join(command)} failed:\n{''.join(lines)}")
    load = before, os.getloadavg()[0]
    cpu = usage.ru_utime + usage.ru_stime
    of_cpu = said / spent.slowdown / (cpu - spent.cpu) if spent is not None else None
    return Measured(said, end - (since or end), cpu, load, half_way(later, since, end), of_cpu)


class Spent(NamedTuple):
    """CPU seconds of a process so far, and usual time of its first thread over that of one which never waits."""

    cpu: float
    slowdown: float


def spent_by(pid: int) -> Spent | None:
    """None where the system does not tell, or where the process is gone."""
    try:
        computing, waiting, _ = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()
        times = psutil.Process(pid).cpu_times()
    except (OSError, psutil.Error):
        return None
    return Spent(times.user + times.system, 1 + int(waiting) / int(computing))


def half_way(later: list[tuple[float, float]], since: float, end: float) -> float | None:
    """What was said nearest to the middle to be left, over what was left.

    >>> half_way([(11.0, 8.0), (14.0, 9.0), (19.0, 1.0)], 10.0, 20.0)
    1.5
    """
    near = [(at, left) for at, left in later if 0.3 <= (at - since) / (end - since) <= 0.7]
    if not near:
        return None
    at, left = min(near, key=lambda told: abs(told[0] - (since + end) / 2))
    return left / (end - at)


def seconds_of(words: str) -> float:
    """Of a time in words.

    >>> seconds_of("2 min 10 s")
    130.0
    """
    return sum(float(number) * UNITS[unit] for number, unit in re.findall(r"([\d.]+) (s|min|h)", words))


@contextmanager
def busy(programs: int) -> Iterator[None]:
    """Other programs on the machine, each of which wants a core."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(programs)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def main() -> None:
    """Print one row of a table a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="few images, one epoch, a tiny network, one command")
    parser.add_argument("--workers", type=int, help="threads of each command; by default all cores")
    parser.add_argument("--images", type=int, default=600, help="number of them, where there is a choice; 600 by default")
    parser.add_argument("--epochs", type=int, default=4, help="epochs of each training; 4 by default")
    parser.add_argument("--load", type=int, default=0, help="other programs that each want a core; 0 by default")
    parser.add_argument("--only", nargs="+", help="these rows; interpolate and predict need those of tune")
    given = parser.parse_args()
    limit, epochs = (100, 1) if given.smoke else (given.images, given.epochs)
    small, large = ("test_resnet", "test_resnet") if given.smoke else ("mobilenetv3_small_050", "mobilenetv2_100")
    titles = ("command", "said", "went by", "said / went by", "near", "of CPU", "half-way", "CPU seconds of all", "load")
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    with tempfile.TemporaryDirectory() as name, busy(given.load):
        folder = Path(name)
        (folder / "networks.py").write_text(NETWORKS.format(small=small, large=large))
        (folder / "zoo.yaml").write_text(ZOO)
        os.environ["CROSSGRAFT_CACHE"] = str(folder / "cache")
        (folder / "study.yaml").write_text(STUDY.format(limit=limit, epochs=epochs))
        own = commands(limit, epochs, given.workers)
        for command, words in {**own, **plans(epochs, own)}.items():
            if command not in (given.only or [*own, *plans(epochs, own)]) or (given.smoke and command != QUICK):
                continue
            found = measure_plan(*words, folder) if isinstance(words, tuple) else measure(words, folder)
            ratio, near = found.said / found.wall, "yes" if found.is_near else "no"
            load = f"{found.load[0]:.1f} to {found.load[1]:.1f}"
            of_cpu, later = ("" if ratio is None else f"{ratio:.2f}" for ratio in (found.of_cpu, found.half_way))
            times = f"{found.said:.0f} s | {found.wall:.1f} s | {ratio:.2f}"
            print(f"| {command} | {times} | {near} | {of_cpu} | {later} | {found.cpu:.0f} | {load} |", flush=True)


if __name__ == "__main__":
    main()
