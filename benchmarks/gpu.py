"""Looking, training and linear algebra on a GPU, each beside what plain PyTorch does on the same card in the same run.

    python benchmarks/gpu.py                        # on a machine with a GPU: four minutes at most, then the tests that need one
    python benchmarks/gpu.py --device cpu --smoke   # every row with tiny images and networks, for this program's own test

Images are JPEG files. The floor of looking is a loop over images that lie on the device as 8 bits; of training, the same with
flips and windows drawn there; both with torch's defaults, which may round float32 to TF32, as ours never does. Ours are a
second pass over files, and the second epoch of a training, with the first one below it. The last column is the speed of ours over
that of the floor. Without a GPU there is nothing to measure, and it says so.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import timm
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from crossgraft import rank_models
from crossgraft.compute import available_cores, limit_threads, resolve_device
from crossgraft.data import Dataset, open_dataset
from crossgraft.features import extract_features
from crossgraft.losses import CrossEntropy
from crossgraft.models import ModelSpec, load_backbone
from crossgraft.models.classifier import make_classifier
from crossgraft.tune.augmentations import Light
from crossgraft.tune.engine.contract import TrainingResult
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.engine.trainer import train
from crossgraft.tune.feed.batches import BatchMaker, BatchPlan
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.methods import Full
from crossgraft.tune.regularizers import RepSim

TESTS = Path(__file__).parents[1] / "tests" / "unit" / "tune" / "test_on_a_gpu.py"
CLASSES = 10


class Size(NamedTuple):
    """How much is measured."""

    images: int
    side: int
    pixels: int
    looked_at: tuple[str, ...]
    trained: tuple[tuple[str, bool], ...]  # name, and whether in bf16
    batch: int
    steps: int
    small: str
    small_pixels: int
    rows: int
    width: int
    ranked: int


WHOLE = Size(
    images=4096, side=300, pixels=224,
    looked_at=("resnet50", "vit_base_patch16_224", "convnext_tiny", "mobilenetv3_large_100"),
    trained=(("resnet50", False), ("resnet50", True), ("vit_base_patch16_224", True)),
    batch=128, steps=20, small="resnet18", small_pixels=32, rows=5000, width=2048, ranked=1310,
)  # fmt: skip
SMOKE = Size(
    images=24, side=40, pixels=32, looked_at=("mobilenetv3_small_050",), trained=(("mobilenetv3_small_050", False),),
    batch=8, steps=2, small="mobilenetv3_small_050", small_pixels=32, rows=60, width=16, ranked=24,
)  # fmt: skip


def main() -> None:
    arguments = parse_arguments()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("There is no GPU here, so that 0 rows were measured. The rows run small with --device cpu --smoke.")
        return
    size = SMOKE if arguments.smoke else WHOLE
    what = torch.cuda.get_device_name() if arguments.device == "cuda" else "the CPU"
    print(f"{what}, {available_cores()} cores, torch {torch.__version__}; {size.images} images of {size.side} pixels")
    print(f"{'':44} {'plain PyTorch':>16} {'crossgraft':>16} {'of the floor':>13}")
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        files = write_images(Path(folder) / "images", size)
        data = open_dataset(Path(folder) / "images")
        bench = Bench(arguments.device, size, data, Path(folder))
        images = bench.decoding(files)
        bench.looking(images)
        bench.training(images)
        bench.small_step(images)
        bench.algebra()
        bench.ranking(images)
    print(f"measured in {time.perf_counter() - started:.0f} s")
    if not arguments.smoke:
        sys.exit(subprocess.run([sys.executable, "-m", "pytest", "-q", str(TESTS)], check=False).returncode)


class Bench:
    """Measures and prints one row after the other."""

    def __init__(self, device: str, size: Size, data: Dataset, folder: Path) -> None:
        self.device, self.size, self.data, self.folder = device, size, data, folder

    def decoding(self, files: list[bytes]) -> Tensor:
        """Images a second of threads and processes; gives the images as 8 bits on the device."""
        size, cores = self.size, available_cores()
        for workers in sorted({1, cores}):
            with ThreadPoolExecutor(workers) as pool:
                some = files[: max(len(files) // 8, 2)] if workers == 1 else files
                print_row(f"decode and resize, {workers} threads", len(some) / self._seconds(lambda: decoded(pool, some, size)))  # noqa: B023
        with ProcessPoolExecutor(max(cores - 2, 2)) as pool:
            decoded(pool, files[:8], size)
            found: list[np.ndarray] = []
            floor = len(files) / self._seconds(lambda: found.extend(decoded(pool, files, size)))
        backbone = self._backbone(size.looked_at[0], size.pixels)
        images = TrainingImages(self.data, backbone.preprocessing, num_threads=cores)
        ours = len(files) / self._seconds(lambda: images.read(torch.arange(len(images))))
        print_row(f"decode and resize, {max(cores - 2, 2)} processes", floor, ours)
        return torch.from_numpy(np.stack(found)).permute(0, 3, 1, 2).contiguous().to(self.device)

    def looking(self, images: Tensor) -> None:
        """A pass over all images: of the files the first time, then for another network at the same size."""
        for name in self.size.looked_at:
            backbone = self._backbone(name, self.size.pixels)
            floors = [self._floor_of_looking(backbone.module, images, bf16=bf16) for bf16 in (False, True)]
            number = iter(range(10))

            def look() -> None:
                extract_features(self.data, backbone, cache_dir=self.folder / f"{name}-{next(number)}")  # noqa: B023

            ours = len(images) / self._second(look)
            for precision, floor in zip(("float32", "bf16"), floors, strict=True):
                print_row(f"look, {name}, {precision}", floor, ours)

    def _floor_of_looking(self, network: nn.Module, images: Tensor, *, bf16: bool) -> float:
        """Images a second."""
        return len(images) / self._second(lambda: plain_look(network, images, bf16=bf16))

    def training(self, images: Tensor) -> None:
        """Steps of a network on images that lie on the device, and whole epochs of ours."""
        for name, bf16 in self.size.trained:
            floor = self.size.batch / self._plain_step(name, images, bf16=bf16)
            result = self._ours(name, bf16=bf16, pixels=self.size.pixels)
            first, second = (row.seconds for row in result.history[:2])
            print_row(f"train, {name}, {'bf16' if bf16 else 'float32'}", floor, len(self.data) / second)
            print_row("  its first epoch, of the second", len(self.data) / second, len(self.data) / first)

    def small_step(self, images: Tensor) -> None:
        """Milliseconds of a step where the host is slower than the device."""
        size = self.size
        small = functional.interpolate(images.float(), size=size.small_pixels).to(torch.uint8)
        floor = 1e3 * self._plain_step(size.small, small)
        for title, regularizers in (("", ()), (" with RepSim", (RepSim(),))):
            result = self._ours(size.small, pixels=size.small_pixels, regularizers=regularizers)
            ours = 1e3 * result.history[1].seconds * size.batch / len(self.data)
            print_row(f"step of {size.small} at {size.small_pixels} px{title}, ms", floor, ours, lower_is_better=True)
        if self.device == "cuda":
            graph = 1e3 * self._plain_step(size.small, small, compiled=True)
            print_row(f"step of {size.small}, CUDA graph of torch.compile, ms", graph)

    def algebra(self) -> None:
        """Milliseconds in float64."""
        size = self.size
        features = torch.randn(size.rows, size.width, device=self.device, dtype=torch.float64)
        gram = features.T @ features + torch.eye(size.width, device=self.device, dtype=torch.float64)
        many = gram.expand(20, *gram.shape).contiguous()
        jobs: dict[str, Callable[[], object]] = {
            "Gram": lambda: features.T @ features,
            "eigh": lambda: torch.linalg.eigh(gram),
            "Cholesky": lambda: torch.linalg.cholesky(gram),
            "20 Cholesky": lambda: torch.linalg.cholesky(many),
        }
        for name, job in jobs.items():
            print_row(f"{name}, float64, d = {size.width}, ms", 1e3 * self._second(job))

    def ranking(self, images: Tensor) -> None:
        """Seconds of a ranking of two networks, without its imports, beside plain passes of both over as many images."""
        size = self.size
        names = (*size.looked_at, *size.looked_at)[:2]
        specs = [ModelSpec(name=f"{name}-{place}", source=name, weights="random") for place, name in enumerate(names)]
        rows = np.arange(min(size.ranked, len(self.data)))
        modules = [self._backbone(name, size.pixels).module for name in names]
        floor = sum(self._second(lambda: plain_look(module, images[: len(rows)])) for module in modules)  # noqa: B023
        data, out = self.data.take(rows), self.folder / "ranking"
        said = {"device": self.device, "holdout": 0.0, "image_size": size.pixels, "scores": "logme"}
        ours = self._seconds(lambda: rank_models(data, models=specs, out=out, **said))
        print_row(f"rank, 2 networks, {len(rows)} images, s", floor, ours, lower_is_better=True)

    def _backbone(self, name: str, pixels: int):
        return load_backbone(ModelSpec(name=name, source=name, weights="random"), device=self.device, image_size=pixels)

    def _ours(self, name: str, *, pixels: int, bf16: bool = False, regularizers: tuple[RepSim, ...] = ()) -> TrainingResult:
        """Two epochs without an evaluation."""
        backbone, device = self._backbone(name, pixels), resolve_device(self.device)
        classifier = make_classifier(backbone, CLASSES, seed=0)
        targets = torch.eye(CLASSES)[torch.as_tensor(self.data.targets)]
        feed = BatchMaker(
            TrainingImages(self.data, backbone.preprocessing, num_threads=available_cores()),
            targets,
            BatchPlan(targets, batch_size=self.size.batch),
            augmentation=Light(),
            device=device,
        )
        settings = TrainerSettings(
            epochs=2, batch_size=self.size.batch, device=device, precision="bf16-mixed" if bf16 else "32-true"
        )
        with limit_threads(available_cores()):  # and convolutions that repeat themselves, without TF32, as in every command
            return train(
                classifier,
                feed,
                Full().select(classifier),
                loss=CrossEntropy(),
                evaluate=lambda _: {"loss": 0.0},
                rule=SelectionRule(keep="last"),
                settings=settings,
                regularizers=regularizers,
            )

    def _plain_step(self, name: str, images: Tensor, *, bf16: bool = False, compiled: bool = False) -> float:
        """Seconds of a step of a loop that anybody would write, on images that lie on the device."""
        network = timm.create_model(name, num_classes=CLASSES, **image_size_of(name, images.shape[-1])).to(self.device)
        network = network.to(memory_format=torch.channels_last)
        run = torch.compile(network, mode="reduce-overhead") if compiled else network
        optimizer = torch.optim.AdamW(network.parameters(), 1e-4, fused=self.device == "cuda")
        labels, batch = torch.arange(len(images), device=self.device) % CLASSES, self.size.batch

        def step() -> None:
            rows = torch.randint(0, len(images), (batch,), device=self.device)
            shown = normalised(augmented(images[rows].float()))
            with torch.autocast(self.device, torch.bfloat16, enabled=bf16):
                loss = functional.cross_entropy(run(shown).float(), labels[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()

        for _ in range(min(5, self.size.steps)):
            step()
        return self._seconds(lambda: [step() for _ in range(self.size.steps)]) / self.size.steps

    def _second(self, job: Callable[[], object]) -> float:
        """Seconds of a second call."""
        job()
        return self._seconds(job)

    def _seconds(self, job: Callable[[], object]) -> float:
        self._wait()
        started = time.perf_counter()
        job()
        self._wait()
        return time.perf_counter() - started

    def _wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


def print_row(title: str, floor: float, ours: float | None = None, *, lower_is_better: bool = False) -> None:
    if ours is None:
        print(f"{title:44} {floor:16,.1f}")
    else:
        print(f"{title:44} {floor:16,.1f} {ours:16,.1f} {(floor / ours if lower_is_better else ours / floor):13.2f}")


def image_size_of(name: str, pixels: int) -> dict[str, int]:
    """What a transformer has to be told."""
    return {"img_size": pixels} if name.startswith("vit_") else {}


def normalised(images: Tensor) -> Tensor:
    mean, std = (torch.full((1, 3, 1, 1), value, device=images.device) for value in (114.0, 58.0))
    return ((images - mean) / std).contiguous(memory_format=torch.channels_last)


def augmented(images: Tensor) -> Tensor:
    """Flips and windows, drawn on the device."""
    count, device = len(images), images.device
    images = torch.where(torch.rand(count, 1, 1, 1, device=device) < 0.5, images.flip(3), images)
    maps = torch.eye(2, 3, device=device).repeat(count, 1, 1)
    maps[:, :, 2] = (torch.rand(count, 2, device=device) - 0.5) * 0.2
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)


def plain_look(network: nn.Module, images: Tensor, *, bf16: bool = False, batch: int = 256) -> None:
    network.to(memory_format=torch.channels_last if bf16 else torch.contiguous_format)
    with torch.inference_mode(), torch.autocast(images.device.type, torch.bfloat16, enabled=bf16):
        for part in images.split(batch):
            network(normalised(part.float()))


def decoded(pool: ThreadPoolExecutor | ProcessPoolExecutor, files: list[bytes], size: Size) -> list[np.ndarray]:
    return list(pool.map(decode, files, [size.pixels] * len(files), chunksize=32))


def decode(file: bytes, pixels: int) -> np.ndarray:
    side = pixels * 8 // 7
    image = Image.open(io.BytesIO(file)).convert("RGB").resize((side, side), Image.Resampling.BICUBIC, reducing_gap=None)
    edge = (side - pixels) // 2
    return np.asarray(image.crop((edge, edge, edge + pixels, edge + pixels)))


def write_images(folder: Path, size: Size) -> list[bytes]:
    """Blobs with noise, in a folder a class; gives the files."""
    with ThreadPoolExecutor(available_cores()) as pool:
        files = list(pool.map(lambda number: jpeg(number, size.side), range(size.images)))
    for number, file in enumerate(files):
        path = folder / f"class_{number % CLASSES}" / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file)
    return files


def jpeg(number: int, side: int) -> bytes:
    rng = np.random.default_rng(number)
    blobs = Image.fromarray(rng.integers(0, 255, (side // 8, side // 8, 3), dtype=np.uint8))
    pixels = np.asarray(blobs.resize((side, side), Image.Resampling.BICUBIC)).astype(int) + rng.integers(-12, 12, (side, side, 3))
    file = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(file, "jpeg", quality=90)
    return file.getvalue()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--smoke", action="store_true", help="a few small images, and no tests")
    return parser.parse_args()


if __name__ == "__main__":
    main()
