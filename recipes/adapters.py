"""LoRA, AdaptFormer and the last three blocks, each with and without RepSim: the numbers of docs/results/adapters.md.

    python recipes/adapters.py --data-dir datasets --weights-dir weights --out docs/results/adapters.md
    python recipes/adapters.py --only breastmnist --variants lora "lora + repsim" --seeds 0   # a piece of it
    python recipes/adapters.py --only none --out docs/results/adapters.md                     # the page alone
    python recipes/adapters.py --smoke              # as-built networks and noise; the numbers mean nothing

The environment variable CROSSGRAFT_DATA may name a folder that holds both, ``datasets`` and ``weights``. First a small ViT is
trained on natural images, once (its run directory stays under ``--results``), because no ViT is small enough to be fine-tuned
on a CPU this often. Each training ends as a row of ``--rows``, and what is there with the same settings is not trained again.
Once the ViT is there, several processes can work on different sets at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from adapters_page import PRETRAINING, write_page
from studies import MEDICAL_TARGETS, SEEDS, SMOKE_TARGETS, Target, mobilenets, short, smoke_specs
from study_rows import read_table
from study_trainings import RESULTS, Rows, Training, do_all, read_arguments, seeds_of, study_parser
from study_vit import VIT, VIT_NAME, pretrained_vit

from crossgraft.compute import limit_threads
from crossgraft.models import ModelSpec

REPSIM = "repsim:reference=dataset"
"""Covariances of all training images; what ``repsim`` says on its own came later."""
METHODS = {"lora": "lora:4", "adaptformer": "adaptformer:64", "partial-3": "partial:3"}
BESIDE = {"full": "full", "linear": "linear"}
"""Of the ViT only: of the MobileNets they stand in the rows of recipes/repsim.py, with the same settings."""


def main(command_line: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(command_line)
    targets = SMOKE_TARGETS if arguments.smoke else MEDICAL_TARGETS
    failed = 0
    if arguments.only != ["none"]:
        with limit_threads(arguments.threads):
            specs = [pretrained_vit(arguments, PRETRAINING), *others(arguments)]
            failed = do_all(jobs(targets, specs, arguments), Rows(arguments))
    if arguments.out is not None:
        tables = {target.name: read_table(arguments.rows, target.name) for target in targets}
        beside = {target.name: read_table(arguments.beside, target.name) for target in targets}
        pretraining = read_table(arguments.rows, PRETRAINING)
        titles = {target.name: target.title for target in targets}
        write_page(arguments.out, tables, beside, pretraining, titles=titles, vit=VIT_NAME, wanted=wanted(targets, arguments))
    if failed:
        raise SystemExit(f"{failed} trainings failed; the same command tries them again")


def others(arguments: argparse.Namespace) -> list[ModelSpec]:
    """Convolutional networks."""
    return smoke_specs() if arguments.smoke else mobilenets(arguments.weights_dir)


def jobs(targets: Sequence[Target], specs: Sequence[ModelSpec], arguments: argparse.Namespace) -> Iterator[Training]:
    """All that is asked for, seed by seed, variant by variant."""
    chosen = [target for target in targets if not arguments.only or target.name in arguments.only]
    for seed in seeds_of(arguments):
        for variant, options in variants().items():
            if arguments.variants and variant not in arguments.variants:
                continue
            for target in chosen:
                for spec in specs:
                    if is_vit(spec):
                        yield Training(target, spec, variant, seed, {**options, "image_size": VIT["img_size"]})
                    elif "adaptformer" not in variant and variant not in BESIDE:
                        yield Training(target, spec, variant, seed, options)


def variants() -> dict[str, dict[str, Any]]:
    """Each method without and with RepSim, then what it is compared to."""
    found: dict[str, dict[str, Any]] = {}
    for name, method in METHODS.items():
        found |= {name: {"method": method}, f"{name} + repsim": {"method": method, "regularizer": REPSIM}}
    return found | {name: {"method": method} for name, method in BESIDE.items()}


def is_vit(spec: ModelSpec) -> bool:
    return short(spec) == VIT_NAME


def wanted(targets: Sequence[Target], arguments: argparse.Namespace) -> int:
    """Trainings of the whole study, without that of the ViT."""
    seeds = len(seeds_of(arguments) if arguments.smoke else SEEDS)
    of_vit = 2 * len(METHODS) + len(BESIDE)
    of_other = 2 * (len(METHODS) - 1) * (1 if arguments.smoke else 2)
    return len(targets) * seeds * (of_vit + of_other)


def parse_arguments(command_line: Sequence[str] | None = None) -> argparse.Namespace:
    parser = study_parser(__doc__ or "", name="adapters", variants=variants())
    parser.add_argument("--beside", type=Path, default=RESULTS / "adapters" / "mobilenets", help="tables of FULL and LINEAR")
    return read_arguments(parser, command_line)


if __name__ == "__main__":
    main()
