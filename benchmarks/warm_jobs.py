"""What a job of a study costs in a process that has done others, beside its training.

    OMP_NUM_THREADS=1 python benchmarks/warm_jobs.py                              # 60 images of 64 pixels; half a minute
    OMP_NUM_THREADS=1 python benchmarks/warm_jobs.py --images 1000 --side 500     # images of the size of real ones
    OMP_NUM_THREADS=1 python benchmarks/warm_jobs.py --smoke

Jobs are ``tune --method linear`` of a small network, which differ in their weight decay, one after the other in one process: the
first one, some for which the process has kept nothing, some for which it has networks, and some for which it has images, too.
CPU seconds, medians; the training is what the engine does.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from PIL import Image

from crossgraft.bench.job import StudyJob, do_jobs
from crossgraft.bench.lease import Limits
from crossgraft.bench.study import read_study
from crossgraft.data import listing
from crossgraft.models import load
from crossgraft.tune import jobs as trainings
from crossgraft.tune.feed import images

TARGET_SECONDS = 0.2
IMAGES = (listing.KEPT, images.KEPT)
ZOO = "- {name: net, source: test_vit, weights: random}\n"


def main() -> None:
    arguments = parse_arguments()
    training: list[float] = []
    trainings.train = timed(trainings.train, training)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_images(arguments.images, arguments.side)
        fixed = {"data": "scans", "model": "zoo.yaml", "method": "linear", "image_size": 32, "epochs": 2, "ledger": False}
        number = 3 * arguments.jobs + 1
        jobs = read_study({"command": "tune", "fixed": fixed, "grid": {"weight_decay": [0.01 * k for k in range(number)]}}).jobs
        first = seconds_of(jobs[0])
        ways: dict[str, list[float]] = {"nothing kept": [], "networks kept": [], "networks and images": []}
        for place, job in enumerate(jobs[1:]):  # in turn, as the machine has other work, too
            way = list(ways)[place % 3]
            for kept in {"nothing kept": (load.KEPT, *IMAGES), "networks kept": IMAGES}.get(way, ()):
                kept.clear()
            ways[way].append(seconds_of(job))
        os.chdir("/")
    warm = ways["networks and images"]
    beside = median(seconds - own for seconds, own in zip(warm, training[3::3], strict=True))
    print(f"{arguments.images} images of {arguments.side} pixels, {arguments.jobs} jobs each; CPU seconds a job")
    print(f"the first of a process    {first:6.3f}, imports included")
    for way, seconds in ways.items():
        print(f"{way:25} {median(seconds):6.3f}")
    print(
        f"… beside its training     {beside:6.3f}; target {TARGET_SECONDS:g}: {'met' if beside <= TARGET_SECONDS else 'missed'}"
    )


def write_images(number: int, side: int) -> None:
    rng = np.random.default_rng(0)
    Path("zoo.yaml").write_text(ZOO, encoding="utf-8")
    for index in range(number):
        place = Path("scans", "ab"[index % 2], f"{index}.jpg")
        place.parent.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8))
        coarse.resize((side, side), Image.Resampling.BICUBIC).save(place, quality=90)


def seconds_of(job: StudyJob) -> float:
    start = time.process_time()
    ended = do_jobs(Path("out"), [job], place=str(Path.cwd()), driver=None, seconds=60, limits=Limits())
    if ended != ["done"]:
        raise SystemExit(f"{ended}: {[file.read_text() for file in Path('out').glob('jobs/*/failed.json')]}")
    return time.process_time() - start


def timed(function: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
    """The same, which notes the CPU seconds of each call."""

    def call(*values: Any, **keywords: Any) -> Any:
        start = time.process_time()
        try:
            return function(*values, **keywords)
        finally:
            seconds.append(time.process_time() - start)

    return call


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=60)
    parser.add_argument("--side", type=int, default=64, help="pixels")
    parser.add_argument("--jobs", type=int, default=10, help="of each kind")
    parser.add_argument("--smoke", action="store_true", help="two jobs of each kind")
    arguments = parser.parse_args()
    arguments.jobs = 2 if arguments.smoke else arguments.jobs
    return arguments


if __name__ == "__main__":
    main()
