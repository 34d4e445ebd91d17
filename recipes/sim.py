"""ρSIM beside the baseline, what costs as much, what is free, and a placebo: the numbers of docs/results/sim.md.

    python recipes/sim.py --data-dir datasets --weights-dir weights --out docs/results/sim.md
    python recipes/sim.py --only cifar10 --variants baseline rho_sim placebo --seeds 0       # a piece of it
    python recipes/sim.py --only none --out docs/results/sim.md                              # the page alone
    python recipes/sim.py --smoke --rows elsewhere  # as-built networks and noise; the numbers mean nothing

The environment variable CROSSGRAFT_DATA may name a folder that holds both, ``datasets`` and ``weights``. Each training ends as a
row of ``--rows``, and what is there with the same settings is not trained again. Pieces come in the order of
``sim_variants.pieces``, the most informative first, and each of them seed by seed, so that a page of a part is worth reading.
Two processes can work on different pieces (``--only``) at once. How many epochs ``longer`` has follows from the processor time
of steps with ρSIM and without, which are made in turn and kept as a row, too.

Forecast, from steps measured on a busy machine: an epoch takes 15 seconds of processor time with ResNet-20, 26 with ResNet-32
and 45 with ResNet-56, and 1.2 times as long with ρSIM, so a training of 20 epochs 310 (with ρSIM 380), 520 (620) and 890 (1090)
seconds; a fine-tuning 20 to 75. Then ``cifar10`` takes 3.3 processor hours, ``cifar10_regularisers`` 4.5, the two medical sets
1.6 together, ``cifar10_depth`` 2.6 and ``cifar10_sweeps`` 1.9: 14 in all, or 7 hours on two cores; ``--device`` names a GPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sim_looks import keep_look, keep_steps, look_at, steps_of
from sim_page import StudyTables, write_page
from sim_steps import ROUNDS, StepCostRow, step_cost
from sim_variants import (
    BASELINE,
    DROPOUT,
    DROPOUT_RATE,
    LONGER,
    PLACEBO,
    RHO_SIM,
    SIM,
    Piece,
    all_variants,
    longer_epochs,
    pieces,
    rho_sim,
)
from studies import EXAMPLES, mobilenets, short, smoke_specs
from study_trainings import BATCH_SIZE, EPOCHS, SIDE, Rows, Training, do_all, read_arguments, seeds_of, study_parser

from crossgraft.compute import limit_threads
from crossgraft.models import ModelSpec
from crossgraft.tune import REGULARIZERS, FineTuningResult

PREPROCESSING = {"input_size": [3, 32, 32], "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
SMOKE_BATCH, SMOKE_ROUNDS = 16, 1  # several steps of few images
STEPS_OF, STEPS_KEPT = "cifar10", (BASELINE, SIM, PLACEBO)
"""Of these every step is kept with seed 0 in the first piece, for the figure."""


def main(command_line: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(command_line)
    failed = 0
    if arguments.only != ["none"]:
        with limit_threads(arguments.threads):
            work = LookedAt(arguments)
            for piece in chosen_pieces(arguments):
                for seed in seeds_of(arguments, piece.seeds):
                    failed += do_all(jobs(piece, seed, arguments), work)
    found = {name: StudyTables.read(arguments.rows, name) for name in pieces()}
    if arguments.out is not None:
        write_page(arguments.out, found)
    print(f"{sum(len(each.table.trainings) for each in found.values())} trainings are there")
    if failed:
        raise SystemExit(f"{failed} trainings failed; the same command tries them again")


def chosen_pieces(arguments: argparse.Namespace) -> list[Piece]:
    """Those that are asked for."""
    return [piece for name, piece in pieces().items() if not arguments.only or name in arguments.only]


def jobs(piece: Piece, seed: int, arguments: argparse.Namespace) -> Iterator[Training]:
    """Trainings of one seed that are asked for."""
    in_smoke = {"batch_size": SMOKE_BATCH} if arguments.smoke else {}
    for variant, options in piece.variants.items():
        if arguments.variants and variant not in arguments.variants:
            continue
        for spec in specs_of(piece, variant, arguments):
            more = {**options, **in_smoke}
            if variant == LONGER:
                epochs = piece.target.options.get("epochs", EPOCHS)
                more["epochs"] = longer_epochs(cost_of(piece, spec, arguments).ratio, epochs)
            yield Training(piece.target, spec, variant, seed, more)


def cost_of(piece: Piece, spec: ModelSpec, arguments: argparse.Namespace) -> StepCostRow:
    """Of a step of this piece with ρSIM and without; measured where it is not known."""
    options = piece.target.options
    known = {
        "side": options.get("image_size", SIDE),
        "batch_size": SMOKE_BATCH if arguments.smoke else options.get("batch_size", BATCH_SIZE),
        "optimizer": options.get("optimizer", "adamw"),
    }
    rounds = SMOKE_ROUNDS if arguments.smoke else ROUNDS
    spelled = rho_sim()["regularizer"]
    return step_cost(arguments.rows, piece.target.name, spec, spelled, rounds=rounds, weights_dir=arguments.weights_dir, **known)


def specs_of(piece: Piece, variant: str, arguments: argparse.Namespace) -> list[ModelSpec]:
    """Networks of a piece, with dropout in front of the last layer where that is the variant."""
    drops = variant == DROPOUT
    if piece.is_pretrained and arguments.smoke:
        return smoke_specs()
    if piece.is_pretrained:
        found = mobilenets(arguments.weights_dir)
        return [replace(spec, kwargs={**spec.kwargs, "drop_rate": DROPOUT_RATE}) for spec in found] if drops else found
    kwargs = {"dropout": DROPOUT_RATE} if drops else {}
    return [
        ModelSpec(f"{name} · as built", f"cifar_resnet:{name}", kwargs=kwargs, preprocessing=PREPROCESSING, folder=EXAMPLES)
        for name in piece.networks
    ]


class LookedAt(Rows):
    """Rows, with what each training cost and how its gradients were."""

    def also(self, training: Training, tuned: FineTuningResult) -> None:
        """Keep both before the row, so that no row is without them."""
        rows, name, model = self.arguments.rows, training.target.name, short(training.spec)
        keep_look(rows, name, look_at(tuned, model=model, variant=training.variant, seed=training.seed))
        steps = steps_of(tuned, model=model, variant=training.variant)
        if steps and (name, training.seed) == (STEPS_OF, 0) and training.variant in STEPS_KEPT:
            keep_steps(rows, name, steps)


def parse_arguments(command_line: Sequence[str] | None = None) -> argparse.Namespace:
    found = pieces()
    parser = study_parser(
        __doc__ or "",
        name="sim",
        variants=all_variants(),
        targets=[piece.target for piece in found.values()],
        seeds=sorted({seed for piece in found.values() for seed in piece.seeds}),
    )
    parsed = read_arguments(parser, command_line)
    if parsed.only != ["none"] and RHO_SIM not in REGULARIZERS and (needing := _that_need_rho_sim(parsed)):
        parser.error(
            f"This version of crossgraft has no regulariser {RHO_SIM}, which {', '.join(needing)} need. Name the other "
            "variants with --variants, or install a version that has it."
        )
    return parsed


def _that_need_rho_sim(arguments: argparse.Namespace) -> list[str]:
    """Variants that are asked for and add ρSIM."""
    asked = {
        name: options for piece in chosen_pieces(arguments) for name, options in piece.variants.items()
        if not arguments.variants or name in arguments.variants
    }  # fmt: skip
    return [name for name, options in asked.items() if str(options.get("regularizer", "")).startswith(RHO_SIM)]


if __name__ == "__main__":
    main()
