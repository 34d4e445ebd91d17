"""Does the default of RepSim keep in fewer than 100 steps? Rows for docs/results/repsim.md, which recipes/repsim.py writes.

    python recipes/repsim_few_steps.py --data-dir datasets --weights-dir weights
    python recipes/repsim_few_steps.py --only ham10000 --networks resnet20 --seeds 0     # a piece
    python recipes/repsim_few_steps.py --only none                                       # the differences alone
    python recipes/repsim_few_steps.py --smoke --rows elsewhere     # an as-built network and noise; the numbers mean nothing

Sets of recipes/ground_truth_sets.py with at most 100 training images per class (20 of Medical MNIST), three networks with
BatchNorm, 2 and 6 epochs with batches that fit the number of images: FULL, the default of ``--regularizer repsim``, the same with
statistics of each batch and the usual learning rate (the default in few steps until November 2026), and the paper's form. Each
training ends as a row of ``--rows``; what is there with the same settings is not trained again. About 50 processor minutes.
"""

from __future__ import annotations

import argparse
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from ground_truth_sets import SETS, SMOKE_SETS, TargetSet, parts_of
from studies import EXAMPLES, SEEDS, Target, difference_of, short, smoke_specs
from study_rows import read_table
from study_tables import Tables, in_numbers, over_pairs, values
from study_trainings import RESULTS, Rows, Training, do_all, read_arguments, seeds_of, study_parser

from crossgraft.compute import limit_threads
from crossgraft.models import ModelSpec, read_zoo

JUDGED = ("ham10000", "medical_mnist", "brain_mri", "pneumoniamnist")
CHOSEN_ON = ("breastmnist", "retinamnist", "busi")
"""The rule was made on these, see docs/log.md; they are trained last."""
NETWORKS = {"mobilenetv1_050": "mobilenets.yaml", "mobilenetv2_035": "mobilenets.yaml", "resnet20": "small_networks.yaml"}
SIDES = {"resnet20": {"image_size": 32}}
EPOCHS = (2, 6)
FORMS: dict[str, dict[str, Any]] = {
    "full": {},
    "repsim": {"regularizer": "repsim"},
    "repsim, train": {"regularizer": "repsim", "batch_norm": "train"},
    "paper": {"regularizer": "repsim:preset=paper"},
}
"""Name → options of ``fine_tune``; the first two are trained before the others of a seed."""


def main(command_line: Sequence[str] | None = None) -> None:
    """Train what is missing; then print one line a network and one of all, of the sets that nothing was chosen on."""
    arguments = parse_arguments(command_line)
    if arguments.only != ["none"]:
        with limit_threads(arguments.threads):
            if failed := do_all(trainings(arguments), Rows(arguments)):
                raise SystemExit(f"{failed} trainings failed; the same command tries them again")
    names = [target.name for target in SMOKE_SETS] if arguments.smoke else JUDGED
    tables = {name: read_table(arguments.rows, name) for name in names}
    models = sorted({row.model for table in tables.values() for row in table.trainings})
    for form in list(FORMS)[1:]:
        for model in [*models, ""]:
            kept, accurate = (over_pairs(gaps(tables, form, metric, model)) for metric in ("cka_debiased", "accuracy"))
            if kept:
                said = [in_numbers(difference_of(each)) for each in (kept, accurate)]
                print(f"{form} − FULL, {model or 'all networks'}: debiased CKA {said[0]}, accuracy {said[1]}, {len(kept)} pairs")


def gaps(tables: Tables, form: str, metric: str, model: str = "") -> dict[tuple[str, str, int], float]:
    """By length and set, network, seed: the form minus FULL."""
    found: dict[tuple[str, str, int], float] = {}
    for epochs in EPOCHS:
        ours, full = (values(tables, variant_of(each, epochs), metric) for each in (form, "full"))
        for (name, network, seed), value in ours.items():
            if (name, network, seed) in full and model in ("", network):
                found[f"{name}, {epochs}", network, seed] = value - full[name, network, seed]
    return found


def variant_of(form: str, epochs: int) -> str:
    """Name of a row."""
    return f"{form}, {epochs} epochs"


def trainings(arguments: argparse.Namespace) -> Iterator[Training]:
    """Seed by seed, FULL and the default before the others, and the sets that judge before those that were chosen on."""
    targets = [target_of(each) for each in (SMOKE_SETS if arguments.smoke else SETS)]
    order = [name for name in (*JUDGED, *CHOSEN_ON) if not arguments.only or name in arguments.only]
    chosen = targets if arguments.smoke else [next(t for t in targets if t.name == name) for name in order]
    specs = networks(arguments)
    lengths = EPOCHS[:1] if arguments.smoke else EPOCHS
    for seed, forms in itertools.product(seeds_of(arguments), (("full", "repsim"), ("repsim, train", "paper"))):
        for epochs, target, spec, form in itertools.product(lengths, chosen, specs, forms):
            if not arguments.variants or form in arguments.variants:
                options = {**FORMS[form], "epochs": epochs, "batch_size": None, **SIDES.get(short(spec), {})}
                yield Training(target, spec, variant_of(form, epochs), seed, options)


def target_of(chosen: TargetSet) -> Target:
    """A set whose images are read once."""
    return Target(chosen.name, chosen.title, "", opened=functools.cache(functools.partial(parts_of, chosen)))


def networks(arguments: argparse.Namespace) -> list[ModelSpec]:
    """With ImageNet weights, and those of CIFAR-10."""
    if arguments.smoke:
        return smoke_specs()
    found: list[ModelSpec] = []
    for name, zoo in NETWORKS.items():
        if not arguments.networks or name in arguments.networks:
            specs = read_zoo(EXAMPLES / zoo, weights_dir=arguments.weights_dir, allow_code=EXAMPLES)
            found.append(next(spec for spec in specs if short(spec) == name))
    return found


def parse_arguments(command_line: Sequence[str] | None = None) -> argparse.Namespace:
    targets = [target_of(each) for each in SETS if each.name in (*JUDGED, *CHOSEN_ON)]
    parser = study_parser(__doc__ or "", name="repsim", variants=FORMS, targets=targets, seeds=SEEDS)
    parser.set_defaults(rows=RESULTS / "repsim" / "few_steps")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, help="these networks only")
    return read_arguments(parser, command_line)


if __name__ == "__main__":
    main()
