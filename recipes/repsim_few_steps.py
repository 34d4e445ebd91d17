"""From how many steps on may BatchNorm stay frozen beside RepSim? The numbers of docs/regularizers/repsim.md.

    python recipes/repsim_few_steps.py --data-dir datasets --weights-dir weights
    python recipes/repsim_few_steps.py --smoke      # an as-built network and noise; the numbers mean nothing

Three sets that the study of docs/results/repsim.md does not have, up to 100 training images of each class (20 of Medical MNIST),
two MobileNetV1 with ImageNet weights at 64 pixels, batches of 64, `--regularizer repsim` with statistics of BatchNorm frozen and
trained, for 15 epochs and for 45. Printed are differences of accuracy on test, frozen minus train. About 15 processor minutes.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from data_folders import add_folders, check_folders
from ground_truth_sets import SETS, SMOKE_SETS, TargetSet, parts_of
from studies import EXAMPLES, SEEDS, difference_of, short, smoke_specs

from crossgraft import fine_tune
from crossgraft.compute import limit_threads
from crossgraft.data import Dataset
from crossgraft.models import ModelSpec, read_zoo
from crossgraft.progress import Reporter

NAMES = ("brain_mri", "busi", "medical_mnist")
NETWORKS = ("mobilenetv1_025 · ImageNet", "mobilenetv1_050 · ImageNet")
EPOCHS = (15, 45)
SIDE, BATCH_SIZE = 64, 64


class Pair(NamedTuple):
    """Accuracies with both modes, by seed."""

    steps: int
    frozen: list[float]
    train: list[float]

    @property
    def difference(self) -> float:
        """Frozen minus train, mean over seeds."""
        return statistics.fmean(self.frozen) - statistics.fmean(self.train)


def main(command_line: Sequence[str] | None = None) -> None:
    """Print one row a set, network and length, then one line a length."""
    arguments = parse_arguments(command_line)
    sets: Sequence[TargetSet] = SMOKE_SETS if arguments.smoke else [each for each in SETS if each.name in NAMES]
    lengths = (1,) if arguments.smoke else EPOCHS
    print("| set | network | steps | frozen | train | frozen − train |\n|---|---|---|---|---|---|")
    found: dict[int, list[Pair]] = {epochs: [] for epochs in lengths}
    with limit_threads(1):
        for target in sets:
            data = parts_of(target, arguments.data_dir)
            for spec in networks(arguments):
                for epochs in lengths:
                    pair = both_modes(data, spec, epochs, arguments)
                    found[epochs].append(pair)
                    means = (statistics.fmean(pair.frozen), statistics.fmean(pair.train))
                    cells = [target.name, short(spec), str(pair.steps), *(f"{mean:.3f}" for mean in means)]
                    print(f"| {' | '.join(cells)} | {pair.difference:+.3f} |", flush=True)
    for epochs, pairs in found.items():
        said = difference_of([pair.difference for pair in pairs])
        interval = "" if said is None else f" [{said.low:+.3f}, {said.high:+.3f}]"
        steps = sorted(pair.steps for pair in pairs)
        mean = statistics.fmean(pair.difference for pair in pairs)
        print(f"{epochs} epochs, {steps[0]} to {steps[-1]} steps: {mean:+.3f}{interval} over {len(pairs)} pairs")


def both_modes(data: Dataset, spec: ModelSpec, epochs: int, arguments: argparse.Namespace) -> Pair:
    """Trainings that differ by the mode alone."""
    seeds = SEEDS[:1] if arguments.smoke else SEEDS
    accuracies: dict[str, list[float]] = {"frozen": [], "train": []}
    steps = 0
    for mode, found in accuracies.items():
        for seed in seeds:
            tuned = fine_tune(
                data, model=spec, weights_dir=arguments.weights_dir, regularizer="repsim", batch_norm=mode, epochs=epochs,
                image_size=None if arguments.smoke else SIDE, batch_size=BATCH_SIZE, seed=seed, device="cpu", workers=1,
                store=False, no_images=True, reporter=Reporter(quiet=True),
            )  # fmt: skip
            accuracy = tuned.record.metric("accuracy")
            if accuracy is None:
                raise SystemExit("There is no accuracy without test images.")
            found.append(accuracy.value)
            steps = tuned.record.plan.steps_per_epoch * epochs
    return Pair(steps, **accuracies)


def networks(arguments: argparse.Namespace) -> list[ModelSpec]:
    """With ImageNet weights."""
    if arguments.smoke:
        return smoke_specs()
    specs = read_zoo(EXAMPLES / "mobilenets.yaml", weights_dir=arguments.weights_dir, allow_code=EXAMPLES)
    return [spec for spec in specs if spec.name in NETWORKS]


def parse_arguments(command_line: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_folders(parser)
    parser.add_argument("--smoke", action="store_true", help="an as-built network and noise; the numbers mean nothing")
    parsed = parser.parse_args(command_line)
    check_folders(parser, parsed)
    return parsed


if __name__ == "__main__":
    main()
