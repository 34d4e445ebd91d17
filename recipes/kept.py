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
from collections.abc import Iterable, Iterator, Mapping
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


def jobs_of(study: Path) -> Iterator[tuple[Any, Path, dict[str, Any]]]:
    """Each finished job as a row of the study's table, its run folder, and the first columns of its rows."""
    for job in read_csv(study / "results.csv").drop_duplicates("job").itertuples():
        yield job, study / job.run, {name: getattr(job, known, None) for name, known in NAMES.items()}


NAMES = {"set": "data", "model": "model", "variant": "settings", "seed": "seed"}
"""Column of a committed table → that of a study."""


def record_of(run: Path) -> TuningRecord:
    return TuningRecord.model_validate_json((run / "report.json").read_bytes())


def trainings(study: Path) -> pd.DataFrame:
    """One row a finished run of ``tune``, with all numbers that any table has, and the column ``set``."""
    said = {cell["job"]: cell["said"] for cell in json.loads((study / "study.json").read_bytes())["cells"].values()}
    return pd.DataFrame([first | {"settings": in_words(said[job.job])} | numbers(run) for job, run, first in jobs_of(study)])


def left_out_domains(study: Path) -> pd.DataFrame:
    """One row a domain of each finished run of ``tune --leave-out``: the training that never saw it."""
    return pd.DataFrame([first | row for _, run, first in jobs_of(study) for row in numbers_by_domain(run)])


def numbers_by_domain(run: Path) -> Iterator[dict[str, Any]]:
    """Of one run folder."""
    record = record_of(run)
    unseen = record.unseen_domains
    for found in () if unseen is None else unseen.domains:
        yield with_ends({"unseen": found.unseen, "seen": found.seen, "gap": found.gap}) | {
            DOMAIN: found.domain,
            "metric": unseen.metric,
            "val": found.val_metric,
            "learning_rate": found.picked.get("learning_rate"),
            **{name: getattr(found, name) for name in ("best_epoch", "num_train", "num_unseen", "num_seen")},
            "seconds": round(record.seconds, 2),
            "versions": versions_in_words(run),
            "state": "done",
        }


def with_ends(values: Mapping[str, Any]) -> dict[str, Any]:
    """Name of something that has an interval → value and ends, each in a column."""
    ends = (("", "value"), ("_low", "low"), ("_high", "high"))
    return rounded({f"{name}{end}": each and getattr(each, column) for name, each in values.items() for end, column in ends})


def rounded(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """To five decimals."""
    return {name: None if value is None else round(value, 5) for name, value in values.items()}


def versions_in_words(run: Path, programs: Iterable[str] = ("python", "crossgraft", "torch", "timm")) -> str:
    """Programs that made it."""
    about = json.loads((run / "run.json").read_bytes())
    versions = about["versions"] | {"crossgraft": about["crossgraft_version"]}
    return " ".join(f"{name} {versions[name]}" for name in programs)


def in_words(said: dict[str, Any]) -> str:
    """What decides the numbers besides data, network and seed."""
    hidden = ("inputs", "model", "seed", "threads", "workers", "weights_dir", "device", "store", "no_images")
    return " ".join(f"{name}={said[name]}" for name in sorted(said) if name not in hidden)


def numbers(run: Path) -> dict[str, Any]:
    """Of one run folder."""
    record = record_of(run)
    plan, nll = record.plan, record.metric("negative_log_likelihood")
    best = next((epoch for epoch in record.history if epoch.is_best), None)
    similar = record.similarity | {"val_cka_debiased": best and best.val_cka_debiased}
    return {
        **with_ends({**most_probable(run / "predictions.csv"), "auc": record.metric("auc")}),
        **rounded(similar),
        "seconds": round(record.seconds, 2),
        "best_epoch": record.grid[0].best_epoch,
        "num_parameters": plan.num_trained + plan.num_frozen,
        **{name: getattr(plan, name) for name in ("num_trained", "num_own_parameters", "peak_bytes")},
        "nll": None if nll is None or nll.value is None else digits(nll.value),
        "versions": versions_in_words(run),
        "state": "done",
        **gradients(run / FILE_NAME),
    }


def most_probable(file: Path) -> dict[str, Any]:
    """Accuracy and balanced accuracy of the most probable class, with their intervals."""
    rows = read_csv(file)
    logits = rows.filter(regex="^logit ")
    names = [name.removeprefix("logit ") for name in logits]
    shifted = np.exp(logits.to_numpy(np.float64) - logits.to_numpy().max(axis=1, keepdims=True))
    targets = rows["target"].astype(str).map(names.index).to_numpy()
    places = [str(place) for place in range(len(names))]  # names of classes would take part in what is decided
    found = evaluate_predictions(shifted / shifted.sum(axis=1, keepdims=True), targets, task="multi-class", class_names=places)
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


def replays(study: Path) -> pd.DataFrame:
    """One row a table, start, budget and way of ``select --replay``."""
    rows = [
        {"table": job.replay, "start": job.settings} | row
        for job, run, _ in jobs_of(study)
        for row in json.loads((run / "report.json").read_bytes())["rows"]
    ]
    return pd.json_normalize(rows)


def tables(study: Path, place: Path) -> Iterator[tuple[Path, pd.DataFrame, pd.DataFrame]]:
    """File, what is committed, and what the study found, by key and with the columns of the file."""
    by_domain = place.is_dir() and any(DOMAIN in read_csv(file) for file in place.glob("*.csv"))
    if place.is_dir():
        found = (left_out_domains if by_domain else trainings)(study)
        files = {place / f"{name}{ending}.csv": rows for name, rows in found.groupby("set") for ending in ENDINGS}
        key = [*KEY, DOMAIN] if by_domain else KEY
    else:
        files, key = {place: replays(study)}, ["table", "start", "budget", "method"]
    for file, rows in files.items():
        if file.is_file():
            old = read_csv(file).set_index(key)
            yield file, old, rows.set_index(key).reindex(columns=old.columns)


def compared(old: pd.DataFrame, new: pd.DataFrame) -> list[str]:
    """Largest difference of each column of numbers, over the rows of both."""
    both = old.index.intersection(new.index)
    lines = [f"{len(both)} of {len(new)} rows are committed"]
    for column in old.select_dtypes("number"):
        gap = (old.loc[both, column] - pd.to_numeric(new.loc[both, column])).abs()
        if gap.notna().any():
            said = "equal" if gap.max() < 1e-6 else f"at most {gap.max():.2g} ({(gap >= 1e-6).sum()} rows)"
            lines.append(f"  {column}: {said}")
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
