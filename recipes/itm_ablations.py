"""What do the parts of ITM do? Table 2, Figures 4 and 5 of its paper on real features and the trained table; docs/results/itm.md.

    python recipes/itm_ablations.py --data-dir datasets --weights-dir weights --out docs/results/itm.md
    python recipes/itm_ablations.py --only none --out docs/results/itm.md   # the page alone
    python recipes/itm_ablations.py --smoke --rows rows --work work --out page.md   # noise; the numbers mean nothing

It needs the rows of recipes/ground_truth.py, and takes every set on which all networks are trained with the first seed. Scores
of a set are written once all of them are there; the same command goes on where it was stopped. About three minutes of one core
per set.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from data_folders import add_folders, check_folders
from ground_truth import fitting, zoo
from ground_truth_rows import read_cells, trained
from ground_truth_scores import features_of, training_part
from ground_truth_sets import SETS, SMOKE_SETS, TargetSet
from ground_truth_table import ROWS, networks_of
from itm_ablations_page import (
    BASE,
    CENTRES,
    ScoreRow,
    Variant,
    batch_variants,
    centre_variants,
    read_scores,
    table_variants,
    write_page,
    write_scores,
)
from studies import smoke_specs
from study_trainings import RESULTS

from crossgraft.compute import limit_threads
from crossgraft.data import Dataset
from crossgraft.models import ModelSpec
from crossgraft.scores import adaptive_etas, itm, itm_dispersion

SEEDS = (0, 1, 2)
"""Of the split of the images, the head and the centres."""


def main(command_line: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(command_line)
    targets = SMOKE_SETS if arguments.smoke else SETS
    if arguments.only != ["none"]:
        specs = smoke_specs() if arguments.smoke else zoo(arguments.weights_dir)
        with limit_threads(1):
            for target in targets:
                if (not arguments.only or target.name in arguments.only) and is_trained(target, arguments):
                    measure(target, fitting(target, specs), arguments)
    if arguments.out is not None:
        write_page(arguments.out, arguments.rows, arguments.truth, targets)


def is_trained(target: TargetSet, arguments: argparse.Namespace) -> bool:
    """Is there a result of every network?"""
    return arguments.smoke or len(trained(read_cells(arguments.truth, target.name), "auc")) == networks_of(target)


def measure(target: TargetSet, specs: Sequence[ModelSpec], arguments: argparse.Namespace) -> None:
    """All variants on one set, unless they are there."""
    if read_scores(arguments.rows, target.name):
        return
    began = time.process_time()
    train = training_part(target, arguments.data_dir)
    features = {spec.name: np.asarray(features_of(train, spec, arguments).features) for spec in specs}
    variants = list(dict.fromkeys([*table_variants(), *batch_variants(), *centre_variants()]))
    if arguments.smoke:
        variants = [replace(BASE, iterations=100)]
    rows = list(scores(features, train, variants))
    write_scores(arguments.rows, target.name, rows)
    print(f"{target.title}: {len(rows)} scores, {time.process_time() - began:.0f} CPU seconds", flush=True)


def scores(features: Mapping[str, np.ndarray], train: Dataset, variants: Sequence[Variant]) -> Iterator[ScoreRow]:
    """Every variant, network and seed; η follows from all networks of the set, as in the paper from standardised features."""
    etas = dict(zip(features, adaptive_etas([itm_dispersion(x, train.targets) for x in features.values()]), strict=True))
    for variant in variants:
        for name, x in features.items():
            for seed in SEEDS:
                eta = etas[name] if variant.adaptive else 0.5
                began = time.process_time()
                found = itm(
                    features=x,
                    labels=train.targets,
                    groups=train.groups,
                    eta=eta,
                    standardize=bool(variant.standardized),
                    iterations=variant.iterations,
                    batch_size=variant.batch_size,
                    centres=CENTRES[variant.centres],
                    seed=seed,
                )
                seconds = time.process_time() - began
                yield ScoreRow(**vars(variant), model=name, seed=seed, score=float(found), eta=eta, cpu_seconds=seconds)


def parse_arguments(command_line: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_folders(parser)
    parser.add_argument("--rows", type=Path, default=RESULTS / "itm", help="tables of scores")
    parser.add_argument("--truth", type=Path, default=ROWS, help="rows of recipes/ground_truth.py")
    parser.add_argument("--work", type=Path, default=Path("runs") / "ground_truth", help="features")
    parser.add_argument("--out", type=Path, help="the page to write")
    names = [target.name for target in SETS]
    parser.add_argument("--only", nargs="+", choices=[*names, "none"], help="these sets; none: write the page only")
    parser.add_argument("--smoke", action="store_true", help="noise; the numbers mean nothing")
    parsed = parser.parse_args(command_line)
    if parsed.only != ["none"]:
        check_folders(parser, parsed)
    if parsed.smoke and parsed.rows == parser.get_default("rows"):
        parser.error("--smoke needs another --rows than the tables of the study")
    return parsed


if __name__ == "__main__":
    main()
