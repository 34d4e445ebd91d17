"""CPU-seconds of commands that train nothing, beside a bare Python. Command: python benchmarks/start_up.py.

Targets: import ≤ 0.1, help ≤ 0.3, `check` ≤ 1.5, results of one model among 100 000 ≤ 0.5 CPU-seconds; none imports torch, timm
or scikit-learn. *First line* is how many wall seconds go by until it comes. Packages are compiled before, as after an
installation; where ``PYTHONDONTWRITEBYTECODE`` is set and they are not, everything takes twice as long.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

NUM_RESULTS = 100_000
NUM_IMAGES = 30  # of each class
READ_ALONE = """
import json, os
with open(os.environ["CROSSGRAFT_CACHE"] + "/known_results.jsonl", encoding="utf-8") as lines:
    rows = [json.loads(line) for line in lines]
"""


def write_results(folder: Path, number_of_them: int) -> None:
    from crossgraft.rank.record import KnownResult

    rows = (
        KnownResult(
            model=f"resnet{number % 97}",
            weights=f"{number % 97:064x}",
            source="imagenet",
            target=f"target {number}",
            target_fingerprint=f"{number:064x}",
            protocol="full, 100 epochs",
            metric="accuracy",
            value=number / NUM_RESULTS,
            origin="crossgraft tune",
        )
        for number in range(number_of_them)
    )
    lines = "".join(f"{row.model_dump_json()}\n" for row in rows)
    (folder / "known_results.jsonl").write_text(lines, encoding="utf-8")


def write_images(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("benign", "malignant"):
        (folder / "images" / name).mkdir(parents=True)
        for number in range(NUM_IMAGES):
            pixels = rng.integers(256, size=(64, 64, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / "images" / name / f"{number}.png")


def cpu_seconds(command: list[str], folder: Path) -> tuple[float, float]:
    """Of the whole process, and wall seconds until it wrote something, or until its end."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        first = time.monotonic() - start
        process.stdout.read()
    if process.returncode not in (0, 2, 3, 4):
        sys.exit(f"{' '.join(command)} failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="one run each, of few results")
    is_smoke = parser.parse_args().smoke
    runs = 1 if is_smoke else 7
    crossgraft = [sys.executable, "-m", "crossgraft"]
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import crossgraft": [sys.executable, "-c", "import crossgraft"],
        "crossgraft --help": [*crossgraft, "--help"],
        "crossgraft rank --help": [*crossgraft, "rank", "--help"],
        "json.loads of 100 000 results": [sys.executable, "-c", READ_ALONE],
        "crossgraft list results": [*crossgraft, "list", "results"],
        "the same of one model": [*crossgraft, "list", "results", "--only-model", "resnet34"],
        "crossgraft check, 60 images": [*crossgraft, "check", "images", "--out", "checked", "--overwrite"],
        "crossgraft split": [*crossgraft, "split", "images", "--out", "split.json", "--overwrite"],
        "crossgraft edit, 60 images": [*crossgraft, "edit", "images", "--with", "tag:0.5", "--out", "edited", "--overwrite"],
        "crossgraft report": [*crossgraft, "report", "checked"],
        "crossgraft tune, refused": [*crossgraft, "tune", "images", "--model", "nowhere:net"],
    }
    floor = 0.0
    with tempfile.TemporaryDirectory() as folder:
        write_results(Path(folder), 1_000 if is_smoke else NUM_RESULTS)
        write_images(Path(folder))
        os.environ["CROSSGRAFT_CACHE"] = folder
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        for name, command in commands.items():
            if not is_smoke:  # once before: files are in memory then, and modules compiled
                cpu_seconds(command, Path(folder))
            found = [cpu_seconds(command, Path(folder)) for _ in range(runs)]
            seconds, first = (statistics.median(values) for values in zip(*found, strict=True))
            floor = floor or seconds
            print(f"{name:30s} {seconds:6.3f} CPU-s   {seconds / floor:5.1f} × bare Python   first line after {first:.2f} s")


if __name__ == "__main__":
    main()
