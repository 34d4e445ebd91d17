"""Several tasks with one network: tables of docs/results/repsim.md on one task after another, and on the centre of five."""

from __future__ import annotations

import pandas as pd
from tables import Lines, body, difference, mean_and_interval, signed

WAYS = {"full": "FULL", "repsim": "repsim (CKA form)"}
BOTH = {(one, other): f"{first} → {second}" for one, first in WAYS.items() for other, second in WAYS.items()}
"""Ways of the first and of the second training → what they are called."""
KEPT = -0.05
"""The first task counts as kept where the interval of the accuracy lost lies above this (docs/log.md)."""


def seeds_told(rows: pd.DataFrame) -> str:
    """How many seeds there are."""
    number = rows["seed"].nunique()
    return "one seed" if number == 1 else f"{number} seeds"


def by_way(rows: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """Trainings of each pair of ways, by tasks and seed."""
    found = dict(list(rows.groupby(["first_way", "second_way"])))
    return {ways: found[ways].set_index(["first", "second", "seed"]).sort_index() for ways in BOTH}


def one_after_another(rows: pd.DataFrame) -> Lines:
    """One row per way to train both tasks."""
    found = by_way(rows)
    alone = found["full", "full"]
    for ways, title in BOTH.items():
        own = found[ways]
        first, again, second = (
            mean_and_interval(own[f"{name}_accuracy"].groupby("seed").mean()) for name in ("first", "first_again", "second")
        )
        lost = [signed(difference(own[f"first_again_{name}"] - alone[f"first_{name}"])) for name in ("accuracy", "auc")]
        gained = signed(difference(own["second_accuracy"] - alone["second_accuracy"]))
        yield [title, first, again, *lost, second, gained]


def by_order(rows: pd.DataFrame) -> Lines:
    """Accuracy of the first task after the second one, by order of tasks, means over seeds."""
    for (first, second), own in rows.groupby(["first", "second"], sort=False):
        before = own[own["first_way"] == "full"]["first_accuracy"].mean()
        after = own.groupby(["first_way", "second_way"])["first_again_accuracy"].mean()
        yield [f"{first} → {second}", f"{before:.3f}", *(f"{after[ways]:.3f}" for ways in BOTH)]


def whether_kept(rows: pd.DataFrame) -> str:
    """What the rules of the log say of each way."""
    found = by_way(rows)
    alone, said = found["full", "full"]["first_accuracy"], {"kept": [], "lost": [], "open": []}
    for ways, title in BOTH.items():
        lost = difference(found[ways]["first_again_accuracy"] - alone)
        said["kept" if lost.low > KEPT else "lost" if lost.high < KEPT else "open"].append(title)
    parts = [
        f"kept by {', '.join(said['kept'])}" if said["kept"] else "kept by none of the ways",
        *([f"lost by {', '.join(said['lost'])}"] if said["lost"] else []),
        *([f"not decided for {', '.join(said['open'])}"] if said["open"] else []),
    ]
    return "; ".join(parts)


def around_the_centre(rows: pd.DataFrame) -> str:
    """Table 3: distance to the centre by task, mean over seeds with an interval."""
    by_task = rows.pivot(index=["task", "seed"], columns="way", values="to_centre_l2")
    found = {task: by_task.loc[task] for task in dict.fromkeys(rows["task"])} | {"**mean**": by_task.groupby("seed").mean()}
    return body(
        [task, *(mean_and_interval(own[way]) for way in WAYS), signed(difference(own["repsim"] - own["full"]))]
        for task, own in found.items()
    )
