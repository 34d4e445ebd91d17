"""Several tasks with one network: tables of docs/results/repsim.md on one task after another, and on the centre of five."""

from __future__ import annotations

import pandas as pd
from tables import difference, markdown, mean_and_interval, number, signed

WAYS = {"full": "FULL", "repsim": "repsim (CKA form)"}
KEPT = -0.05
"""The first task counts as kept where the interval of the accuracy lost lies above this (docs/log.md)."""
_PLACE = ["first", "second", "seed"]


def whole_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """Without the last seed where not all of it is trained."""
    sizes = rows.groupby("seed").size()
    return rows[rows["seed"].isin(sizes[sizes == sizes.max()].index)]


def seeds_told(rows: pd.DataFrame) -> str:
    """How many seeds there are."""
    number = rows["seed"].nunique()
    return "one seed" if number == 1 else f"{number} seeds"


def _of(rows: pd.DataFrame, first_way: str, second_way: str) -> pd.DataFrame:
    own = rows[(rows["first_way"] == first_way) & (rows["second_way"] == second_way)]
    return own.set_index(_PLACE).sort_index()


def _by_seed(values: pd.Series) -> str:
    return mean_and_interval(values.groupby("seed").mean())


def one_after_another(rows: pd.DataFrame) -> str:
    """One row per way to train both tasks."""
    alone = _of(rows, "full", "full")
    lines: list[list[str]] = []
    for first_way, first_title in WAYS.items():
        for second_way, second_title in WAYS.items():
            own = _of(rows, first_way, second_way)
            lines.append(
                [
                    f"{first_title} → {second_title}",
                    _by_seed(own["first_accuracy"]),
                    _by_seed(own["first_again_accuracy"]),
                    signed(difference(own["first_again_accuracy"] - alone["first_accuracy"])),
                    signed(difference(own["first_again_auc"] - alone["first_auc"])),
                    _by_seed(own["second_accuracy"]),
                    signed(difference(own["second_accuracy"] - alone["second_accuracy"])),
                ]
            )
    head = [
        "First task → second task",
        "First task, before",
        "First task, after",
        "− FULL's before",
        "AUC: − FULL's before",
        "Second task",
        "− that of FULL → FULL",
    ]
    return markdown(head, lines)


def by_order(rows: pd.DataFrame) -> str:
    """Accuracy of the first task after the second one, by order of tasks, means over seeds."""
    lines: list[list[str]] = []
    for (first, second), own in rows.groupby(["first", "second"], sort=False):
        before = own[own["first_way"] == "full"]["first_accuracy"].mean()
        after = [
            own[(own["first_way"] == one) & (own["second_way"] == other)]["first_again_accuracy"].mean()
            for one in WAYS
            for other in WAYS
        ]
        lines.append([f"{first} → {second}", number(before, ".3f"), *(number(each, ".3f") for each in after)])
    head = ["Tasks", "FULL's before", *(f"{one} → {other}" for one in WAYS.values() for other in WAYS.values())]
    return markdown(head, lines)


def whether_kept(rows: pd.DataFrame) -> str:
    """What the rules of the log say of each way."""
    alone = _of(rows, "full", "full")
    kept: list[str] = []
    lost: list[str] = []
    open_: list[str] = []
    for first_way, first_title in WAYS.items():
        for second_way, second_title in WAYS.items():
            found = difference(_of(rows, first_way, second_way)["first_again_accuracy"] - alone["first_accuracy"])
            title = f"{first_title} → {second_title}"
            if found is not None:
                (kept if found.low > KEPT else lost if found.high < KEPT else open_).append(title)
    parts = [
        f"kept by {', '.join(kept)}" if kept else "kept by none of the ways",
        *([f"lost by {', '.join(lost)}"] if lost else []),
        *([f"not decided for {', '.join(open_)}"] if open_ else []),
    ]
    return f"By the rule of the [log](../log.md#repsim-in-short-runs) the first task is {'; '.join(parts)}."


def around_the_centre(rows: pd.DataFrame) -> str:
    """Table 3: distance to the centre by task, mean over seeds with an interval."""
    lines: list[list[str]] = []
    for task, own in rows.groupby("task", sort=False):
        full, repsim = (own[own["way"] == way].set_index("seed")["to_centre_l2"].sort_index() for way in WAYS)
        lines.append([str(task), mean_and_interval(full), mean_and_interval(repsim), signed(difference(repsim - full))])
    full, repsim = (rows[rows["way"] == way].groupby("seed")["to_centre_l2"].mean() for way in WAYS)
    lines.append(["**mean**", mean_and_interval(full), mean_and_interval(repsim), signed(difference(repsim - full))])
    return markdown(["Task", *WAYS.values(), "Difference"], lines)
