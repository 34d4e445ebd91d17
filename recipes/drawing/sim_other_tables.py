"""Tables of docs/results/sim-other-tasks.md, from what an example of examples/sim left: arms beside each other, and pairs.

Rows have ``data``, ``network``, ``arm``, ``seed``, ``metric``, ``value``. Trainings of one data set, network and seed differ by
their arm alone, so that they are pairs. Of the arm ``trivial``, the network is the name of that answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from tables import Difference, difference, half_width, markdown, mean

ARMS = {"trivial": "Trivial", "without": "Without", "rho_sim": "ρSIM", "placebo": "Placebo"}
"""Arm → the head of its column."""
OTHERS = {"without": "without", "placebo": "its placebo"}
"""Arms that ρSIM is compared with → what they are called there."""
PLACE = ["data", "network", "seed"]


def values_of(rows: pd.DataFrame, arm: str) -> pd.Series:
    """One metric of every training of an arm, by data, network and seed."""
    return rows[rows["arm"] == arm].set_index(PLACE)["value"].sort_index()


def paired(rows: pd.DataFrame, first: str, second: str) -> Difference | None:
    """Mean of ``first`` − ``second`` over all their pairs with its interval; None of fewer than two."""
    return difference((values_of(rows, first) - values_of(rows, second)).dropna())


def trivial_told(rows: pd.DataFrame) -> str:
    """Data set → name of its trivial answer, in words."""
    names = rows[rows["arm"] == "trivial"].groupby("data", sort=False)["network"].unique()
    return "; ".join(f"{data}: {', '.join(each)}" for data, each in names.items())


def told_value(values: Sequence[float], digits: int) -> str:
    """Mean with its 95 % interval (Student's t); the mean alone of one value, – of none."""
    if len(values) < 2:
        return f"{values[0]:.{digits}f}" if len(values) else "–"
    middle, half = mean(values), half_width([*values])
    return f"{middle:.{digits}f} [{middle - half:.{digits}f}, {middle + half:.{digits}f}]"


def told_difference(found: Difference | None, digits: int) -> str:
    """Bold where the interval excludes 0; – of none."""
    if found is None:
        return "–"
    told = "{:+.{d}f} [{:+.{d}f}, {:+.{d}f}]".format(*found[:3], d=digits)
    return f"**{told}**" if found.excludes_0 else told


def arms_table(rows: pd.DataFrame, digits: int = 1, arms: Mapping[str, str] = ARMS) -> str:
    """A line for each data set, network and metric, in the order of the rows, and a column for each arm."""
    trained, trivial = rows[rows["arm"] != "trivial"], rows[rows["arm"] == "trivial"]
    lines: list[list[str]] = []
    for (data, network, metric), own in trained.groupby(["data", "network", "metric"], sort=False):
        beside = trivial[(trivial["data"] == data) & (trivial["metric"] == metric)]
        seen = pd.concat([own, beside])
        lines.append([data, network, metric, *(told_value(seen[seen["arm"] == arm]["value"].tolist(), digits) for arm in arms)])
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
    trained = rows[rows["arm"] != "trivial"]
    lines: list[list[str]] = []
    for (data, metric), own in trained.groupby(["data", "metric"], sort=False):
        networks = dict([*own.groupby("network", sort=False)])
        for network, each in (networks if len(networks) < 2 else {**networks, "all": own}).items():
            cells = [told_difference(paired(each, "rho_sim", other), digits) for other in others]
            lines.append([data, network, metric, *cells, *([] if published is None else [published.get(str(network), "–")])])
    head = ["Data", "Network", "Metric", *(f"ρSIM − {name}" for name in others.values())]
    return markdown([*head, *([] if published is None else ["Published"])], lines)


def verdict(rows: pd.DataFrame, *, more_is_better: bool = True, others: Mapping[str, str] = OTHERS, digits: int = 1) -> str:
    """What the rule of docs/log.md says of one metric over all its pairs, as a clause without a full stop."""
    found = {name: paired(rows, "rho_sim", other) for other, name in others.items()}
    differences = [each for each in found.values() if each is not None]
    if len(differences) < len(found):
        return "not measured"
    is_above, is_below = all(each.low > 0 for each in differences), all(each.high < 0 for each in differences)
    is_gain, is_loss = (is_above, is_below) if more_is_better else (is_below, is_above)
    said = "a gain by ρSIM is shown" if is_gain else "a loss by ρSIM is shown" if is_loss else "no effect of ρSIM is shown"
    return f"{said} ({', '.join(f'{told_difference(each, digits)} to {name}' for name, each in found.items())})"
