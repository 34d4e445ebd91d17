"""How long commands say they will take, beside what they took, wall and CPU seconds. Command: python benchmarks/estimates.py.

Each command says once how long all of it will take, after it has measured that on this machine. The ratio is that time over what
went by from then to the end of the same process, so that it does not matter what else the machine had to do on average; CPU
seconds are those of the whole process. Target: between 1/1.5 and 1.5.

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
from pathlib import Path
from typing import NamedTuple

NETWORKS = """
import timm


def small():
    return timm.create_model("mobilenetv3_small_050", pretrained=False)


def large():
    return timm.create_model("mobilenetv2_100", pretrained=False)
"""
ZOO = """
- {name: small, source: "networks:small"}
- {name: large, source: "networks:large"}
"""
INTERPOLATE = """
from crossgraft.progress import Reporter
from crossgraft.verbs.interpolate_runs import interpolate_runs
interpolate_runs("full", "linear", data="digits", allow_code="networks.py", reporter=Reporter())
"""
UNITS = {"s": 1, "min": 60, "h": 3600}


class Measured(NamedTuple):
    """One command: seconds that it said, that went by since then, and of the processor."""

    said: float
    wall: float
    cpu: float


def commands(limit: int, epochs: int) -> dict[str, list[str]]:
    """By name, in an order in which later ones find what they need."""
    crossgraft = [sys.executable, "-m", "crossgraft"]
    code = ["--code", "networks.py"]
    images = ["digits", "--limit", str(limit), "--image-size", "64", *code]
    tune = [*crossgraft, "tune", *images, "--model", "networks:large", "--no-store", "--epochs", str(epochs)]
    return {
        "check": [*crossgraft, "check", "digits", "--out", "check"],
        "rank": [*crossgraft, "rank", *images, "--models", "zoo.yaml", "--out", "rank"],
        "tune, full": [*tune, "--method", "full", "--out", "full"],
        "tune, linear": [*tune, "--method", "linear", "--out", "linear"],
        "tune --compare full,linear,l2_sp": [*tune, "--compare", "full,linear,l2_sp", "--out", "compare"],
        "tune --folds 3": [*tune, "--folds", "3", "--out", "folds"],
        "interpolate": [sys.executable, "-c", INTERPOLATE],
        "predict": [*crossgraft, "predict", "full", "digits", *code, "--out", "predict"],
    }


def measure(command: list[str], folder: Path) -> Measured:
    """Run one command, and read what it says as it says it."""
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert process.stderr is not None
    said, since, lines = 0.0, 0.0, []
    for line in process.stderr:
        lines.append(line)
        found = re.match(r"About ([^:]*?)(?: at most)?: ", line)
        if found and not since:
            said, since = seconds_of(found[1]), time.monotonic()
    _, status, usage = os.wait4(process.pid, 0)
    end = time.monotonic()
    if status != 0 or not since:
        sys.exit(f"{' '.join(command)} failed:\n{''.join(lines)}")
    return Measured(said, end - since, usage.ru_utime + usage.ru_stime)


def seconds_of(words: str) -> float:
    """Of a time in words.

    >>> seconds_of("2 min 10 s")
    130.0
    """
    return sum(float(number) * UNITS[unit] for number, unit in re.findall(r"([\d.]+) (s|min|h)", words))


def main() -> None:
    """Print one row of a table a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="few images, one epoch")
    smoke = parser.parse_args().smoke
    print("| command | said | went by | said / went by | CPU seconds of all |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "networks.py").write_text(NETWORKS)
        (folder / "zoo.yaml").write_text(ZOO)
        os.environ["CROSSGRAFT_CACHE"] = str(folder / "cache")
        for command, words in commands(100 if smoke else 600, 1 if smoke else 4).items():
            found = measure(words, folder)
            ratio = found.said / found.wall
            print(
                f"| {command} | {found.said:.0f} s | {found.wall:.1f} s | {ratio:.2f} | {found.cpu:.0f} |", flush=True
            )


if __name__ == "__main__":
    main()
