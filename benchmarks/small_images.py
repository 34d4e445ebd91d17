"""What a stage of a selection on small images costs beside fine-tuning all models at 224 pixels.

    OMP_NUM_THREADS=1 python benchmarks/small_images.py           # ten models; ten minutes
    OMP_NUM_THREADS=1 python benchmarks/small_images.py --smoke   # seconds

CPU seconds of training steps of the engine (forward, loss, backward, AdamW) on a batch in memory, of ten models as they come from
timm, with random weights, which change no cost. As many steps are made on small images as on large ones, so that their sums
compare whole trainings of one number of epochs. Reading images is not counted. What does not depend on their size, as the
optimiser, is a larger share of small ones, which is why a stage costs more than its share of the pixels. A side that a model
cannot take is left out and named; what the model costs at 224 pixels still counts.
"""

from __future__ import annotations

import argparse
import time

from training_step import CLASSES, engine_step, make_batch

from crossgraft.compute import limit_threads
from crossgraft.errors import UsageError
from crossgraft.models import ModelSpec, load_backbone
from crossgraft.models.classifier import make_classifier

TARGET = 0.15
MODELS = (
    "resnet18",
    "resnet50",
    "densenet121",
    "mobilenetv2_100",
    "mobilenetv3_large_100",
    "efficientnet_b0",
    "regnety_004",
    "convnext_atto",
    "vit_tiny_patch16_224",
    "deit_small_patch16_224",
)


def main() -> None:
    arguments = parse_arguments()
    *small, whole = arguments.sides
    spent: dict[str, dict[int, float]] = {}
    with limit_threads(1):
        for name in arguments.models:
            found = {side: seconds_of_step(name, side, arguments) for side in arguments.sides}
            spent[name] = {side: seconds for side, seconds in found.items() if seconds is not None}
            cells = (f"{side} px {1000 * seconds:8.1f} ms" for side, seconds in spent[name].items())
            print(f"{name:24}{'   '.join(cells)}", flush=True)
    everything = sum(each[whole] for each in spent.values())
    for stage in [(side,) for side in small] + [tuple(small)]:
        share = sum(each.get(side, 0.0) for each in spent.values() for side in stage) / everything
        verdict = f"target {TARGET:.0%}: {'met' if share <= TARGET else 'missed'}"
        print(f"{' and '.join(map(str, stage))} px: {share:.1%} of all at {whole} px, {verdict}")


def seconds_of_step(name: str, side: int, arguments: argparse.Namespace) -> float | None:
    """CPU seconds of a training step, the least of some; None where the network does not take images of this side."""
    try:
        backbone = load_backbone(ModelSpec(name=name, source=name, weights="random"), image_size=side)
        classifier = make_classifier(backbone, CLASSES, seed=0)
    except UsageError:
        print(f"{name} does not take {side} px")
        return None
    step = engine_step(classifier, make_batch(arguments.batch_size, side))
    step()
    times: list[float] = []
    for _ in range(arguments.steps):
        began = time.process_time()
        step()
        times.append(time.process_time() - began)
    return min(times)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="one small model")
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS))
    parser.add_argument("--sides", type=lambda text: [int(each) for each in text.split(",")], default=[28, 64, 224])
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.models, arguments.sides = ["mobilenetv3_small_050"], [28, 32, 64]
        arguments.batch_size, arguments.steps = 4, 1
    return arguments


if __name__ == "__main__":
    main()
