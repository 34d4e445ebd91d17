"""Train one task after another, and look at the first one again with its own head: the table of docs/results/repsim.md.

    python recipes/continual.py data docs/results/repsim/continual.csv      # data holds the .npz files and weights/

A second training starts from what the first one left, which a study of single commands cannot say. Run folders of --out (by
default runs/continual) that are finished are not trained again. About five minutes of one core.
"""

from __future__ import annotations

import argparse
import copy
from itertools import product
from pathlib import Path

import pandas as pd

import crossgraft
from crossgraft.data import Dataset, open_dataset
from crossgraft.metrics import evaluate_predictions
from crossgraft.models import ModelSpec
from crossgraft.models.classifier import Classifier
from crossgraft.progress import Reporter
from crossgraft.running.unattended import unattended
from crossgraft.tune.measuring.logits import compute_logits
from crossgraft.tune.saving.saved_model import load_saved_model

ORDERS = (("breastmnist", "pneumoniamnist"), ("pneumoniamnist", "retinamnist"), ("retinamnist", "breastmnist"))
WAYS = {"full": (), "repsim": ("repsim",)}
SEEDS = (0, 1, 2)
CODE = Path("examples/own_models")
SOURCE, WEIGHTS = "fractional_mobilenet:mobilenetv1_025", "mobilenetv1_025_r128.imagenet_qat.safetensors"
FIXED = {"image_size": 64, "epochs": 10, "batch_size": 32, "batch_norm": "frozen", "device": "cpu"}
SIZES = {"retinamnist": {"limit": 700}, "cifar10": {"per_class": 40}}
"""Others have 100 images of each class; the smallest class of RetinaMNIST has 66."""


def arguments(words: str) -> argparse.Namespace:
    """What was typed."""
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/continual"))
    return parser.parse_args()


def trained(given: argparse.Namespace, name: str, model: ModelSpec, way: str, seed: int, *folder: object) -> Path:
    """The run folder of one training, which is done now or was before."""
    out = given.out / "-".join(map(str, folder))
    if not (out / "report.json").is_file():
        crossgraft.fine_tune(
            given.data / f"{name}.npz", model=model, regularizer=WAYS[way], seed=seed, out=out, allow_code=CODE, store=False,
            no_images=True, workers=1, ledger=False, **FIXED, **SIZES.get(name, {"per_class": 100}),
        )  # fmt: skip
    return out


def start_in(data: Path) -> ModelSpec:
    """The pretrained network."""
    return ModelSpec("mobilenetv1_025", SOURCE, weights=str((data / "weights" / WEIGHTS).resolve()), folder=CODE)


def start_of(run: Path) -> ModelSpec:
    """The body of a finished training, without its head."""
    weights = next((run / "model").glob("*.safetensors"))
    return ModelSpec(
        "first task", SOURCE, weights=str(weights.resolve()), weights_prefix="body.", kwargs={"num_classes": 0}, folder=CODE
    )


def under_head(first: Classifier, second: Classifier) -> Classifier:
    """The body of the second under the head of the first, which may tell other classes apart."""
    both = copy.deepcopy(first)
    both.body.load_state_dict(second.body.state_dict())
    return both.eval()


def on_test(network: Classifier, data: Dataset) -> dict[str, float]:
    """Accuracy of the most probable class, and AUC."""
    logits = compute_logits(network, data, reporter=Reporter(quiet=True))
    rows = evaluate_predictions(data.task.probabilities(logits), data.targets, task=data.task, class_names=data.class_names)
    overall = {row.metric: row.value for row in rows if row.class_name is None}
    return {name: round(overall[name], 5) for name in ("accuracy", "auc")}


def main() -> None:
    """Run the script."""
    given = arguments(__doc__)
    start, rows = start_in(given.data), list[dict[str, object]]()
    for seed, (first, second), way in product(SEEDS, ORDERS, WAYS):
        before = trained(given, first, start, way, seed, first, way, seed)
        for other in WAYS:
            after = trained(given, second, start_of(before), other, seed, first, way, second, other, seed)
            one, two = (load_saved_model(run, allow_code=CODE).classifier.eval() for run in (before, after))
            tests = [open_dataset(given.data / f"{each}.npz", use_split="test") for each in (first, second)]
            tested = {"first": (one, tests[0]), "first_again": (under_head(one, two), tests[0]), "second": (two, tests[1])}
            rows.append(
                {"first": first, "second": second, "first_way": way, "second_way": other, "seed": seed}
                | {f"{name}_{metric}": value for name, of in tested.items() for metric, value in on_test(*of).items()}
            )
            pd.DataFrame(rows).to_csv(given.table, index=False)


if __name__ == "__main__":
    with unattended():
        main()
