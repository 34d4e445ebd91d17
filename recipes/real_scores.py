"""Every score for seventeen real checkpoints on six medical sets: the numbers of docs/results/real-scores.md.

    python recipes/real_scores.py --data-dir datasets --weights-dir weights --out docs/results/real-scores.md
    python recipes/real_scores.py --smoke           # as-built networks and noise; the numbers mean nothing

The environment variable CROSSGRAFT_DATA may name a folder that holds both, ``datasets`` and ``weights``. What is finished
is kept in ``--results``, so a run that was stopped goes on where it was; ``--only`` measures some of the sets, and the page
is written of all that are there.

Scores of arrays go through ``rank_models``, with controls and intervals. Gradient ratio and NCA × gradient need a backward
pass of every image: 26 rounds of that would take hours, so they are evaluated once on each model and have no interval.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from data_folders import add_folders, check_folders, unpack
from real_scores_page import GRADIENT_SCORES, Measured, write_page

from crossgraft import rank_models
from crossgraft.compute import limit_threads
from crossgraft.data import open_dataset
from crossgraft.data.dataset import Dataset, dataset_from_arrays
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import NotApplicable
from crossgraft.features import extract_features
from crossgraft.models import ModelSpec, load_backbone, read_zoo
from crossgraft.progress import Reporter
from crossgraft.scores import SCORES, ScoreInputs
from crossgraft.seeding import generator

EXAMPLES = Path(__file__).parents[1] / "examples" / "own_models"
ZOOS = ("mobilenets.yaml", "small_networks.yaml")
SMOKE_MODELS = ("resnet20 · CIFAR-10", "conv4 · Omniglot", "pneumonia_cnn · PneumoniaMNIST")


class Target(NamedTuple):
    """One labelled set, and what is said about it."""

    name: str
    title: str
    file: str
    inside: str = ""
    options: dict[str, str] = {}  # noqa: RUF012 (never written to)
    left_out: str = ""
    note: str = ""


TARGETS = (
    Target("breastmnist", "BreastMNIST", "breastmnist.npz"),
    Target("retinamnist", "RetinaMNIST", "retinamnist.npz"),
    Target(
        "pneumoniamnist",
        "PneumoniaMNIST",
        "pneumoniamnist.npz",
        left_out="pneumonia_cnn · PneumoniaMNIST",
        note="Without the pneumonia CNN, which was trained on these very images.",
    ),
    Target("brain_mri", "Brain MRI", "brain_mri_tumor_yes_no_253.tar.gz"),
    Target(
        "ham10000",
        "HAM10000 (subset)",
        "ham10000_subset_jpg200x150.tar",
        inside="ham10000_subset/metadata.csv",
        options={"group_column": "lesion_id", "image_root": "ham10000_subset/images"},
    ),
    Target("medical_mnist", "Medical MNIST", "medical_mnist_6x400_gray64.npz"),
)
SMOKE_TARGETS = (Target("noise", "Noise", ""), Target("more_noise", "More noise", ""))


def main(command_line: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(command_line)
    targets = SMOKE_TARGETS if arguments.smoke else TARGETS
    arguments.results.mkdir(parents=True, exist_ok=True)
    with limit_threads(1):
        specs = as_built_specs() if arguments.smoke else real_specs(arguments.weights_dir, arguments.side)
        for target in targets:
            if not arguments.only or target.name in arguments.only:
                measure(target, specs, arguments)
    found = [Measured.read(arguments.results, target.name, target.title, target.note, side=arguments.side) for target in targets]
    finished = [measured for measured in found if measured is not None]
    if arguments.out is not None:
        missing = [target.title for target, measured in zip(targets, found, strict=True) if measured is None]
        write_page(arguments.out, finished, side=arguments.side, missing=missing)
    print(f"{len(finished)} of {len(targets)} sets are measured")


def real_specs(weights_dir: Path, side: int) -> list[ModelSpec]:
    """Both example zoos; networks that want larger images get ``side`` pixels."""
    specs = [spec for zoo in ZOOS for spec in read_zoo(EXAMPLES / zoo, weights_dir=weights_dir, allow_code=EXAMPLES)]
    return [reduced(spec, load_backbone(spec, weights_dir=weights_dir).preprocessing.height_pixels, side) for spec in specs]


def reduced(spec: ModelSpec, height: int, side: int) -> ModelSpec:
    return replace(spec, preprocessing={**spec.preprocessing, "input_size": side}) if height > side else spec


def as_built_specs() -> list[ModelSpec]:
    """Small networks without any file, as their factories build them."""
    said = {"input_size": [3, 32, 32], "mean": [0.5] * 3, "std": [0.5] * 3}
    grey = {"input_size": [1, 28, 28], "mean": [0.5], "std": [0.5]}
    specs = [
        ModelSpec("resnet20 · CIFAR-10", "cifar_resnet:resnet20", preprocessing=said, folder=EXAMPLES),
        ModelSpec("conv4 · Omniglot", "conv4:conv4", kwargs={"in_chans": 1}, preprocessing=grey, folder=EXAMPLES),
        ModelSpec("pneumonia_cnn · PneumoniaMNIST", "pneumonia_cnn:pneumonia_cnn", preprocessing=said, folder=EXAMPLES),
    ]
    return read_zoo(specs)


def open_target(target: Target, arguments: argparse.Namespace) -> Dataset:
    """The train split where there is one, at most ``--limit`` images with the class shares kept."""
    if arguments.smoke:
        rng = generator(0, target.name)
        images = rng.integers(0, 256, (arguments.limit, 28, 28), dtype=np.uint8)
        return dataset_from_arrays(images, np.arange(arguments.limit) % 2, name=target.name)
    path = arguments.data_dir / target.file
    options = dict(target.options)
    if ".tar" in target.file:
        folder = unpack(path, arguments.results / "unpacked" / target.name)
        path = folder / target.inside
        if "image_root" in options:
            options["image_root"] = str(folder / options["image_root"])
    return open_dataset(path, use_split="train", limit=arguments.limit, **options)


def measure(target: Target, specs: Sequence[ModelSpec], arguments: argparse.Namespace) -> None:
    """All scores on one set, unless they are there already for these images and settings."""
    kept = [spec for spec in specs if spec.name != target.left_out]
    dataset = open_target(target, arguments)
    facts = {"images": dataset.fingerprint, "models": [spec.describe() for spec in kept], "scores": SCORES.names()}
    file = arguments.results / f"{target.name}.json"
    state = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    is_new = state.get("facts") != facts
    if is_new:
        state = {"facts": facts, "cpu_seconds": 0.0, "wall_seconds": 0.0, "gradients": {}}
        keep(file, state)
    if state.get("finished"):
        return
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        rank(dataset, kept, arguments, out=arguments.results / target.name, overwrite=is_new)
        for spec in kept:
            if spec.name not in state["gradients"]:
                state["gradients"][spec.name] = gradient_parts(dataset, spec, arguments)
        state["finished"] = True
    finally:
        state["cpu_seconds"] += time.process_time() - cpu
        state["wall_seconds"] += time.perf_counter() - wall
        keep(file, state)
    print(f"{target.title}: {state['cpu_seconds']:.0f} CPU seconds, {state['wall_seconds']:.0f} s", flush=True)


def keep(file: Path, state: dict[str, object]) -> None:
    file.write_text(json.dumps(state, ensure_ascii=False), encoding="utf-8")


def rank(dataset: Dataset, specs: Sequence[ModelSpec], arguments: argparse.Namespace, *, out: Path, overwrite: bool) -> None:
    """Scores of arrays with controls and intervals; a run that was stopped goes on in ``out``."""
    rank_models(
        dataset,
        models=specs,
        scores=[name for name in SCORES.names() if name not in GRADIENT_SCORES],
        weights_dir=arguments.weights_dir,
        workers=1,
        device="cpu",
        cache_dir=arguments.results / "features",
        out=out,
        overwrite=overwrite,
        reporter=Reporter(quiet=arguments.smoke),
    )


def gradient_parts(dataset: Dataset, spec: ModelSpec, arguments: argparse.Namespace) -> dict[str, object]:
    """NCA score and gradient ratio of one model, and the seconds that they took; or why there are none."""
    backbone = load_backbone(spec, weights_dir=arguments.weights_dir)
    features = extract_features(dataset, backbone, cache_dir=arguments.results / "features", num_threads=1).features
    images = prepare_batch([dataset.read(row) for row in range(len(dataset))], backbone.preprocessing)
    inputs = ScoreInputs(features=features, labels=dataset.targets, model=backbone, images=images)
    score = SCORES.get("nca_gradient")
    start = time.perf_counter()
    try:
        parts = score.parts(inputs, seed=0)
    except NotApplicable as answer:
        return {"reason": answer.reason}
    return {"parts": parts, "seconds": time.perf_counter() - start}


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_folders(parser)
    parser.add_argument("--results", type=Path, default=Path("runs") / "real-scores", help="what is finished is kept here")
    parser.add_argument("--out", type=Path, help="the page to write")
    names = [target.name for target in TARGETS]
    parser.add_argument("--only", nargs="+", choices=[*names, "none"], help="measure these sets; none: write the page only")
    parser.add_argument("--limit", type=int, help="images of each set [default: 300; with --smoke 40]")
    parser.add_argument("--side", type=int, default=128, help="pixels of models that want more")
    parser.add_argument("--smoke", action="store_true", help="as-built networks and noise; the numbers mean nothing")
    parsed = parser.parse_args(arguments)
    parsed.limit = parsed.limit or (40 if parsed.smoke else 300)
    check_folders(parser, parsed)
    return parsed


if __name__ == "__main__":
    main()
