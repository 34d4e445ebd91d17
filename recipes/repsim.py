"""Fine-tuning without forgetting: accuracy against similarity on small medical sets, the numbers of docs/results/repsim.md.

    python recipes/repsim.py --data-dir datasets --weights-dir weights --out docs/results/repsim.md
    python recipes/repsim.py --only breastmnist --variants full linear repsim --seeds 0      # a piece of it
    python recipes/repsim.py --only none --out docs/results/repsim.md                        # the page alone
    python recipes/repsim.py --smoke                # an as-built network and noise; the numbers mean nothing

The environment variable CROSSGRAFT_DATA may name a folder that holds both, ``datasets`` and ``weights``. Each training ends as a
row of ``--rows`` (one table a set), and what is there with the same settings is not trained again, so the study can be done
in pieces, on several machines, and by two processes at once that work on different sets. Seed 0 of everything comes first.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from repsim_page import write_page
from studies import MEDICAL_TARGETS, SEEDS, SMOKE_TARGETS, Target, mobilenets, short, smoke_specs
from study_rows import CurveRow, Decided, most_probable, read_predictions, read_table
from study_trainings import (
    Rows,
    Training,
    data_of,
    do_all,
    read_arguments,
    seeds_of,
    settings_of,
    study_parser,
    tune,
    versions,
)

from crossgraft import interpolate
from crossgraft.compute import limit_threads
from crossgraft.models import ModelSpec
from crossgraft.runs.jobs import Job

ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
BATCH_NORMS = ("estimate", "mix")
VARIANTS: dict[str, dict[str, Any]] = {  # in the order in which they are trained
    "linear": {"method": "linear"},
    "full": {},
    "repsim": {"regularizer": "repsim"},
    "repsim, weight 10": {"regularizer": "repsim:10"},
    "repsim, weight 100": {"regularizer": "repsim:100"},
    "hcs 0.8": {"regularizer": "hcs:0.8"},
    "scratch": {"method": "scratch"},
    "l2_sp": {"regularizer": "l2_sp"},
    "hcs 0.6": {"regularizer": "hcs:0.6"},
    "hcs 0.4": {"regularizer": "hcs:0.4"},
    "hcs 0.2": {"regularizer": "hcs:0.2"},
    "repsim, Q fixed": {"regularizer": "repsim:learn_q=false"},
    "repsim, with μ": {"regularizer": "repsim:mean_weight=1"},
    "repsim, as printed": {"regularizer": "repsim:normalize=none"},
    "repsim, procrustes": {"regularizer": "repsim:mode=procrustes"},
}
LOOKED_AT_ONCE = ("repsim, weight 10", "repsim, weight 100")
"""With the first seed alone: does a larger weight do what the default does not?"""
BATCH_SIZES = (4, 32, 128)
ENDS = ("full", "linear")
"""They leave run directories, because the interpolated networks lie between them."""
ABLATED = ("full", "repsim")
"""Trained with other batch sizes, too: what the size does on its own, and what it does to the covariance."""
ABLATION_PLACE = ("breastmnist", "mobilenetv1_050")


def main(command_line: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(command_line)
    targets = SMOKE_TARGETS if arguments.smoke else MEDICAL_TARGETS
    failed = 0
    if arguments.only != ["none"]:
        specs = smoke_specs() if arguments.smoke else mobilenets(arguments.weights_dir)
        with limit_threads(arguments.threads):
            failed = do_all(jobs(targets, specs, arguments), RowsWithCurves(arguments))
    tables = {target.name: read_table(arguments.rows, target.name) for target in targets}
    if arguments.out is not None:
        write_page(arguments.out, tables, titles={t.name: t.title for t in targets}, wanted=wanted(targets, arguments))
    print(f"{sum(len(table.trainings) for table in tables.values())} trainings are there")
    if failed:
        raise SystemExit(f"{failed} trainings failed; the same command tries them again")


def jobs(targets: Sequence[Target], specs: Sequence[ModelSpec], arguments: argparse.Namespace) -> Iterator[Training]:
    """All that is asked for, the most informative first: seed by seed, variant by variant."""
    chosen = [target for target in targets if not arguments.only or target.name in arguments.only]
    for seed in seeds_of(arguments):
        for variant, options in variants().items():
            if arguments.variants and variant not in arguments.variants:
                continue
            if variant in LOOKED_AT_ONCE and seed != SEEDS[0]:
                continue
            for target in chosen:
                for spec in specs:
                    if "batch_size" not in options or arguments.smoke or is_ablated(target, spec):
                        yield Training(target, spec, variant, seed, options)


def variants() -> dict[str, dict[str, Any]]:
    """Those of the main comparison, then other batch sizes."""
    other = {f"{name}, b={size}": {**VARIANTS[name], "batch_size": size} for size in BATCH_SIZES for name in ABLATED}
    return {**VARIANTS, **other}


def is_ablated(target: Target, spec: ModelSpec) -> bool:
    return (target.name, short(spec)) == ABLATION_PLACE


def wanted(targets: Sequence[Target], arguments: argparse.Namespace) -> int:
    """Trainings of the whole study."""
    places = len(targets) * (1 if arguments.smoke else 2)
    seeds = len(seeds_of(arguments) if arguments.smoke else SEEDS)
    of_every_seed = len(VARIANTS) - len(LOOKED_AT_ONCE)
    return places * (seeds * of_every_seed + len(LOOKED_AT_ONCE)) + seeds * len(BATCH_SIZES) * len(ABLATED)


class RowsWithCurves(Rows):
    """Where FULL is done, also the curve from LINEAR to it."""

    def out_of(self, training: Training) -> Path | None:
        """Only the ends of curves leave run directories."""
        return run_of(training, self.arguments) if training.variant in ENDS else None

    def read_back(self, job: Job[Training]) -> bool | None:
        """Of FULL there may be a row without its curve, so that what it lacks is found while it is done."""
        return None if job.spec.variant == "full" else super().read_back(job)

    def do(self, job: Job[Training]) -> bool:
        """Make what is missing of row and curve."""
        if super().read_back(job) is None:
            super().do(job)
        if job.spec.variant == "full":
            make_curve(job.spec, self.arguments)
        return True


def run_of(job: Training, arguments: argparse.Namespace) -> Path:
    return arguments.results / job.target.name / f"{short(job.spec)}-{job.variant}-{job.seed}"


def make_curve(job: Training, arguments: argparse.Namespace) -> None:
    """Between LINEAR and FULL of this seed, with both ways to find the statistics of BatchNorm."""
    table = read_table(arguments.rows, job.target.name)
    settings = " ".join([settings_of(job, arguments), "alphas=" + ",".join(f"{alpha:g}" for alpha in ALPHAS)])
    if table.has_curve(short(job.spec), job.seed, settings):
        return
    ends = [job._replace(variant=name, options=VARIANTS[name]) for name in ENDS]
    for end in ends:
        tune(end, arguments, run_of(end, arguments))  # read back where its run directory is there
    rows: list[CurveRow] = []
    for batch_norm in BATCH_NORMS:
        rows += curve(ends, arguments, batch_norm, settings)
    read_table(arguments.rows, job.target.name).with_curve(rows).write(arguments.rows, job.target.name)
    print(f"{job.target.name} {short(job.spec)} curve, seed {job.seed}: {len(rows)} networks", flush=True)


def curve(ends: Sequence[Training], arguments: argparse.Namespace, batch_norm: Any, settings: str) -> list[CurveRow]:
    """Networks between two run directories."""
    full, linear = (run_of(end, arguments) for end in ends)
    truth = read_predictions(full / "predictions.csv")[1]
    decided: list[Decided] = []
    found = interpolate(
        full,
        data_of(ends[0], arguments),
        linear=linear,
        alphas=ALPHAS,
        batch_norm=batch_norm,
        allow_code=ends[0].spec.folder,
        device="cpu",
        workers=arguments.threads,
        on_point=lambda said: decided.append(most_probable(said.test_logits, truth)),
    )
    known = {"model": short(ends[0].spec), "seed": ends[0].seed, "settings": settings, "versions": versions()}
    return CurveRow.of_record(found.record, decided, **known)


def parse_arguments(command_line: Sequence[str] | None = None) -> argparse.Namespace:
    return read_arguments(study_parser(__doc__ or "", name="repsim", variants=variants()), command_line)


if __name__ == "__main__":
    main()
