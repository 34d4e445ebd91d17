"""What fine-tuning changed, and what keeping features buys: chapter 3 of the thesis and RepSim; docs/results/similarity.md.

    python recipes/similarity.py --data-dir datasets --weights-dir weights --out docs/results/similarity.md
    python recipes/similarity.py --only breastmnist --parts change     # a piece
    python recipes/similarity.py --only none --out docs/results/similarity.md      # the page alone
    python recipes/similarity.py --smoke --rows ROWS        # as-built networks and noise; the numbers mean nothing

The environment variable CROSSGRAFT_DATA may name a folder that holds both, ``datasets`` and ``weights``. Part ``change``
fine-tunes one architecture from three sources and compares what comes of them; part ``kept`` looks at weights, features and
maps of what several methods made of two networks. Everything ends as a row of ``--rows``, and what is there with the same
settings is not done again, so the study can be done in pieces, and by two processes at once that work on different sets.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from similarity_classes import all_there, classes_rows
from similarity_kept import BATCH_NORM_NETWORK, Images, Measuring, measure_all, measure_centres
from similarity_page import write_page
from similarity_rows import ClassesRow, LayerRow, MistakesRow, add_rows, layer_rows, mistakes_row, read_all
from similarity_sets import RANDOM, TARGETS, sources
from studies import SMOKE_TARGETS, Target, short
from study_rows import KeptRow, read_predictions, read_table
from study_trainings import (
    Rows,
    Training,
    data_of,
    do_all,
    read_arguments,
    seeds_of,
    settings_of,
    study_parser,
    tell_failure,
    tune,
)
from study_vit import VIT_NAME

from crossgraft import compare_models
from crossgraft.compute import limit_threads
from crossgraft.models import ModelSpec
from crossgraft.progress import Reporter
from crossgraft.running.jobs import Job, Work, run_jobs
from crossgraft.similarity import prediction_similarity
from crossgraft.tune import FineTuningResult

PARTS = ("change", "kept")
COMMON = {"epochs": 15, "patience": 6, "batch_size": 64, "select_by": "loss", "augmentation": "thesis"}
"""The epoch with the lowest loss on val, early stopping and augmentation are those of the thesis; steps are fewer."""
VARIANTS: dict[str, dict[str, Any]] = {
    "scratch": {**COMMON, "method": "scratch"},
    "full": COMMON,
    "head-first": {**COMMON, "head_first": True},
    "linear": {"epochs": 50, "patience": 10, "batch_size": 64, "select_by": "loss", "method": "linear"},
}
COMPARED = ("full", "head-first")
"""Their layers are compared; LINEAR leaves them as they were."""


class Comparing(NamedTuple):
    """Two fine-tuned networks of one seed, or one and a network without weights."""

    target: Target
    variant: str
    seed: int
    first: ModelSpec
    second: ModelSpec


def main(command_line: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(command_line)
    targets = SMOKE_TARGETS if arguments.smoke else TARGETS
    chosen = [target for target in targets if not arguments.only or target.name in arguments.only]
    failed = 0
    with limit_threads(arguments.threads):
        if "change" in arguments.parts:
            for target in chosen:
                for seed in seeds_of(arguments):
                    failed += change(target, seed, arguments)
        if "kept" in arguments.parts and chosen:
            failed += measure_all(chosen, within(arguments, "kept"))
            measure_centres(targets, within(arguments, "kept"))
    if arguments.out is not None:
        write_page(arguments.out, arguments.rows, targets, seeds=len(seeds_of(arguments)))
    if failed:
        raise SystemExit(f"{failed} pieces failed; the same command tries them again")


def within(arguments: argparse.Namespace, folder: str) -> argparse.Namespace:
    """The same with tables and run directories in a folder of their own."""
    of_part = {"rows": arguments.rows / folder, "results": arguments.results / folder}
    return argparse.Namespace(**{**vars(arguments), **of_part})


def change(target: Target, seed: int, arguments: argparse.Namespace) -> int:
    """All trainings of a seed, then all comparisons of them; the number of pieces that failed."""
    specs = sources(arguments)
    failed = do_all(list(trainings(target, seed, specs, arguments)), ChangeRows(arguments))
    jobs = [
        Job(in_words(each), each, f"{settings_of(training_of(each, each.first), arguments)} comparison")
        for each in comparings(target, seed, specs, arguments)
    ]
    if not arguments.variants or {"full", "linear"} <= set(arguments.variants):
        measure_classes(target, seed, specs, arguments)
    return failed + sum(
        bool(outcome.reason) for outcome in run_jobs(jobs, Comparisons(arguments), keep_going=True, told=tell_failure)
    )


def measure_classes(target: Target, seed: int, specs: Sequence[ModelSpec], arguments: argparse.Namespace) -> None:
    """How much of the similarity is what tells classes apart, where all trainings of the seed are there."""
    names = [short(spec) for spec in specs]
    if all_there(read_all(arguments.rows, target.name, ClassesRow), seed, names):
        return
    runs = {
        when: {short(spec): run_of(Training(target, spec, variant, seed, VARIANTS[variant]), arguments) for spec in specs}
        for when, variant in (("before", "linear"), ("full", "full"))
    }
    if all((run / "run.json").is_file() for folders in runs.values() for run in folders.values()):
        images = Images.of(Measuring(target, specs[0], seed), arguments)
        add_rows(arguments.rows, target.name, classes_rows(runs, images.test, seed=seed))


def trainings(target: Target, seed: int, specs: Sequence[ModelSpec], arguments: argparse.Namespace) -> Iterator[Training]:
    """Of one seed; without weights the source does not matter, so that is trained once."""
    for variant, options in VARIANTS.items():
        if arguments.variants and variant not in arguments.variants:
            continue
        for spec in specs[:1] if variant == "scratch" else specs:
            named = replace(spec, name=RANDOM) if variant == "scratch" else spec
            yield Training(target, named, variant, seed, options)


def comparings(target: Target, seed: int, specs: Sequence[ModelSpec], arguments: argparse.Namespace) -> Iterator[Comparing]:
    """Every two sources by every method, and each source beside a network without weights."""
    for variant in ("full", "head-first", "linear"):
        if not arguments.variants or variant in arguments.variants:
            for first, second in combinations(specs, 2):
                yield Comparing(target, variant, seed, first, second)
    if not arguments.variants or "full" in arguments.variants:
        without = replace(specs[0], name=RANDOM, weights="random")
        for spec in specs:
            yield Comparing(target, "full", seed, spec, without)


def in_words(job: Comparing) -> str:
    return f"{job.target.name} {short(job.first)} and {short(job.second)} {job.variant}, seed {job.seed}"


def training_of(job: Comparing, spec: ModelSpec) -> Training:
    return Training(job.target, spec, job.variant, job.seed, VARIANTS[job.variant])


def run_of(training: Training, arguments: argparse.Namespace) -> Path:
    return arguments.results / training.target.name / f"{short(training.spec)}-{training.variant}-{training.seed}"


class ChangeRows(Rows):
    """Rows of trainings whose networks stay, because they are compared."""

    def out_of(self, training: Training) -> Path | None:
        """A run directory of its own."""
        return run_of(training, self.arguments)

    def also(self, training: Training, tuned: FineTuningResult) -> None:
        """What statistics of BatchNorm do on their own."""
        rows, name = self.arguments.rows, training.target.name
        found = {
            key: round(value, 5)
            for key in ("cka_adapted", "cka_debiased_adapted", "cka_debiased_untouched")
            if (value := tuned.record.similarity.get(key)) is not None
        }
        row = KeptRow(model=short(training.spec), variant=training.variant, seed=training.seed, **found)
        read_table(rows, name).with_kept(row).write(rows, name)


class Comparisons(Work[Comparing, bool]):
    """Compares; rows stay."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments

    def read_back(self, job: Job[Comparing]) -> bool | None:
        """Is there a row of this comparison with the same settings?"""
        kind = MistakesRow if short(job.spec.second) != RANDOM else LayerRow
        wanted = job.spec.variant, job.spec.seed, short(job.spec.first), short(job.spec.second)
        rows = read_all(self.arguments.rows, job.spec.target.name, kind)
        return any((*row.key[:4],) == wanted and row.settings == job.key for row in rows) or None

    def do(self, job: Job[Comparing]) -> bool:
        """Make the rows."""
        rows, name = self.arguments.rows, job.spec.target.name
        layers, mistakes = compare(job.spec, self.arguments, job.key)
        if layers:
            add_rows(rows, name, layers)
        if mistakes:
            add_rows(rows, name, mistakes)
        print(f"{job.name}: {len(layers)} layers", flush=True)
        return True


