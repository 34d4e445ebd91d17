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

import pandas as pd
from kept import jobs_of, most_probable, record_of, rounded, versions_in_words, with_ends

KEY = ["model", "fidelity", "learning_rate", "seed"]


def row_of_job(run: Path, fidelity: str, seconds: float) -> dict[str, object]:
    """One finished training; ``set`` is the name of its images."""
    record, about = record_of(run), json.loads((run / "run.json").read_bytes())
    point, plan, area, config = record.grid[0], record.plan, record.metric("auc"), about["config"]
    tested = with_ends(most_probable(run / "predictions.csv") | {"auc": area})
    return {
        "set": record.dataset.name.removeprefix("small_"),
        "model": record.model.name,
        "family": record.model.family,
        "fidelity": fidelity,
        "learning_rate": float(config["learning_rate"]),
        "seed": about["seed"],
        "side": config["image_size"],
        "epochs": config["epochs"],
        "num_epochs": point.num_epochs,
        "best_epoch": point.best_epoch,
        "num_train": plan.num_train,
        "num_val": plan.num_val,
        "num_test": area.num_images,
        "val_auc": round(point.val_metric, 6),
        "val_loss": round(point.val_loss, 6),
        "val_curve": " ".join(f"{epoch.val_metric:.5f}" for epoch in record.history),
        "num_parameters": plan.num_trained + plan.num_frozen,
        "cpu_seconds": round(seconds, 2),
        **{name: value for name, value in tested.items() if value is not None},
        **rounded({name: record.similarity[name] for name in ("cka", "cka_debiased") if name in record.similarity}),
        "versions": versions_in_words(run, ("crossgraft", "torch")),
        "state": "done",
    }


def main(arguments: list[str]) -> None:
    out, *studies = map(Path, arguments)
    jobs = [each for study in studies for each in jobs_of(study)]
    rows = pd.DataFrame([row_of_job(run, getattr(job, "settings", "full"), job.seconds) for job, run, _ in jobs])
    for name, of in rows.groupby("set"):
        file = out / f"{name}.csv"
        of.drop(columns="set").drop_duplicates(KEY).to_csv(file, index=False, lineterminator="\n")
        print(f"{file}: {len(of)} trainings")


if __name__ == "__main__":
    main(sys.argv[1:])
