"""Where networks lie after each method: sharpness, centre, planes, maps of attention, and what they still know."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from similarity_rows import GeometryRow, PointRow, add_rows, read_all
from studies import EXAMPLES, Target, noise, short, smoke_specs
from study_kept import BATCH, QUIET, part_of, probe_on
from study_trainings import Training, seeds_of, settings_of, tell_failure, tune
from study_vit import NATURAL_FILE, VIT, VIT_NAME, pretrained_vit

from crossgraft.data import Dataset, open_dataset
from crossgraft.geometry import (
    attention_map,
    attention_overlap,
    centre_quality,
    distances_to_centre,
    feature_map,
    interpolate,
    sharpness,
    tsne_maps,
)
from crossgraft.models import ModelSpec, read_zoo
from crossgraft.models.classifier import Classifier
from crossgraft.running.jobs import Job, Work, run_jobs
from crossgraft.similarity import both_linear_cka
from crossgraft.tune.engine.cached_features import features_of
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.saving.saved_model import load_saved_model

EPOCHS, VIT_EPOCHS = 10, 10
STEPS = 5
"""Of the second sharpness."""
ALPHA = 0.5
"""Of the free interpolation; fixed, so that nothing is picked."""
MOST_ATTENTION = 128
PROBE_ROWS = (1000, 500)
BATCH_NORM_NETWORK = "mobilenetv2_035"
METHODS: dict[str, dict[str, Any]] = {
    "linear": {"method": "linear"},
    "full": {},
    "repsim": {"regularizer": "repsim"},
    "l2_sp": {"regularizer": "l2_sp"},
}
FREE = "interpolated"
SHOWN = (*METHODS, FREE)


class Measuring(NamedTuple):
    """All networks of one set, start and seed."""

    target: Target
    spec: ModelSpec
    seed: int


def networks(arguments: argparse.Namespace) -> list[ModelSpec]:
    """A ViT with LayerNorm, and a network with BatchNorm."""
    wanted = arguments.networks or [VIT_NAME, BATCH_NORM_NETWORK]
    found = [pretrained_vit(arguments, "cifar10", VIT_EPOCHS)] if VIT_NAME in wanted else []
    if BATCH_NORM_NETWORK not in wanted:
        return found
    if arguments.smoke:
        return [*found, *smoke_specs()]
    zoo = read_zoo(EXAMPLES / "mobilenets.yaml", weights_dir=arguments.weights_dir, allow_code=EXAMPLES)
    return [*found, next(spec for spec in zoo if short(spec) == BATCH_NORM_NETWORK)]


def kept_jobs(chosen: Sequence[Target], arguments: argparse.Namespace) -> list[Measuring]:
    """Most informative first: every network and set once, then the other seeds."""
    specs = networks(arguments)
    return [Measuring(target, spec, seed) for seed in seeds_of(arguments) for spec in specs for target in chosen]


def measure_all(chosen: Sequence[Target], arguments: argparse.Namespace) -> int:
    """All networks of each set, start and seed; the number of pieces that failed."""
    jobs = [
        Job(
            f"{each.target.name} {short(each.spec)} geometry, seed {each.seed}",
            each,
            " ".join([settings_of(training_of(each, "full"), arguments), f"steps={STEPS} alpha={ALPHA:g}"]),
        )
        for each in kept_jobs(chosen, arguments)
    ]
    outcomes = run_jobs(jobs, Geometry(arguments), keep_going=True, told=tell_failure)
    return sum(bool(outcome.reason) for outcome in outcomes)


def training_of(job: Measuring, method: str) -> Training:
    of_side = {"image_size": VIT["img_size"]} if short(job.spec) == VIT_NAME else {}
    return Training(job.target, job.spec, method, job.seed, {**METHODS[method], **of_side, "epochs": EPOCHS})


def run_of(training: Training, arguments: argparse.Namespace) -> Path:
    return arguments.results / training.target.name / f"{short(training.spec)}-{training.variant}-{training.seed}"


class Geometry(Work[Measuring, bool]):
    """Trains what is missing, and measures; rows stay."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments

    def read_back(self, job: Job[Measuring]) -> bool | None:
        """Is there a row of every method with the same settings?"""
        rows = read_all(self.arguments.rows, job.spec.target.name, GeometryRow)
        there = {
            row.variant for row in rows if (row.model, row.seed, row.settings) == (short(job.spec.spec), job.spec.seed, job.key)
        }
        return there >= set(SHOWN) or None

    def do(self, job: Job[Measuring]) -> bool:
        """Make the rows."""
        images, trained = Images.of(job.spec, self.arguments), trained_networks(job.spec, self.arguments)
        found = with_free(trained, images)
        rows, points = measured(job.spec, found, images, self.arguments, job.key)
        add_rows(self.arguments.rows, job.spec.target.name, rows)
        if points:
            add_rows(self.arguments.rows, job.spec.target.name, points)
        print(f"{job.name}: {len(rows)} networks", flush=True)
        return True