def compare(job: Comparing, arguments: argparse.Namespace, settings: str) -> tuple[list[LayerRow], list[MistakesRow]]:
    """Rows of two networks."""
    training = training_of(job, job.first)
    runs = [training._replace(spec=spec) for spec in (job.first, job.second) if short(spec) != RANDOM]
    folders = [run_of(each, arguments) for each in runs]
    for each, folder in zip(runs, folders, strict=True):
        tune(each, arguments, folder)  # read back where it is there
    known: dict[str, Any] = {"seed": job.seed, "first": short(job.first), "second": short(job.second), "settings": settings}
    known["variant"] = job.variant
    if job.variant == "linear":
        return [], [same_mistakes(folders, **known)]
    compared = [*folders, job.second][:2]
    found = compare_models(
        *compared,
        data=data_of(training, arguments),
        before=[job.first, job.second],
        linear_probe=True,
        geometry="none",
        image_size=None if arguments.smoke else 64,
        weights_dir=arguments.weights_dir,
        allow_code=job.first.folder,
        seed=job.seed,
        ledger=False,
        device="cpu",
        workers=arguments.threads,
        reporter=Reporter(quiet=True),
    ).record
    names = {
        f"{label}{ending}": short(spec)
        for label, spec in zip("AB", (job.first, job.second), strict=True)
        for ending in ("", " before")
    }
    mistakes = [
        mistakes_row(pair.mistakes, **known | ({"variant": "before", "settings": ""} if pair.of == "before" else {}))
        for pair in found.pairs
        if pair.of != "change" and pair.mistakes is not None and short(job.second) != RANDOM
    ]
    return layer_rows(found, names, variant=job.variant, seed=job.seed, settings=settings), mistakes


