"""Sound, time series, volumes and several labels, beside Tables 8, 9 and 13 of the paper."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from drawing.sim_other_tables import ARMS, arms_table, pairs_table, told_value, verdict
from tables import markdown, read_csv

TITLES = {
    "accuracy": "Accuracy",
    "macro_f1": "Macro F1",
    "f1": "F1",
    "f1_adjusted": "F1, adjusted",
    "best_f1": "Best F1",
    "best_f1_adjusted": "Best F1, adjusted",
    "auc_pr": "AUC-PR",
}
"""Metric of a table → its name on the page, where that is another."""
UNSEEN = "unseen person"
TABLE_8 = {"TDNN": "+0.13, +0.04, +1.78", "Res2Net-like": "+1.25, +0.21, +0.90", "CAM++-like": "+0.27, +0.12, +1.78"}
"""Gains of accuracy on US8K, SCv2 and GTZAN, of the networks with these names."""
TABLE_9 = {"iTransformer-like": "+7.12, +0.57", "LightTS-like": "+0.47, +0.02"}
"""Gains of F1 on MSL and SMAP."""
RANDOM, JUDGED = "random numbers", ("f1_adjusted", "auc_pr")


def fields(results: Path, figures: Path) -> dict[str, str]:
    sound, anomalies, volumes, labels = (
        read_csv(results / "sim-other-tasks" / f"{name}.csv") for name in ("sound", "anomalies", "volumes", "several-labels")
    )
    sound, anomalies, volumes, labels = (
        each.assign(value=100 * each["value"], metric=each["metric"].replace(TITLES))
        for each in (sound, anomalies, volumes, labels)
    )
    people = means_of_people(sound)
    pooled = of_all_series(anomalies)
    return {
        "sound": arms_table(people),
        "sound_pairs": pairs_table(of_metric(people, "accuracy"), published=TABLE_8),
        "sound_verdict": verdict(of_metric(people, "accuracy")),
        "sound_f1": verdict(of_metric(people, "macro_f1")),
        "sound_people": worst_and_best(sound),
        "anomalies": detectors_table(anomalies),
        "anomalies_random": random_told(anomalies),
        "anomalies_beaten": beaten_by_random(anomalies),
        "anomalies_pairs": pairs_table(of_metric(pooled, "f1_adjusted"), published=TABLE_9),
        "anomalies_verdict": verdict(of_metric(pooled, "f1_adjusted")),
        "anomalies_auc": verdict(of_metric(pooled, "auc_pr")),
        "volumes": arms_table(volumes),
        "volumes_pairs": pairs_table(volumes),
        "volumes_verdict": verdict(of_metric(volumes, "accuracy")),
        "labels": arms_table(labels),
        "labels_pairs": pairs_table(labels),
        "labels_verdict": verdict(of_metric(labels, "mAP")),
    }


def of_metric(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    return rows[rows["metric"] == TITLES.get(metric, metric)]


def means_of_people(rows: pd.DataFrame) -> pd.DataFrame:
    """The six people that training did not hear as one data set: trainings of one seed are no independent samples of it."""
    named = rows.assign(data=rows["data"].where(rows["data"] == "official", UNSEEN))
    return named.groupby(["data", "network", "arm", "seed", "metric"], sort=False, as_index=False)["value"].mean()


def worst_and_best(rows: pd.DataFrame) -> str:
    """The person that is hardest to hear, and the easiest: mean accuracy over networks and seeds without ρSIM."""
    own = of_metric(rows, "accuracy")
    own = own[(own["arm"] == "without") & (own["data"] != "official")]
    by_person = own.groupby(own["data"].str.removeprefix("unseen "))["value"].mean()
    return f"from {by_person.min():.0f} % ({by_person.idxmin()}) to {by_person.max():.0f} % ({by_person.idxmax()})"


def of_all_series(rows: pd.DataFrame) -> pd.DataFrame:
    """Pairs of all series put together; a seed is one of a series."""
    return rows.assign(seed=rows["data"] + " " + rows["seed"].astype(str), data="all three")


def detectors_table(rows: pd.DataFrame) -> str:
    """A line for each series and detector, what needs no training first, and a column for each metric."""
    metrics = rows["metric"].unique()
    lines: list[list[str]] = []
    for data, of_data in rows.groupby("data", sort=False):
        trivial = of_data[of_data["arm"] == "trivial"].sort_values("network", key=lambda names: names != RANDOM, kind="stable")
        for (network, arm), own in pd.concat([trivial, of_data[of_data["arm"] != "trivial"]]).groupby(
            ["network", "arm"], sort=False
        ):
            told = [told_value(own[own["metric"] == metric]["value"].tolist(), 1) for metric in metrics]
            lines.append(
                [str(data), network if arm == "trivial" else f"{network}, {ARMS[str(arm)][0].lower()}{ARMS[str(arm)][1:]}", *told]
            )
    return markdown(["Data", "Detector", *metrics], lines)


def random_told(rows: pd.DataFrame) -> str:
    """Best adjusted F1 of random numbers beside their best plain one, by series."""
    own = rows[rows["network"] == RANDOM].groupby(["data", "metric"], sort=False)["value"].mean()
    return ", ".join(
        f"{own[data, TITLES['best_f1_adjusted']]:.1f} on {data} (plain {own[data, TITLES['best_f1']]:.1f})"
        for data in rows["data"].unique()
    )


def beaten_by_random(rows: pd.DataFrame) -> str:
    """How many means over the seeds of a trained detector are below random numbers of their series, in each of two metrics."""
    said: list[str] = []
    for name in JUDGED:
        by_place = of_metric(rows, name).groupby(["data", "network", "arm"])["value"].mean()
        below = [value < by_place[place[0], RANDOM, "trivial"] for place, value in by_place.items() if place[2] != "trivial"]
        said.append(f"{sum(below)} by {'AUC-PR' if name == 'auc_pr' else 'adjusted F1 at the threshold of training'}")
    return " and ".join(said)
