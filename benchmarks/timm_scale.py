"""What it takes to rank all checkpoints that timm publishes results of, on a user's own images.

    OMP_NUM_THREADS=1 python benchmarks/timm_scale.py             # tables of docs/explanation/scale.md, from what was measured
    OMP_NUM_THREADS=1 python benchmarks/timm_scale.py --measure   # measure five models anew; a minute or two
    OMP_NUM_THREADS=1 python benchmarks/timm_scale.py --smoke     # one tiny network; seconds, and nothing is written

timm publishes how many images a second each network looks at on one CPU (the table ships with crossgraft). Five networks are
timed here in CPU seconds of one thread, and their geometric mean ratio to timm's seconds is that of this machine to timm's. Of
checkpoints without a rate, seconds follow from multiplications by the line that fits all others. What was measured is kept in
``docs/explanation/scale/measured.csv``, and ``docs/explanation/scale/seconds.svg`` is drawn from that.
"""

from __future__ import annotations

import argparse
import csv
import heapq
import math
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from crossgraft.rank.published.tables import ImageNetResult, imagenet_results

FOLDER = Path(__file__).parents[1] / "docs" / "explanation" / "scale"
FIVE = {
    "mobilenetv2_100.ra_in1k": 224,
    "resnet18.a1_in1k": 160,
    "resnet50.a1_in1k": 160,
    "vit_small_patch16_224.augreg_in1k": 224,
    "convnext_tiny.fb_in1k": 224,
}
"""Weights, and the pixels at which timm timed them, as its multiplications say."""
FAMILIES = (("#D55E00", "^", "vit"), ("#0072B2", "o", "resnet"), ("#009E73", "s", "convnext"), ("#E69F00", "v", "efficientnet"))
IMAGES = (1_000, 10_000)
MACHINES = (1, 8, 64)
SCORE_SECONDS = {1_000: 1.2, 10_000: 6.9}
"""Of the default scores with all their rounds, 512 features and 10 classes: docs/results/benchmarks.md."""
KEPT_NUMBERS = 1_000 + 1_280
"""Logits of ImageNet and features of a wide network, for each image."""


class Measured(NamedTuple):
    """One network, timed here.

    Attributes:
        model: Name of its weights.
        seconds: CPU seconds of one thread for one image.
        loading: CPU seconds to build it.
        features: Numbers that are kept of each image.
    """

    model: str
    seconds: float
    loading: float
    features: int


class Checkpoint(NamedTuple):
    """One checkpoint: multiplications in thousand millions for an image, None if unknown; seconds on timm's CPU; parameters."""

    model: str
    gmacs: float | None
    seconds: float
    parameters_millions: float


def checkpoints() -> list[Checkpoint]:
    """All of timm, with seconds from the line where no rate is published."""
    rows = [row for row in imagenet_results().values() if not row.model.startswith("torchvision")]
    slope, start = line(rows)
    typical = float(np.median([1 / row.cpu_images_per_second for row in rows if row.cpu_images_per_second]))

    def seconds(row: ImageNetResult) -> float:
        if row.cpu_images_per_second is not None:
            return 1 / row.cpu_images_per_second
        return typical if row.gmacs is None else math.exp(start + slope * math.log(row.gmacs))

    return [Checkpoint(row.model, row.gmacs, seconds(row), row.parameters_millions) for row in rows]


def line(rows: Iterable[ImageNetResult]) -> tuple[float, float]:
    """Slope and start of log seconds over log multiplications."""
    both = [(row.gmacs, row.cpu_images_per_second) for row in rows if row.gmacs and row.cpu_images_per_second]
    gmacs, rates = np.log(np.array(both)).T
    slope, start = np.polyfit(gmacs, -rates, 1)
    return float(slope), float(start)


def by_architecture(some: Sequence[Checkpoint]) -> list[list[float]]:
    """Seconds of all looks of each architecture: its checkpoints, and one network with random weights as a control."""
    looks: dict[str, list[float]] = {}
    for each in some:
        looks.setdefault(each.model.partition(".")[0], []).append(each.seconds)
    return [[*seconds, max(seconds)] for seconds in looks.values()]


def hours_on(machines: int, seconds: Sequence[float]) -> float:
    """Hours until all is done, where each machine takes the longest job that is left."""
    free = [0.0] * machines
    for each in sorted(seconds, reverse=True):
        heapq.heappush(free, heapq.heappop(free) + each)
    return max(free) / 3600


def ratio_to_timm(measured: Sequence[Measured]) -> float:
    """CPU seconds here over the seconds that timm publishes."""
    known = imagenet_results()
    return geometric_mean([each.seconds * (known[each.model].cpu_images_per_second or math.nan) for each in measured])


