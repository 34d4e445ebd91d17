"""ρSIM beside the baseline, what costs as much, what is free, and a placebo: the numbers of docs/results/sim.md.

    python recipes/sim.py --data-dir datasets --weights-dir weights --out docs/results/sim.md
    python recipes/sim.py --only cifar10 --variants baseline rho_sim placebo --seeds 0       # a piece of it
    python recipes/sim.py --only none --out docs/results/sim.md                              # the page alone
    python recipes/sim.py --smoke --rows elsewhere  # as-built networks and noise; the numbers mean nothing

The environment variable CROSSGRAFT_DATA may name a folder that holds both, ``datasets`` and ``weights``. Each training ends as a
row of ``--rows``, and what is there with the same settings is not trained again. Pieces come in the order of
``sim_variants.pieces``, the most informative first, and each of them seed by seed, so that a page of a part is worth reading.
Two processes can work on different pieces (``--only``) at once. How many epochs ``longer`` has follows from the processor
time of seed 0 with ρSIM and without; it waits for these two.

Forecast: one epoch without ρSIM took 18 seconds of processor time with ResNet-20, 32 with ResNet-32 and 57 with ResNet-56 on a
busy machine (13 with ResNet-20 on an idle one), and fine-tuning a MobileNet about one minute; ρSIM is assumed to take 1.3 times
as long. So ``cifar10`` takes 3 to 4 processor hours, the two medical sets about 1.3 together, ``cifar10_regularisers`` 2.6 to
3.6, ``cifar10_depth`` 2.6 to 3.5, ``cifar10_sweeps`` 1.9 to 2.7: 11 to 15 in all, or 6 to 8 hours on two cores.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from sim_looks import keep_look, keep_steps, look_at, steps_of
from sim_page import StudyTables, write_page
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
)
from studies import EXAMPLES, mobilenets, short, smoke_specs
from study_rows import read_table
from study_trainings import Rows, Training, do_all, read_arguments, seeds_of, study_parser

from crossgraft.compute import limit_threads
from crossgraft.models import ModelSpec
from crossgraft.tune import REGULARIZERS, FineTuningResult

PREPROCESSING = {"input_size": [3, 32, 32], "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
SMOKE_BATCH = 16  # several steps of few images
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
                    # What "longer" takes is known only when the first two of its seed are done.
                    failed += do_all(jobs(piece, seed, arguments, waits=False), work)
                    failed += do_all(jobs(piece, seed, arguments, waits=True), work)
    found = {name: StudyTables.read(arguments.rows, name) for name in pieces()}
    if arguments.out is not None:
        write_page(arguments.out, found)
    print(f"{sum(len(each.table.trainings) for each in found.values())} trainings are there")
    if failed:
        raise SystemExit(f"{failed} trainings failed; the same command tries them again")


def chosen_pieces(arguments: argparse.Namespace) -> list[Piece]:
    """Those that are asked for."""
    return [piece for name, piece in pieces().items() if not arguments.only or name in arguments.only]


def jobs(piece: Piece, seed: int, arguments: argparse.Namespace, *, waits: bool) -> Iterator[Training]:
    """Trainings of one seed that are asked for: all that can be done at once, or (``waits``) those that wait for them."""
    in_smoke = {"batch_size": SMOKE_BATCH} if arguments.smoke else {}
    for variant, options in piece.variants.items():
        if (variant == LONGER) is not waits or (arguments.variants and variant not in arguments.variants):
            continue
        more = {**options, **in_smoke}
        if variant == LONGER:
            ratio = time_ratio_of(piece, arguments)
            if ratio is None:
                print(
                    f"{piece.target.name} {LONGER}, seed {seed} waits for {BASELINE} and {SIM} with seed 0", flush=True
                )
                continue
            more["epochs"] = longer_epochs(ratio)
        for spec in specs_of(piece, variant, arguments):
            yield Training(piece.target, spec, variant, seed, more)


def time_ratio_of(piece: Piece, arguments: argparse.Namespace) -> float | None:
    """Processor time with ρSIM over that without, of seed 0; None until both are there."""
    rows = {row.key: row for row in read_table(arguments.rows, piece.target.name).trainings if row.state == "done"}
    both = [rows.get((piece.networks[0], variant, 0)) for variant in (SIM, BASELINE)]
    with_sim, without = (None if row is None else row.cpu_seconds for row in both)
    return None if with_sim is None or not without else with_sim / without


def specs_of(piece: Piece, variant: str, arguments: argparse.Namespace) -> list[ModelSpec]:
    """Networks of a piece, with dropout in front of the last layer where that is the variant."""
    if piece.is_pretrained:
        return smoke_specs() if arguments.smoke else mobilenets(arguments.weights_dir)
    kwargs = {"dropout": DROPOUT_RATE} if variant == DROPOUT else {}
    return [
        ModelSpec(
            f"{name} · as built", f"cifar_resnet:{name}", kwargs=kwargs, preprocessing=PREPROCESSING, folder=EXAMPLES
        )
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
