"""What keeping freed memory saves a network on the CPU: CPU seconds with glibc's defaults ÷ with ``reuse_freed_memory``.

    python benchmarks/memory_reuse.py
    python benchmarks/memory_reuse.py --smoke         # a tiny network, a few seconds: checks that it runs

Each figure comes from two processes of its own, because the thresholds of malloc hold for a whole process and adapt.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from contextlib import nullcontext

CASES = [
    ("mobilenetv2_100", "look", 8, 224),
    ("mobilenetv2_100", "look", 64, 224),
    ("vit_tiny_patch16_224", "look", 16, 224),
    ("mobilenetv2_100", "train", 16, 224),
    ("mobilenetv2_100", "train", 32, 64),
    ("resnet18", "train", 16, 224),
]
SMOKE_CASES = [("test_resnet", "train", 8, 32)]
IMAGES = 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a tiny network; the numbers mean nothing")
    parser.add_argument("--case", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        model, work, batch_size, pixels, reuse = arguments.case
        print(*measure(model, work, int(batch_size), int(pixels), reuse=reuse == "reuse"))
        return
    for case in SMOKE_CASES if arguments.smoke else CASES:
        plain = measure(*case, reuse=False) if arguments.smoke else in_own_process(*case, "default")
        reused = in_own_process(*case, "reuse")
        print(
            f"{case[0]:22} {case[1]:6} batch {case[2]:3} of {case[3]:3} px: {plain[0]:6.1f} → {reused[0]:6.1f} images a CPU "
            f"second ({reused[0] / plain[0]:.2f}), largest {plain[1]:.0f} → {reused[1]:.0f} MB",
            flush=True,
        )


def in_own_process(*case: object) -> tuple[float, float]:
    """Images a CPU second, and the largest size of the process in MB."""
    command = [sys.executable, __file__, "--case", *map(str, case)]
    rate, size = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    ).stdout.split()
    return float(rate), float(size)


def measure(model: str, work: str, batch_size: int, pixels: int, *, reuse: bool) -> tuple[float, float]:
    import timm
    import torch
    from torch.nn.functional import cross_entropy

    from crossgraft.compute import reuse_freed_memory

    torch.set_num_threads(1)
    network = timm.create_model(model, num_classes=5).train(work == "train")
    optimizer = torch.optim.AdamW(network.parameters())
    images, labels = torch.rand(batch_size, 3, pixels, pixels), torch.arange(batch_size) % 5

    def step() -> None:
        if work == "look":
            with torch.inference_mode():
                network(images)
            return
        optimizer.zero_grad()
        cross_entropy(network(images), labels).backward()
        optimizer.step()

    rounds = max(2, IMAGES // batch_size)
    with reuse_freed_memory() if reuse else nullcontext():
        step()
        start = time.process_time()
        for _ in range(rounds):
            step()
        seconds = time.process_time() - start
    return rounds * batch_size / seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
