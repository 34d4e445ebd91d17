"""Feature extraction against its floor, and the cache against both.

    python benchmarks/extraction.py           # 1024 images, mobilenetv2_100 and vit_tiny; a few minutes
    python benchmarks/extraction.py --smoke   # seconds

Prints, for each network: images a second of the bare ``model(images)`` on tensors in memory, of
``extract_features`` on images that still have to be resized, their ratio (target: at least 0.95), and the second
run from the cache as a share of the first (target: at most 0.02). Both rates are measured in turns in the same
process with the same batch size and number of threads, and the best of the rounds counts, because other programs
can only slow a round down. The ratio of CPU seconds says the same on a machine that is busy with other work.

Then what several networks of one size cost on the same JPEG files: the floor is a loop that decodes and resizes every file once
and runs the bare networks on what it made; beside it a ``DataLoader``-like loop that decodes and resizes again for each network,
as many tools do, and ``extract_features`` with images that are resized once (target: at most 1.1 times the CPU seconds of the
floor).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image

from crossgraft.compute import available_cores, limit_threads
from crossgraft.data.dataset import Dataset, dataset_from_arrays
from crossgraft.data.decoding import decode_file
from crossgraft.data.resizing import resize_image
from crossgraft.data.transforms import prepare_resized
from crossgraft.features import extract_features
from crossgraft.features.passes import ResizedOnce, way_of_resizing
from crossgraft.features.store import FeatureStore
from crossgraft.models import Backbone, ModelSpec, load_backbone
from crossgraft.progress import Reporter
from crossgraft.types import Preprocessing


class Seconds(NamedTuple):
    """Of the clock, and of all threads of this process together."""

    wall: float
    cpu: float


def main() -> None:
    arguments = parse_arguments()
    torch.manual_seed(0)
    print(f"{arguments.images} images, batch {arguments.batch_size}, {arguments.threads} thread(s), {arguments.device}")
    for name in arguments.models.split(","):
        spec = ModelSpec(name=name, source=name, weights="random")
        backbone = load_backbone(spec, device=arguments.device, image_size=arguments.image_size)
        measure(backbone, make_images(arguments.images, arguments.pixels), arguments)
    measure_several(arguments)
    measure_cache_read(*((1000, 32) if arguments.smoke else (50_000, 768)))


def measure(backbone: Backbone, dataset: Dataset, arguments: argparse.Namespace) -> None:
    bare_rounds, first_rounds, second_rounds = [], [], []
    for _ in range(arguments.rounds):
        bare_rounds.append(run_bare(backbone, len(dataset), arguments.batch_size, arguments.threads))
        with tempfile.TemporaryDirectory() as folder:
            first_rounds.append(run_extraction(backbone, dataset, Path(folder), arguments))
            second_rounds.append(run_extraction(backbone, dataset, Path(folder), arguments))
    bare, first, second = (min(r.wall for r in rounds) for rounds in (bare_rounds, first_rounds, second_rounds))
    cpu_ratio = min(r.cpu for r in bare_rounds) / min(r.cpu for r in first_rounds)
    print(
        f"{backbone.name:24} bare {len(dataset) / bare:7.1f} images/s   "
        f"extraction {len(dataset) / first:7.1f} images/s   ratio {bare / first:.3f} "
        f"(of CPU seconds {cpu_ratio:.3f})   second run {second / first:.4f} of the first ({1000 * second:.1f} ms)"
    )


def measure_several(arguments: argparse.Namespace) -> None:
    """The same files for each of several networks."""
    names = arguments.several.split(",")
    backbones = [
        load_backbone(
            ModelSpec(name=name, source=name, weights="random"), device=arguments.device, image_size=arguments.image_size
        )
        for name in names
    ]
    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder), arguments.images)
        rounds = [
            (
                run_loop(backbones, files, arguments, once=True),
                run_loop(backbones, files, arguments, once=False),
                run_shared(backbones, files, arguments),
            )
            for _ in range(arguments.rounds)
        ]
    floor, again, shared = (min(each.cpu for each in column) for column in zip(*rounds, strict=True))
    print(
        f"{len(names)} networks, {len(files)} JPEG files of {Files.SIDE} px: decoded once, then bare {floor:.2f} CPU-s   "
        f"decoded for each {again:.2f} CPU-s (ratio {again / floor:.2f})   "
        f"resized once {shared:.2f} CPU-s (ratio {shared / floor:.2f})"
    )


class Files:
    """JPEG files that are decoded at each reading, as those of a large data set."""

    SIDE = 300

    def __init__(self, folder: Path, number: int) -> None:
        rng = np.random.default_rng(0)
        self.paths = [folder / f"{index}.jpg" for index in range(number)]
        for path in self.paths:
            coarse = Image.fromarray(rng.integers(0, 256, (20, 20, 3), dtype=np.uint8))
            coarse.resize((self.SIDE, self.SIDE), Image.Resampling.BICUBIC).save(path, quality=90)
        self.fingerprint = f"benchmark of {number} files"

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, index: int) -> np.ndarray:
        """Decoded."""
        return decode_file(self.paths[index])

    def image_name(self, index: int) -> str:
        """For messages."""
        return self.paths[index].name


def run_loop(backbones: list[Backbone], files: Files, arguments: argparse.Namespace, *, once: bool) -> Seconds:
    """A plain loop over batches: all files are decoded for the first network alone, or for each."""
    made: dict[tuple[object, int], np.ndarray] = {}

    def image(row: int, how: Preprocessing) -> np.ndarray:
        if not once:
            return resize_image(files.read(row), how)
        key = way_of_resizing(how), row
        if key not in made:
            made[key] = resize_image(files.read(row), how)
        return made[key]

    start, cpu_start = time.perf_counter(), time.process_time()
    with limit_threads(arguments.threads), torch.inference_mode():
        for backbone in backbones:
            for first in range(0, len(files), arguments.batch_size):
                rows = range(first, min(first + arguments.batch_size, len(files)))
                images = prepare_resized([image(row, backbone.preprocessing) for row in rows], backbone.preprocessing)
                backbone.module(images.to(backbone.device))
    return Seconds(time.perf_counter() - start, time.process_time() - cpu_start)


def run_shared(backbones: list[Backbone], files: Files, arguments: argparse.Namespace) -> Seconds:
    start, cpu_start = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder, ResizedOnce(files, Path(folder), Reporter(quiet=True)) as images:
        for backbone in backbones:
            extract_features(
                images,
                backbone,
                cache_dir=folder,
                batch_size=arguments.batch_size,
                num_threads=arguments.threads,
                is_announced=True,
            )
    return Seconds(time.perf_counter() - start, time.process_time() - cpu_start)


def run_bare(backbone: Backbone, num_images: int, batch_size: int, threads: int) -> Seconds:
    """``model(images)`` alone, the tensors being ready."""
    preprocessing = backbone.preprocessing
    shape = (preprocessing.channels, preprocessing.height_pixels, preprocessing.width_pixels)
    batch = torch.randn(batch_size, *shape, device=backbone.device)
    with limit_threads(threads), torch.inference_mode():
        backbone.module(batch)
        start, cpu_start = time.perf_counter(), time.process_time()
        for first in range(0, num_images, batch_size):
            output = backbone.module(batch[: min(batch_size, num_images - first)])
        output.cpu()
        return Seconds(time.perf_counter() - start, time.process_time() - cpu_start)


def run_extraction(backbone: Backbone, dataset: Dataset, folder: Path, arguments: argparse.Namespace) -> Seconds:
    start, cpu_start = time.perf_counter(), time.process_time()
    found = extract_features(dataset, backbone, cache_dir=folder, batch_size=arguments.batch_size, num_threads=arguments.threads)
    found.features.sum()  # touch every page of the memory map
    return Seconds(time.perf_counter() - start, time.process_time() - cpu_start)


def measure_cache_read(num_rows: int, num_columns: int) -> None:
    """Open, check and sum stored features."""
    with tempfile.TemporaryDirectory() as folder:
        store = FeatureStore(Path(folder), num_rows, num_columns, None)
        values = np.random.default_rng(0).standard_normal((num_rows, num_columns), dtype=np.float32)
        for shard in range(store.num_shards):
            rows = store.rows(shard)
            store.write_shard(shard, values[rows.start : rows.stop], None, seconds=0.0)
        store.finish()
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            stored = store.read()
            seconds.append(time.perf_counter() - start)
        if stored is None or not np.array_equal(stored.features, values):
            raise SystemExit("the stored features are not what was written")
    print(
        f"cache read of {num_rows} x {num_columns} float32 with its checksum: {1000 * min(seconds):.1f} ms "
        "(target: at most 100 ms)"
    )


def make_images(num_images: int, pixels: int) -> Dataset:
    """Grey 8-bit images in memory; their content does not change the time."""
    values = np.random.default_rng(0).integers(0, 256, (num_images, pixels, pixels), dtype=np.uint8)
    return dataset_from_arrays(values, np.arange(num_images) % 2, name="benchmark")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Feature extraction against its floor.")
    parser.add_argument("--smoke", action="store_true", help="a tiny run that only shows that it works")
    parser.add_argument("--models", default="mobilenetv2_100,vit_tiny_patch16_224")
    parser.add_argument("--several", default="test_resnet,test_vit,test_efficientnet,test_byobnet,test_convnext")
    parser.add_argument("--images", type=int, default=1024)
    parser.add_argument("--pixels", type=int, default=28, help="side of the images before they are resized")
    parser.add_argument("--image-size", type=int, default=None, help="side of the network's input")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--threads", type=int, default=available_cores())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.models, arguments.images, arguments.batch_size, arguments.rounds = "test_resnet", 16, 8, 1
        arguments.several = "test_resnet,test_vit"
    return arguments


if __name__ == "__main__":
    main()