class Images(NamedTuple):
    """What networks of one set and seed are looked at with."""

    train: Dataset
    test: Dataset
    natural: Dataset | None

    @classmethod
    def of(cls, job: Measuring, arguments: argparse.Namespace) -> Images:
        """The parts that the trainings had."""
        if arguments.smoke:
            made = noise(job.target.name)
            return cls(made.take(np.arange(40)), made.take(np.arange(40, 60)), None)
        file, options = arguments.data_dir / job.target.file, job.target.options
        opened = open_dataset(file, use_split=None, default_split=True, seed=job.seed, reporter=QUIET, **options)
        parts = [np.flatnonzero(np.asarray(opened.splits) == name) for name in ("train", "test")]
        train, test = (opened.take(rows) for rows in parts)
        return cls(train, test, part_of(arguments.data_dir / NATURAL_FILE, "test", MOST_ATTENTION))


def trained_networks(job: Measuring, arguments: argparse.Namespace) -> dict[str, Classifier]:
    """By method; trained where their run directories are not there."""
    found: dict[str, Classifier] = {}
    for method in METHODS:
        training = training_of(job, method)
        run = run_of(training, arguments)
        tune(training, arguments, run)
        found[method] = load_saved_model(run, allow_code=EXAMPLES).classifier
    return found


def with_free(found: Mapping[str, Classifier], images: Images) -> dict[str, Classifier]:
    """The same, and the network in the middle between LINEAR and FULL."""
    return {**found, FREE: interpolate(found["linear"], found["full"], ALPHA, images=images.train)}


def measured(
    job: Measuring, found: Mapping[str, Classifier], images: Images, arguments: argparse.Namespace, settings: str
) -> tuple[list[GeometryRow], list[PointRow]]:
    """A row of each network, and points of the first seed."""
    features = {name: features_on(images.test, network) for name, network in found.items()}
    columns: dict[str, dict[str, float | None]] = {name: {} for name in found}
    weights = distances_to_centre(found, start=found["linear"]).to_start
    plane = feature_map(features, reference="linear").networks
    common = np.flatnonzero(images.test.targets == np.bincount(images.test.targets).argmax())
    drawn = dict.fromkeys(found) if len(common) < 12 else tsne_maps(
        {name: each[common] for name, each in features.items()}, seed=job.seed
    )  # fmt: skip
    for name, network in found.items():
        climb, far = (sharpness(network, images.test, steps=steps, batch_size=BATCH) for steps in (1, STEPS))
        logits = network_logits(network, features[name])
        columns[name] = {
            "accuracy": float((logits.argmax(axis=1) == images.test.targets).mean()),
            "loss": climb.loss,
            "one_step": climb.value,
            "many_steps": max(climb.value, far.value),
            "gradient": climb.gradient_norm,
            "cka_debiased": float(both_linear_cka(features["linear"], features[name]).debiased),
            "to_start": weights[name].l2,
            "distance": plane[name].relative_distance,
            "overlap": plane[name].overlap,
        }
        if drawn[name] is not None:
            columns[name] |= {key: getattr(drawn[name], key) for key in ("gap", "drawn_gap", "trustworthiness")}
        if images.natural is not None:
            probe = probe_on(arguments.data_dir / NATURAL_FILE, *PROBE_ROWS)
            columns[name]["probe_natural"] = probe.accuracy(network)
    if short(job.spec) == VIT_NAME:
        for key, seen in (("attention", images.test), ("source_attention", images.natural)):
            for name, value in attention(found, seen).items():
                columns[name][key] = value
    known = {"model": short(job.spec), "seed": job.seed, "settings": settings}
    rows = [
        GeometryRow(variant=name, **known, **{key: _rounded(value) for key, value in each.items()})
        for name, each in columns.items()
    ]
    points = [
        PointRow(model=short(job.spec), variant=name, kind=kind, image=int(image), x=round(float(x), 4), y=round(float(y), 4))
        for kind, maps, images_of in (("pca", plane, np.arange(len(images.test))), ("tsne", drawn, common))
        for name, each in maps.items()
        if job.seed == 0 and each is not None and each.points is not None
        for image, (x, y) in zip(images_of, each.points, strict=True)
    ]
    return rows, points


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def features_on(images: Dataset, network: Classifier) -> np.ndarray:
    """Penultimate features (n, d)."""
    return features_of(network, TrainingImages(images, network.preprocessing), batch_size=BATCH, device="cpu").numpy()


