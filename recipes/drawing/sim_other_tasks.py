"""What docs/results/sim-other-tasks.md says of what examples/sim left: arms beside each other, and pairs, task by task.

Rows have ``data``, ``network``, ``arm``, ``seed``, ``metric``, ``value``. Trainings of one data set, network and seed differ by
their arm alone, so that they are pairs. Of the arm ``trivial``, the network is the name of that answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from tables import Difference, difference, markdown, marked, mean_and_interval, read_csv

from crossgraft.words.formatting import joined

ARMS = {"trivial": "Trivial", "without": "Without", "rho_sim": "ρSIM", "placebo": "Placebo"}
"""Arm → the head of its column."""
OTHERS = {"without": "without", "placebo": "its placebo"}
"""Arms that ρSIM is compared with → what they are called there."""
PLACE = ["data", "network", "seed"]
TABLE_6 = {
    "trivial": "Cats as they are",
    "floor": "Dogs, two halves",
    "without": "GAN alone",
    "patch_nce": "PatchNCE",
    "rho_sim": "ρSIM",
    "placebo": "Placebo",
}
"""Arms of translation."""
GAN, NCE = OTHERS | {"without": "the GAN alone"}, {"patch_nce": "PatchNCE", "placebo": "its placebo"}
TABLE_7 = {
    "UNet+FCN": "+0.84, +0.10, +0.02, +0.07",
    "UNet+DeepLabV3": "+0.07, +0.11, -0.37, +0.29",
    "UNet+PSPNet": "+0.24, +0.20, +0.04, +0.08",
}
"""Differences of Dice on DRIVE, STARE, CHASE-DB1 and HRF."""
TABLE_8 = {"TDNN": "+0.13, +0.04, +1.78", "Res2Net-like": "+1.25, +0.21, +0.90", "CAM++-like": "+0.27, +0.12, +1.78"}
"""Gains of accuracy on US8K, SCv2 and GTZAN, of the networks with these names."""
TABLE_9 = {"iTransformer-like": "+7.12, +0.57", "LightTS-like": "+0.47, +0.02"}
"""Gains of F1 on MSL and SMAP."""
TITLES = {"accuracy": "Accuracy", "macro_f1": "Macro F1", "f1": "F1", "f1_adjusted": "F1, adjusted", "best_f1": "Best F1",
          "best_f1_adjusted": "Best F1, adjusted", "auc_pr": "AUC-PR"}  # fmt: skip
"""Metric of a table → its name on the page, where that is another."""
RANDOM = "random numbers"


def fields(results: Path, figures: Path) -> dict[str, str]:
    names = ("segmentation", "translation", "sound", "anomalies", "volumes", "several-labels")
    masks, pets, *others = (read_csv(results / "sim-other-tasks" / f"{name}.csv") for name in names)
    sound, anomalies, volumes, labels = (
        each.assign(value=100 * each["value"], metric=each["metric"].replace(TITLES)) for each in others
    )
    dice, distances, people = of_metric(masks, "Dice"), of_metric(pets, "Fréchet distance"), means_of_people(sound)
    coins, pooled = dice[dice["data"] == "coins"], of_all_series(anomalies)
    return {
        "segmentation": arms_table(masks),
        "segmentation_trivial": trivial_told(masks),
        "segmentation_pairs": pairs_table(dice[dice["data"] != "coins"], published=TABLE_7),
        "segmentation_coins": " and ".join(
            f"{marked(paired(coins, 'rho_sim', other), 2)} to {name}" for other, name in OTHERS.items()
        ),
        "segmentation_verdict": verdict(dice),
        "translation": arms_table(with_floor(pets), 2, TABLE_6),
        "translation_pairs": pairs_table(pets[pets["arm"] != "floor"], 2, others=GAN | NCE),
        "translation_learned": learned_told(distances),
        "translation_nce": verdict(distances, more_is_better=False, others=NCE, digits=2),
        "translation_verdict": verdict(distances, more_is_better=False, others=GAN, digits=2),
        "sound": arms_table(people),
        "sound_pairs": pairs_table(of_metric(people, "Accuracy"), published=TABLE_8),
        "sound_verdict": verdict(of_metric(people, "Accuracy")),
        "sound_f1": verdict(of_metric(people, "Macro F1")),
        "sound_people": worst_and_best(sound),
        "anomalies": detectors_table(anomalies),
        "anomalies_random": random_told(anomalies),
        "anomalies_beaten": " and ".join(
            f"{beaten_by_random(of_metric(anomalies, name))} by {words}"
            for name, words in {"F1, adjusted": "adjusted F1 at the threshold of training", "AUC-PR": "AUC-PR"}.items()
        ),
        "anomalies_pairs": pairs_table(of_metric(pooled, "F1, adjusted"), published=TABLE_9),
        "anomalies_verdict": verdict(of_metric(pooled, "F1, adjusted")),
        "anomalies_auc": verdict(of_metric(pooled, "AUC-PR")),
        "volumes": arms_table(volumes),
        "volumes_pairs": pairs_table(volumes),
        "volumes_verdict": verdict(of_metric(volumes, "Accuracy")),
        "labels": arms_table(labels),
        "labels_pairs": pairs_table(labels),
        "labels_verdict": verdict(of_metric(labels, "mAP")),
    }


def of_metric(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    return rows[rows["metric"] == metric]


def paired(rows: pd.DataFrame, first: str, second: str) -> Difference | None:
    """Mean of ``first`` − ``second`` of one metric over all their pairs with its interval; None of fewer than two."""
    one, other = (rows[rows["arm"] == arm].set_index(PLACE)["value"].sort_index() for arm in (first, second))
    return difference((one - other).dropna())


def trivial_told(rows: pd.DataFrame) -> str:
    """Data set → name of its trivial answer, in words."""
    names = rows[rows["arm"] == "trivial"].groupby("data", sort=False)["network"].unique()
    return "; ".join(f"{data}: {', '.join(each)}" for data, each in names.items())


def arms_table(rows: pd.DataFrame, digits: int = 1, arms: Mapping[str, str] = ARMS) -> str:
    """A line for each data set, network and metric, in the order of the rows, and a column for each arm."""
    trivial = rows[rows["arm"] == "trivial"]
    lines: list[list[str]] = []
    for (data, network, metric), own in rows[rows["arm"] != "trivial"].groupby(["data", "network", "metric"], sort=False):
        seen = pd.concat([own, trivial[(trivial["data"] == data) & (trivial["metric"] == metric)]])
        lines.append([data, network, metric, *(mean_and_interval(seen[seen["arm"] == arm]["value"], digits) for arm in arms)])
    return markdown(["Data", "Network", "Metric", *arms.values()], lines)


def pairs_table(
    rows: pd.DataFrame, digits: int = 1, published: Mapping[str, str] | None = None, others: Mapping[str, str] = OTHERS
) -> str:
    """ρSIM − each of the others, for each data set, network and metric, and for all networks of a data set together.

    Args:
        rows: Of one metric, or several.
        digits: Behind the point.
        published: Network → what the paper has, ``all`` too; None: no such column.
        others: Arms that ρSIM is compared with → what they are called.
    """
    lines: list[list[str]] = []
    for (data, metric), own in rows[rows["arm"] != "trivial"].groupby(["data", "metric"], sort=False):
        networks = dict([*own.groupby("network", sort=False)])
        for network, each in (networks if len(networks) < 2 else {**networks, "all": own}).items():
            cells = [marked(paired(each, "rho_sim", other), digits) for other in others]
            lines.append([data, network, metric, *cells, *([] if published is None else [published.get(network, "–")])])
    head = ["Data", "Network", "Metric", *(f"ρSIM − {name}" for name in others.values())]
    return markdown([*head, *([] if published is None else ["Published"])], lines)


def verdict(rows: pd.DataFrame, *, more_is_better: bool = True, others: Mapping[str, str] = OTHERS, digits: int = 1) -> str:
    """What the rule of docs/log.md says of one metric over all its pairs, as a clause without a full stop."""
    found = {name: paired(rows, "rho_sim", other) for other, name in others.items()}
    if None in found.values():
        return "not measured"
    is_above, is_below = all(each.low > 0 for each in found.values()), all(each.high < 0 for each in found.values())
    is_gain, is_loss = (is_above, is_below) if more_is_better else (is_below, is_above)
    said = "a gain by ρSIM is shown" if is_gain else "a loss by ρSIM is shown" if is_loss else "no effect of ρSIM is shown"
    return f"{said} ({', '.join(f'{marked(each, digits)} to {name}' for name, each in found.items())})"


def with_floor(rows: pd.DataFrame) -> pd.DataFrame:
    """Halves of the dogs stand in the line of the generator, the only network."""
    (network,) = rows[rows["arm"] == "rho_sim"]["network"].unique()
    return rows.assign(network=rows["network"].where(rows["arm"] != "floor", network))


def learned_told(distances: pd.DataFrame) -> str:
    """Of how many trainings the result is nearer to dogs than the cats as they are."""
    values = {arm: own["value"] for arm, own in distances.groupby("arm")}
    (as_they_are,) = values["trivial"]
    return joined([f"{(values[arm] < as_they_are).sum()} of {len(values[arm])} ({name})" for arm, name in [*TABLE_6.items()][2:]])


def means_of_people(rows: pd.DataFrame) -> pd.DataFrame:
    """The six people that training did not hear as one data set: trainings of one seed are no independent samples of it."""
    named = rows.assign(data=rows["data"].where(rows["data"] == "official", "unseen person"))
    return named.groupby(["data", "network", "arm", "seed", "metric"], sort=False, as_index=False)["value"].mean()


def worst_and_best(rows: pd.DataFrame) -> str:
    """The person that is hardest to hear, and the easiest: mean accuracy over networks and seeds without ρSIM."""
    own = of_metric(rows, "Accuracy")
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
        trained = of_data["arm"] != "trivial"
        trivial = of_data[~trained].sort_values("network", key=lambda names: names != RANDOM, kind="stable")
        for (network, arm), own in pd.concat([trivial, of_data[trained]]).groupby(["network", "arm"], sort=False):
            name = network if arm == "trivial" else f"{network}, {ARMS[arm][0].lower()}{ARMS[arm][1:]}"
            lines.append([data, name, *(mean_and_interval(of_metric(own, metric)["value"], 1) for metric in metrics)])
    return markdown(["Data", "Detector", *metrics], lines)


def random_told(rows: pd.DataFrame) -> str:
    """Best adjusted F1 of random numbers beside their best plain one, by series."""
    own = rows[rows["network"] == RANDOM].groupby(["data", "metric"], sort=False)["value"].mean()
    return ", ".join(
        f"{own[data, 'Best F1, adjusted']:.1f} on {data} (plain {own[data, 'Best F1']:.1f})" for data in rows["data"].unique()
    )


def beaten_by_random(rows: pd.DataFrame) -> int:
    """How many means over the seeds of a trained detector are below random numbers of their series, in one metric."""
    random = rows[rows["network"] == RANDOM].groupby("data")["value"].mean()
    trained = rows[rows["arm"] != "trivial"].groupby(["data", "network", "arm"])["value"].mean()
    return sum(trained < random.reindex(trained.index, level="data"))