def tables(measured: Sequence[Measured]) -> str:
    """As they stand on the page."""
    known, here, all_of_them = imagenet_results(), ratio_to_timm(measured), checkpoints()
    lines = ["| network | GMACs | seconds an image, timm's CPU | CPU seconds an image, here | ratio |", "|---|---|---|---|---|"]
    for each in measured:
        row = known[each.model]
        theirs = 1 / (row.cpu_images_per_second or math.nan)
        lines.append(f"| {each.model} | {row.gmacs:.2f} | {theirs:.4f} | {each.seconds:.4f} | {each.seconds / theirs:.2f} |")
    loading = float(np.mean([each.loading for each in measured]))
    by_length = sorted((here * each.seconds for each in all_of_them), reverse=True)
    total = sum(by_length)
    together = by_architecture(all_of_them)
    lines += [
        "",
        f"{len(all_of_them)} checkpoints of {len(together)} architectures, {total:.0f} core-seconds for one image of all; median "
        f"{np.median(by_length):.2f}, longest {by_length[0]:.0f} ({max(all_of_them, key=lambda each: each.seconds).model}).",
        f"The slowest tenth takes {100 * sum(by_length[: len(by_length) // 10]) / total:.0f} % of the time, the fastest half "
        f"{100 * sum(by_length[len(by_length) // 2 :]) / total:.0f} %.",
        f"Seconds = {here * math.exp(line(known.values())[1]):.4f} · GMACs^{line(known.values())[0]:.2f}.",
        "",
        f"| images | {' | '.join(f'hours, {counted(number)}' for number in MACHINES)} | … without the slowest tenth, 64 "
        "| scores, share | features kept |",
        "|---" * (len(MACHINES) + 4) + "|",
    ]
    for number in IMAGES:
        each = loading + SCORE_SECONDS[number]
        jobs = sorted((number * here * sum(some) + each * len(some) for some in together), reverse=True)
        hours = [f"{hours_on(machines, jobs):.1f}" for machines in MACHINES]
        faster = hours_on(MACHINES[-1], jobs[len(jobs) // 10 :])
        num_looks = sum(map(len, together))
        share = SCORE_SECONDS[number] * num_looks / sum(jobs)
        kept = 4 * KEPT_NUMBERS * number * num_looks / 1e9
        lines.append(f"| {number} | {' | '.join(hours)} | {faster:.1f} | {100 * share:.1f} % | {kept:.0f} GB |")
    parameters = [each.parameters_millions for each in all_of_them]
    lines += ["", f"Weights: {4 * sum(parameters) / 1e3:.0f} GB in all, {4 * max(parameters) / 1e3:.1f} GB the largest."]
    return "\n".join(lines)


def counted(machines: int) -> str:
    return "1 core" if machines == 1 else f"{machines} cores"


def draw(path: Path, measured: Sequence[Measured]) -> None:
    """Seconds of all checkpoints here over multiplications, and the five that were timed; the same bytes from the same rows."""
    known, here = imagenet_results(), ratio_to_timm(measured)
    shown = [each for each in checkpoints() if each.gmacs is not None]
    looks = dict.fromkeys([name for *_, name in FAMILIES])
    with mpl.rc_context({"svg.hashsalt": "crossgraft", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9}):
        figure = Figure(figsize=(7.2, 4.2), layout="constrained")
        axes = figure.subplots()

        def scatter(some: Sequence[Checkpoint], colour: str, marker: str, label: str) -> None:
            xs, ys = [each.gmacs for each in some], [here * each.seconds for each in some]
            axes.scatter(xs, ys, s=9, color=colour, marker=marker, label=label, linewidths=0, alpha=0.7, rasterized=False)

        scatter([each for each in shown if not each.model.startswith(tuple(looks))], "#BBBBBB", "o", "other families")
        for colour, marker, family in FAMILIES:
            scatter([each for each in shown if each.model.startswith(family)], colour, marker, f"{family}…")
        slope, start = line(known.values())
        ends = np.array([min(each.gmacs or 1 for each in shown), max(each.gmacs or 1 for each in shown)])
        axes.plot(ends, here * np.exp(start) * ends**slope, color="#000000", linewidth=0.9, label="line through all")
        of_five = [known[each.model].gmacs for each in measured]
        axes.scatter(
            of_five, [each.seconds for each in measured], s=60, facecolors="none", edgecolors="#000000", label="timed here"
        )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("Multiplications for one image, thousand millions (GMACs)")
        axes.set_ylabel("CPU seconds of one core for one image")
        axes.grid(color="#E5E5E5", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", ncols=4, frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None, "Creator": None})


def measure(model: str, images: int, pixels: int, rounds: int) -> Measured:
    """CPU seconds of one thread; the least of several rounds."""
    from extraction import make_images

    from crossgraft.compute import limit_threads
    from crossgraft.features import extract_features
    from crossgraft.models import ModelSpec, load_backbone
    from crossgraft.progress import Reporter

    start = time.process_time()
    backbone = load_backbone(ModelSpec(name=model, source=model, weights="random"), device="cpu", image_size=pixels)
    loading, dataset, times = time.process_time() - start, make_images(images, pixels), []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder, limit_threads(1):
            start = time.process_time()
            extract_features(dataset, backbone, cache_dir=folder, reporter=Reporter(quiet=True))
            times.append(time.process_time() - start)
    return Measured(model, min(times) / images, loading, backbone.num_features)


def write(path: Path, measured: Sequence[Measured]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(Measured._fields)
        table.writerows((each.model, f"{each.seconds:.5f}", f"{each.loading:.2f}", each.features) for each in measured)


def read(path: Path) -> list[Measured]:
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Measured(row["model"], float(row["seconds"]), float(row["loading"]), int(row["features"]))
            for row in csv.DictReader(file)
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="time five models anew, and keep it")
    parser.add_argument("--images", type=int, default=32, help="to time; 32 by default")
    parser.add_argument("--rounds", type=int, default=3, help="of which the least counts; 3 by default")
    parser.add_argument("--smoke", action="store_true", help="one tiny network, nothing is written")
    given = parser.parse_args()
    if given.smoke:
        print(f"{measure('test_resnet.r160_in1k', 4, 32, 1).seconds:.5f} s an image")
    if given.measure:
        write(FOLDER / "measured.csv", [measure(model, given.images, pixels, given.rounds) for model, pixels in FIVE.items()])
    measured = read(FOLDER / "measured.csv")
    if given.measure:
        draw(FOLDER / "seconds.svg", measured)
    print(tables(measured))


if __name__ == "__main__":
    main()
