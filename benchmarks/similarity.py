"""Linear CKA and CCA against the matrix products that they need, all pairs of layers against torch_cka, and memory.

    OMP_NUM_THREADS=1 python benchmarks/similarity.py           # a few minutes
    OMP_NUM_THREADS=1 python benchmarks/similarity.py --smoke   # seconds; the numbers mean nothing

``StreamingCka`` gets float32 features in batches of 256 and gives both estimates, or only the biased one; the floor are the
three bare products ``x.T @ x``, ``y.T @ y`` and ``x.T @ y`` of numpy (the first two are SYRK) of all rows at once. Both are
run in turns, and the ratio of CPU seconds is the median over the pairs with the middle 80 % of them. CCA is measured in the same
way; it multiplies in float64, so the same products in float64 stand beside it. All pairs of 12 × 12 layers are compared with the
algorithm of torch_cka (AntixK/PyTorch-Model-Compare), written here to the letter, on the same features in the same batches.
Memory is what a process of its own holds more after a stream than before.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from crossgraft.compute import limit_threads
from crossgraft.similarity import LayerCka, MinibatchCka, StreamingCka, cca
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
            cca_against_the_products(n, arguments.width, arguments.pairs)
        layers_against_torch_cka(arguments.layers, arguments.layer_width, arguments.layer_images, arguments.layer_batch)
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


def cca_against_the_products(n: int, d: int, pairs: int) -> None:
    x, y = made_up(n, d), made_up(n, d, seed=1)
    wide = x.astype(np.float64), y.astype(np.float64)
    cases = {"single": (x, y), "double": wide}
    found: dict[str, list[float]] = {"single": [], "double": []}
    cca(x, y)
    for _ in range(max(3, pairs // 3)):
        floors = {name: seconds_of(lambda a=a, b=b: (a.T @ a, b.T @ b, a.T @ b)) for name, (a, b) in cases.items()}
        seconds = seconds_of(lambda: cca(x, y))
        for name, floor in floors.items():
            found[name].append(seconds / floor)
    print(
        f"  CCA       {np.median(found['single']):.2f} of the products in float32, "
        f"{np.median(found['double']):.2f} of those in float64",
        flush=True,
    )


def layers_against_torch_cka(num_layers: int, d: int, n: int, batch: int) -> None:
    """All pairs of layers of two networks of the same widths; both in float32."""
    a, b = ({f"layer{i}": made_up(n, d, seed=i + start) for i in range(num_layers)} for start in (0, num_layers))
    tensors = [{name: torch.from_numpy(rows) for name, rows in side.items()} for side in (a, b)]
    splits = [slice(start, start + batch) for start in range(0, n, batch)]

    def ours() -> np.ndarray:
        means = MinibatchCka()
        for rows in splits:
            means.update(*({name: values[rows] for name, values in side.items()} for side in (a, b)))
        return means.compute().matrix

    def exact() -> np.ndarray:
        stream = LayerCka()
        for rows in splits:
            stream.update(*({name: values[rows] for name, values in side.items()} for side in (a, b)))
        return stream.compute(debiased=True).matrix

    torch.set_num_threads(1)
    slow = torch_cka(*tensors, splits)
    print(f"{num_layers} × {num_layers} layers of {d}, {n} images in batches of {batch}:")
    off = [np.abs(work() - slow).max() for work in (ours, exact)]
    print(f"  largest difference of minibatch CKA {off[0]:.1e}, of exact CKA {off[1]:.1e}")
    theirs = min(seconds_of(lambda: torch_cka(*tensors, splits)) for _ in range(2))
    for name, work in (("minibatches", ours), ("exact", exact)):
        print(f"  {name:12} {theirs / min(seconds_of(work) for _ in range(3)):.1f} times as fast as torch_cka", flush=True)


def torch_cka(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor], splits: list[slice]) -> np.ndarray:
    """The loop of ``CKA.compare`` and ``CKA._HSIC`` of torch_cka 0.2, without hooks and progress bar."""
    sums = torch.zeros(len(first), len(second), 3)
    for rows in splits:
        for i, features in enumerate(first.values()):
            x = features[rows].flatten(1)
            k = x @ x.t()
            k.fill_diagonal_(0.0)
            sums[i, :, 0] += _hsic(k, k) / len(splits)
            for j, others in enumerate(second.values()):
                y = others[rows].flatten(1)
                m = y @ y.t()
                m.fill_diagonal_(0)
                sums[i, j, 1] += _hsic(k, m) / len(splits)
                sums[i, j, 2] += _hsic(m, m) / len(splits)
    return (sums[:, :, 1] / (sums[:, :, 0].sqrt() * sums[:, :, 2].sqrt())).numpy()


def _hsic(k: torch.Tensor, m: torch.Tensor) -> float:
    n = k.shape[0]
    ones = torch.ones(n, 1)
    result = torch.trace(k @ m)
    result += ((ones.t() @ k @ ones @ ones.t() @ m @ ones) / ((n - 1) * (n - 2))).item()
    result -= ((ones.t() @ k @ m @ ones) * 2 / (n - 2)).item()
    return (1 / (n * (n - 3)) * result).item()


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
    arguments.layers, arguments.layer_width, arguments.layer_images, arguments.layer_batch = (
        (3, 16, 64, 16) if arguments.smoke else (12, 512, 2048, 256)
    )
    arguments.long = [1000] if arguments.smoke else [10_000, 30_000]
    if arguments.smoke:
        arguments.pairs = 3
    return arguments


if __name__ == "__main__":
    main()
