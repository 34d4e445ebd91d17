"""Rows of the trainings of finished studies, as the tables of docs/results/ground_truth and docs/results/sources keep them.

    python recipes/trained.py docs/results/ground_truth runs/bench-ground-truth runs/bench-ground-truth-seeds
    python recipes/trained.py docs/results/sources runs/bench-sources

Everything is read from the run folders of the jobs. Accuracy and balanced accuracy are of the most probable class, as in papers:
thresholds of two classes are fitted to few images of val. Of val, whose predictions are not kept, they are missing. Seconds are
those of the job on one core.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from crossgraft.metrics import evaluate_predictions

KEY = ["model", "fidelity", "learning_rate", "seed"]


def row_of_job(run: Path, fidelity: str, seconds: float) -> dict[str, object]:
    """One finished training; ``set`` is the name of its images."""
    record, about = (json.loads((run / f"{name}.json").read_bytes()) for name in ("report", "run"))
    point, config = record["grid"][0], about["config"]
    overall = [each for each in record["metrics"] if each["split"] == "test" and each["class_name"] is None]
    area = next(each for each in overall if each["metric"] == "auc")
    tested = decided(run / "predictions.csv") | {"auc": (area["value"], area["low"], area["high"])}
    ends = {f"{name}{end}": value for name, of in tested.items() for end, value in zip(("", "_low", "_high"), of, strict=True)}
    return {
        "set": record["dataset"]["name"].removeprefix("small_"),
        "model": record["model"]["name"],
        "family": record["model"]["family"],
        "fidelity": fidelity,
        "learning_rate": float(config["learning_rate"]),
        "seed": about["seed"],
        "side": config["image_size"],
        "epochs": config["epochs"],
        "num_epochs": point["num_epochs"],
        "best_epoch": point["best_epoch"],
        "num_train": record["plan"]["num_train"],
        "num_val": record["plan"]["num_val"],
        "num_test": area["num_images"],
        "val_auc": round(point["val_metric"], 6),
        "val_loss": round(point["val_loss"], 6),
        "val_curve": " ".join(f"{epoch['val_metric']:.5f}" for epoch in record["history"]),
        "num_parameters": record["plan"]["num_trained"] + record["plan"]["num_frozen"],
        "cpu_seconds": round(seconds, 2),
        **{name: round(value, 5) for name, value in ends.items() if value is not None},
        **{name: round(record["similarity"][name], 5) for name in ("cka", "cka_debiased") if name in record["similarity"]},
        "versions": f"crossgraft {about['crossgraft_version']} torch {about['versions']['torch']}",
        "state": "done",
    }


def decided(file: Path) -> dict[str, tuple[float, float | None, float | None]]:
    """Accuracy and balanced accuracy of the most probable class, with their intervals."""
    rows = pd.read_csv(file, dtype={"target": str})
    logits = rows.filter(regex="^logit ")
    names = [name.removeprefix("logit ") for name in logits]
    shifted = np.exp(logits.to_numpy(dtype=np.float64) - logits.to_numpy().max(axis=1, keepdims=True))
    targets = rows["target"].map(names.index).to_numpy()
    places = [str(place) for place in range(len(names))]  # names of classes would take part in what is decided
    found = evaluate_predictions(shifted / shifted.sum(axis=1, keepdims=True), targets, task="multi-class", class_names=places)
    overall = {each.metric: each for each in found if each.class_name is None}
    return {name: (overall[name].value, overall[name].low, overall[name].high) for name in ("accuracy", "balanced_accuracy")}


def rows_of_study(folder: Path) -> list[dict[str, object]]:
    """All finished jobs of a study."""
    jobs = pd.read_csv(folder / "results.csv", dtype=str).drop_duplicates("job")
    fidelity = jobs["settings"] if "settings" in jobs else pd.Series("full", index=jobs.index)
    return [
        row_of_job(folder / run, of, float(spent)) for run, of, spent in zip(jobs["run"], fidelity, jobs["seconds"], strict=True)
    ]


def main(arguments: list[str]) -> None:
    out, *studies = map(Path, arguments)
    rows = pd.DataFrame([row for folder in studies for row in rows_of_study(folder)])
    for name, of in rows.groupby("set"):
        file = out / f"{name}.csv"
        of.drop(columns="set").drop_duplicates(KEY).to_csv(file, index=False, lineterminator="\n")
        print(f"{file}: {len(of)} trainings")


if __name__ == "__main__":
    main(sys.argv[1:])