def network_logits(network: Classifier, features: np.ndarray) -> np.ndarray:
    """What the head says of penultimate features."""
    with torch.no_grad():
        return network.head(torch.from_numpy(features)).numpy()


def attention(found: Mapping[str, Classifier], images: Dataset | None) -> dict[str, float]:
    """How much of what the pretrained network looks at each network looks at."""
    if images is None:
        return {}
    shown = images.take(np.linspace(0, len(images) - 1, min(MOST_ATTENTION, len(images))).round().astype(int))
    maps = {name: attention_map(network, shown) for name, network in found.items()}
    return {name: float(attention_overlap(maps["linear"], each).mean()) for name, each in maps.items()}


def measure_centres(targets: Sequence[Target], arguments: argparse.Namespace) -> None:
    """Distance to the mean of the runs on all sets, where all are there; the columns of finished rows."""
    for spec in networks(arguments):
        for seed in seeds_of(arguments):
            jobs = [Measuring(target, spec, seed) for target in targets]
            if len(jobs) > 1 and all(_lacks_centre(job, arguments) for job in jobs):
                _measure_centre(jobs, arguments)


def _rows_of(job: Measuring, arguments: argparse.Namespace) -> dict[str, GeometryRow]:
    rows = read_all(arguments.rows, job.target.name, GeometryRow)
    return {row.variant: row for row in rows if (row.model, row.seed) == (short(job.spec), job.seed)}


def _lacks_centre(job: Measuring, arguments: argparse.Namespace) -> bool:
    rows = _rows_of(job, arguments)
    return set(rows) >= set(SHOWN) and all(row.to_centre is None for row in rows.values())


def _measure_centre(jobs: Sequence[Measuring], arguments: argparse.Namespace) -> None:
    images = {job.target.name: Images.of(job, arguments) for job in jobs}
    found = {job.target.name: with_free(trained_networks(job, arguments), images[job.target.name]) for job in jobs}
    for variant in SHOWN:
        runs = {name: networks[variant] for name, networks in found.items()}
        distances = distances_to_centre(runs).to_centre
        quality = centre_quality(
            runs, {name: each.test for name, each in images.items()}, train={name: each.train for name, each in images.items()}
        )
        for job in jobs:
            name = job.target.name
            row = _rows_of(job, arguments)[variant]
            change = float(quality[name].accuracy_change.value)
            more = {"to_centre": distances[name].l2, "accuracy_at_centre": (row.accuracy or 0) + change}
            add_rows(arguments.rows, name, [replace(row, **{key: _rounded(each) for key, each in more.items()})])
    print(f"{short(jobs[0].spec)} centre, seed {jobs[0].seed}", flush=True)
