"""A check of the data against its floor, and the search for near duplicates by its size.

    python benchmarks/check.py           # 4000 JPEG files, and up to 50 000 thumbnails; a few minutes
    python benchmarks/check.py --smoke   # seconds

Prints CPU seconds, which other programs disturb least: of decoding every file once (the floor: nothing can be said
about an image that was not decoded), of ``check_data`` on the same files with as many threads, and their ratio (target:
at most 2.5); then of the search for near duplicates among made-up thumbnails, and the power of their number with which they
grow. Check and floor are measured in turns in the same process, and the best of the rounds counts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import zoom

from crossgraft import check_data
from crossgraft.compute import available_cores
from crossgraft.data.checks.near_duplicates import find_near_duplicates
from crossgraft.data.decoding import decode_file
from crossgraft.data.inspection import THUMBNAIL_SIDE


def main() -> None:
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        files = write_images(Path(folder), arguments.images, arguments.pixels)
        compare(Path(folder), files, arguments)
    before: tuple[int, float] | None = None
    for number in arguments.thumbnails:
        before = search(number, before)


def compare(folder: Path, files: list[Path], arguments: argparse.Namespace) -> None:
    def decode_all() -> None:
        with ThreadPoolExecutor(arguments.threads) as pool:
            for _ in pool.map(decode_file, files):
                pass

    check_data(folder, workers=arguments.threads)  # imports are not what is measured
    rounds = [
        (seconds(decode_all), seconds(lambda: check_data(folder, workers=arguments.threads))) for _ in range(arguments.rounds)
    ]
    floor, check = (min(column) for column in zip(*rounds, strict=True))
    print(
        f"{len(files)} JPEG files of {arguments.pixels}×{arguments.pixels}, {arguments.threads} thread(s): "
        f"decoding {floor:.2f} CPU-s, check {check:.2f} CPU-s, ratio {check / floor:.2f}"
    )


def search(number: int, before: tuple[int, float] | None) -> tuple[int, float]:
    """Time the search among ``number`` pictures of one kind, one in a hundred of which has a copy."""
    thumbnails = make_thumbnails(number)
    taken = seconds(lambda: find_near_duplicates(thumbnails))
    growth = ""
    if before is not None:
        exponent = np.log(taken / before[1]) / np.log(number / before[0])
        growth = f"   time grows as n^{exponent:.2f}"
    found = len(find_near_duplicates(thumbnails).pairs)
    print(f"near duplicates among {number:6d} thumbnails: {taken:7.2f} CPU-s, {found} of {number // 100} pairs{growth}")
    return number, taken


def make_thumbnails(number: int) -> np.ndarray:
    """Smooth pictures that have most in common; the last hundredth are noisy copies of the first."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(1, 12, 12))
    coarse = 2 * shared + rng.normal(size=(number, 12, 12))
    scale = THUMBNAIL_SIDE / 12
    pieces = [zoom(coarse[start : start + 1000], (1, scale, scale), order=1) for start in range(0, number, 1000)]
    pictures = np.concatenate(pieces) * 20 + 128
    copies = number // 100
    pictures[number - copies :] = pictures[:copies] + rng.normal(size=pictures[:copies].shape)
    return pictures.clip(0, 255).astype(np.uint8)


def write_images(folder: Path, number: int, pixels: int) -> list[Path]:
    """JPEG files of smooth noise in two classes."""
    rng = np.random.default_rng(0)
    files = []
    for index in range(number):
        path = folder / ("benign" if index % 2 else "malignant") / f"{index}.jpg"
        path.parent.mkdir(exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8))
        coarse.resize((pixels, pixels), Image.Resampling.BICUBIC).save(path, quality=90)
        files.append(path)
    return files


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of all threads of this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A check of the data against its floor.")
    parser.add_argument("--smoke", action="store_true", help="a tiny run that only shows that it works")
    parser.add_argument("--images", type=int, default=4000)
    parser.add_argument("--pixels", type=int, default=256)
    parser.add_argument("--thumbnails", type=int, nargs="+", default=[1000, 5000, 10_000, 20_000, 50_000])
    parser.add_argument("--threads", type=int, default=min(available_cores(), 8))
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.images, arguments.rounds, arguments.thumbnails = 60, 1, [200, 400]
    return arguments


if __name__ == "__main__":
    main()
