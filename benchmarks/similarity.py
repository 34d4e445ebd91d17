"""Linear CKA against the matrix products that it needs, its two forms, and the memory of a long stream.

    OMP_NUM_THREADS=1 python benchmarks/similarity.py           # a few minutes
    OMP_NUM_THREADS=1 python benchmarks/similarity.py --smoke   # seconds; the numbers mean nothing

``StreamingCka`` gets float32 features in batches of 256 and gives both estimates, or only the biased one; the floor are the
three bare products ``x.T @ x``, ``y.T @ y`` and ``x.T @ y`` of numpy (the first two are SYRK) of all rows at once. Both are
run in turns, and the ratio of CPU seconds is the median over the pairs with the middle 80 % of them. Memory is what a process
of its own holds more after a stream than before.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from crossgraft.compute import limit_threads
from crossgraft.similarity import StreamingCka
from crossgraft.similarity._features import as_rows
from crossgraft.similarity.linear_cka import _gram, _of_grams, _streamed

BATCH = 256


def main() -> None:
    arguments = parse_arguments()
    if arguments.stream:
        print(*memory_of_a_stream(*arguments.stream))
        return
    with limit_threads(1):
        for n in arguments.images:
            against_the_products(n, arguments.width, arguments.pairs)
        for n, d in arguments.forms:
            both_forms(n, d)
    for n in arguments.long:
        command = [sys.executable, __file__, "--stream", str(n), str(arguments.wide)]
        held, seconds = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        print(f"stream of {n:7} × {arguments.wide}: {held} MB more, {seconds} CPU seconds", flush=True)


def made_up(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Like features after a ReLU."""
    return np.maximum(np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32), 0)


def against_the_products(n: int, d: int, pairs: int) -> None:
    x, y = made_up(n, d), made_up(n, d, seed=1)

    def products() -> None:
        x.T @ x, y.T @ y, x.T @ y

    def stream(*estimates: bool) -> None:
        sums = StreamingCka()
        for start in range(0, n, BATCH):
            sums.update(x[start : start + BATCH], y[start : start + BATCH])
        for debiased in estimates:
            sums.compute(debiased=debiased)

    cases = {"biased": lambda: stream(False), "debiased": lambda: stream(True), "both": lambda: stream(False, True)}
    for case in (products, *cases.values()):
        case()
    ratios: dict[str, list[float]] = {name: [] for name in cases}
    floors: list[float] = []
    for turn in range(pairs):
        floors.append(seconds_of(products))
        for name in cases if turn % 2 else reversed(cases):
            ratios[name].append(seconds_of(cases[name]) / floors[-1])
    print(f"{n} × {d}: three products {1000 * np.median(floors):.0f} ms")
    for name, found in ratios.items():
        low, middle, high = np.quantile(found, [0.1, 0.5, 0.9])
        print(f"  {name:9} {middle:.2f} ({low:.2f} to {high:.2f}) of them", flush=True)


def both_forms(n: int, d: int) -> None:
    x, y = as_rows(made_up(n, d), made_up(n, d, seed=1))
    gram = min(seconds_of(lambda: _of_grams(_gram(x, "x"), _gram(y, "y"), debiased=True)) for _ in range(3))
    feature = min(seconds_of(lambda: _streamed(x, y).compute(debiased=True)) for _ in range(3))
    print(f"{n} × {d}: Gram form {1000 * gram:.0f} ms, feature form {1000 * feature:.0f} ms", flush=True)


def largest_kilobytes() -> int:
    """The most memory that this process has held; what ``getrusage`` says is inherited from the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def memory_of_a_stream(n: int, d: int) -> tuple[str, str]:
    """Megabytes at the peak beyond what was there, and CPU seconds; the same batch comes again and again."""
    x, y = made_up(BATCH, d), made_up(BATCH, d, seed=1)
    before, start = largest_kilobytes(), time.process_time()
    stream = StreamingCka()
    for _ in range(0, n, BATCH):
        stream.update(x, y)
    stream.compute(debiased=True)
    held = largest_kilobytes() - before
    return f"{held / 1024:.0f}", f"{time.process_time() - start:.1f}"


def seconds_of(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="little of everything; the numbers mean nothing")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--stream", nargs=2, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.width, arguments.wide = (16, 32) if arguments.smoke else (512, 2048)
    arguments.images = [300] if arguments.smoke else [10_000, 50_000]
    arguments.forms = [(20, 40), (60, 30)] if arguments.smoke else [(256, 4096), (4000, 512)]
    arguments.long = [1000] if arguments.smoke else [10_000, 30_000]
    if arguments.smoke:
        arguments.pairs = 3
    return arguments


if __name__ == "__main__":
    main()
