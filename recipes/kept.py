"""Put the numbers of a finished study into the committed tables of its page, or compare them.

    crossgraft bench studies/adapters.yaml --out runs/adapters --code examples/own_models
    python recipes/kept.py runs/adapters docs/results/adapters            # rows of the same key are replaced
    python recipes/kept.py runs/adapters docs/results/adapters --check    # write nothing: the largest difference of each column
    python recipes/kept.py runs/selection docs/results/selection.csv
    python recipes/kept.py runs/domains-digits docs/results/domains       # one row a training and the domain that it never saw

One table a level of ``data``, one row a training; ``model`` and ``settings`` are those of the study. Accuracy and balanced
accuracy are of the most probable class, as papers have it: the thresholds of ``crossgraft tune`` for two classes are fitted to
few images of val, and would add their own noise. What a table has and no run knows (``cpu_seconds``, probes) stays, or is empty.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tables import read_csv

from crossgraft.metrics import evaluate_predictions
from crossgraft.tune.engine.gradient_norms import FILE_NAME, SPIKE
from crossgraft.tune.record import TuningRecord

KEY = ["model", "variant", "seed"]
DOMAIN = "domain"
ENDINGS = ("", "-kept", "-looks")
"""Of the tables of a set: the trainings, what their features kept, what they cost and how their gradients were."""


def trainings(study: Path) -> pd.DataFrame:
    """One row a finished run of ``tune``, with all numbers that any table has, and the column ``set``."""
    said = json.loads((study / "study.json").read_text(encoding="utf-8"))["cells"]
    settings = {cell["job"]: cell["said"] for cell in said.values()}
    jobs = read_csv(study / "results.csv").drop_duplicates("job")
    rows = [
        {"set": job.data, "model": job.model, "variant": job.settings, "seed": job.seed, "settings": in_words(settings[job.job])}
        | numbers(study / job.run)
        for job in jobs.itertuples()
    ]
    return pd.DataFrame(rows)


def left_out_domains(study: Path) -> pd.DataFrame:
    """One row a domain of each finished run of ``tune --leave-out``: the training that never saw it."""
    jobs = read_csv(study / "results.csv").drop_duplicates("job")
    rows = [
        {"set": job.data, "model": job.model, "variant": job.settings, "seed": job.seed} | row
        for job in jobs.itertuples()
        for row in numbers_by_domain(study / job.run)
    ]
    return pd.DataFrame(rows)


def numbers_by_domain(run: Path) -> Iterator[dict[str, Any]]:
    """Of one run folder."""
    record = TuningRecord.model_validate_json((run / "report.json").read_text(encoding="utf-8"))
    unseen = record.unseen_domains
    for found in () if unseen is None else unseen.domains:
        values = {"unseen": found.unseen, "seen": found.seen, "gap": found.gap}
        known = {
            f"{name}{end}": None if each is None else getattr(each, column)
            for name, each in values.items()
            for end, column in (("", "value"), ("_low", "low"), ("_high", "high"))
        }
        yield {name: None if value is None else round(value, 5) for name, value in known.items()} | {
            DOMAIN: found.domain,
            "metric": unseen.metric,
            "val": found.val_metric,
            "learning_rate": found.picked.get("learning_rate"),
            "best_epoch": found.best_epoch,
            "num_train": found.num_train,
            "num_unseen": found.num_unseen,
            "num_seen": found.num_seen,
            "seconds": round(record.seconds, 2),
            "versions": versions_in_words(run),
            "state": "done",
        }


def versions_in_words(run: Path) -> str:
    """Programs that made it."""
    versions = json.loads((run / "run.json").read_text(encoding="utf-8"))
    programs = {"python": versions["versions"]["python"], "crossgraft": versions["crossgraft_version"]}
    programs |= {name: versions["versions"][name] for name in ("torch", "timm")}
    return " ".join(f"{name} {version}" for name, version in programs.items())


def in_words(said: dict[str, Any]) -> str:
    """What decides the numbers besides data, network and seed."""
    hidden = ("inputs", "model", "seed", "threads", "workers", "weights_dir", "device", "store", "no_images")
    return " ".join(f"{name}={said[name]}" for name in sorted(said) if name not in hidden)


def numbers(run: Path) -> dict[str, Any]:
    """Of one run folder."""
    record = TuningRecord.model_validate_json((run / "report.json").read_text(encoding="utf-8"))
    plan, nll = record.plan, record.metric("negative_log_likelihood")
    best = next((epoch for epoch in record.history if epoch.is_best), None)
    metrics = {**most_probable(read_csv(run / "predictions.csv")), "auc": record.metric("auc")}
    known = {
        f"{name}{end}": None if metric is None else getattr(metric, column)
        for name, metric in metrics.items()
        for end, column in (("", "value"), ("_low", "low"), ("_high", "high"))
    }
    found = known | record.similarity | {"val_cka_debiased": best and best.val_cka_debiased}
    rounded = {name: None if value is None else round(value, 5) for name, value in found.items()}
    return rounded | {
        "seconds": round(record.seconds, 2),
        "best_epoch": record.grid[0].best_epoch,
        "num_trained": plan.num_trained,
        "num_parameters": plan.num_trained + plan.num_frozen,
        "num_own_parameters": plan.num_own_parameters,
        "peak_bytes": plan.peak_bytes,
        "nll": None if nll is None or nll.value is None else digits(nll.value),
        "versions": versions_in_words(run),
        "state": "done",
        **gradients(run / FILE_NAME),
    }


def most_probable(rows: pd.DataFrame) -> dict[str, Any]:
    """Accuracy and balanced accuracy of the most probable class."""
    names = [name.removeprefix("logit ") for name in rows if name.startswith("logit ")]
    logits = rows[[f"logit {name}" for name in names]].to_numpy(np.float64)
    targets = rows["target"].astype(str).map(names.index).to_numpy()
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    numbered = [str(number) for number in range(len(names))]
    found = evaluate_predictions(shifted / shifted.sum(axis=1, keepdims=True), targets, task="multi-class", class_names=numbered)
    overall = {row.metric: row for row in found if row.class_name is None}
    return {name: overall[name] for name in ("accuracy", "balanced_accuracy")}


def gradients(file: Path) -> dict[str, float]:
    """Norms of the gradient, means over blocks; nothing where they were not logged."""
    if not file.is_file():
        return {}
    rows = read_csv(file)
    norms, averages = (rows.pivot(index="step", columns="block", values=column).to_numpy() for column in ("norm", "ema"))
    relative = norms[1:] / averages[:-1]
    return {
        "num_steps": len(norms),
        "median_norm": digits(np.median(norms, axis=0).mean()),
        "largest_norm": digits(norms.max(axis=0).mean()),
        "num_spikes": digits((relative > SPIKE).sum(axis=0).mean()),
        "roughness": digits(np.log(relative).std(axis=0).mean()),
    }


def digits(value: float) -> float:
    return float(f"{float(value):.5g}")


def tables(study: Path, place: Path) -> Iterator[tuple[Path, pd.DataFrame, pd.DataFrame]]:
    """File, what is committed, and what the study found, by key and with the columns of the file."""
    if place.suffix == ".csv":
        key = ["table", "start", "budget", "method"]
        old = read_csv(place).set_index(key)
        yield place, old, replays(study).set_index(key)[list(old.columns)]
        return
    if kept_by_domain := [file for file in place.glob("*.csv") if DOMAIN in read_csv(file)]:
        key = [*KEY, DOMAIN]
        for name, rows in left_out_domains(study).groupby("set"):
            file = place / f"{name}.csv"
            if file in kept_by_domain:
                old = read_csv(file).set_index(key)
                yield file, old, rows.set_index(key).reindex(columns=old.columns)
        return
    for name, rows in trainings(study).groupby("set"):
        for ending in ENDINGS:
            file = place / f"{name}{ending}.csv"
            if file.is_file():
                old = read_csv(file).set_index(KEY)
                yield file, old, rows.set_index(KEY).reindex(columns=old.columns)


def replays(study: Path) -> pd.DataFrame:
    """One row a table, start, budget and way of ``select --replay``."""
    jobs = read_csv(study / "results.csv").drop_duplicates("job")
    records = {job: json.loads((study / job.run / "report.json").read_text(encoding="utf-8")) for job in jobs.itertuples()}
    rows = [{"table": job.replay, "start": job.settings} | row for job, record in records.items() for row in record["rows"]]
    return pd.json_normalize(rows)


def compared(old: pd.DataFrame, new: pd.DataFrame) -> list[str]:
    """Largest difference of each column of numbers, over the rows of both."""
    both = old.index.intersection(new.index)
    lines = [f"{len(both)} of {len(new)} rows are committed"]
    for column in old.select_dtypes("number"):
        gap = (old.loc[both, column] - pd.to_numeric(new.loc[both, column])).abs()
        if gap.notna().any():
            lines.append(
                f"  {column}: {'equal' if gap.max() < 1e-6 else f'at most {gap.max():.2g} ({(gap >= 1e-6).sum()} rows)'}"
            )
    return lines


def main(arguments: list[str]) -> None:
    study, place = (Path(each) for each in arguments[:2])
    for file, old, new in tables(study, place):
        if "--check" in arguments:
            print(f"{file.as_posix()}:", *compared(old, new), sep="\n")
            continue
        merged = new.combine_first(old)[list(old.columns)]
        order = merged.index if place.suffix != ".csv" else [*old.index, *new.index.difference(old.index, sort=False)]
        merged.loc[order].convert_dtypes().reset_index().to_csv(file, index=False, lineterminator="\n")
        print(f"{file.as_posix()}: {len(new)} rows")


if __name__ == "__main__":
    main(sys.argv[1:])