def same_mistakes(folders: Sequence[Path], **known: Any) -> MistakesRow:
    """Of the most probable classes that two runs wrote down."""
    (one, truth), (other, same) = (read_predictions(folder / "predictions.csv") for folder in folders)
    if not np.array_equal(truth, same):
        raise ValueError("the runs have other test images")
    found = prediction_similarity(one.argmax(axis=1), other.argmax(axis=1), truth)
    return MistakesRow(
        num_images=found.n,
        value=round(float(found), 5),
        accuracy=round(found.accuracy_a, 5),
        other_accuracy=round(found.accuracy_b, 5),
        independent=round(found.independent, 5),
        independent_low=round(found.low, 5),
        independent_high=round(found.high, 5),
        p_value=round(found.p_value, 5),
        kappa=None if found.kappa is None else round(found.kappa, 5),
        **known,
    )


def parse_arguments(command_line: Sequence[str] | None = None) -> argparse.Namespace:
    parser = study_parser(__doc__ or "", name="similarity", variants=VARIANTS, targets=TARGETS)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="these parts only")
    parser.add_argument("--networks", nargs="+", choices=[VIT_NAME, BATCH_NORM_NETWORK], help="of kept: these only")
    return read_arguments(parser, command_line)


if __name__ == "__main__":
    main()
