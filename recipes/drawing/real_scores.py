"""What docs/results/real-scores.md says of all scores of seventeen checkpoints: their orders, and whether they agree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from tables import half_width, mean, read_csv, row_of

YARDSTICK = "Linear probe"
SETS = ("set", "images", "classes", "groups", "models", "controls", "cpu_seconds", "wall_seconds")


def fields(results: Path, figures: Path) -> dict[str, str]:
    folder = results / "real-scores"
    names = ("sets", "orders", "logme", "costs", "warnings", "checks")
    sets, orders, logme, costs, warnings, checks = (read_csv(folder / f"{name}.csv") for name in names)
    ranks = {place: ranks_of(row) for place, row in orders.set_index(["set", "score"])["order"].items()}
    titles, scores = list(sets["set"]), list(dict.fromkeys(orders["score"]))
    agreement = {
        (one, other): [spearman(ranks[title, one], ranks[title, other]) for title in titles] for one in scores for other in scores
    }
    logme = logme.assign(shown=[f"{number(r.value, 3)} [{number(r.low, 3)}, {number(r.high, 3)}]" for r in logme.itertuples()])
    shown = logme.pivot(index="model", columns="set", values="shown").fillna("—").loc[list(dict.fromkeys(logme["model"])), titles]
    head = ["Set", "Images", "Classes", "Groups", "Models", "Random controls", "CPU seconds", "Wall seconds"]
    costs = [[row.score, f"{row.median:.3f}", f"{row.largest:.3f}"] for row in costs.itertuples()]
    return {
        "set_table": table(head, sets[list(SETS)].to_numpy().tolist()),
        "findings": "\n".join(f"- {each}" for each in findings(titles, scores, orders, ranks, agreement)),
        "orders": "\n\n".join(order_table(title, orders[orders["set"] == title]) for title in titles),
        "logme": table(["Model", *titles], [[model, *cells] for model, cells in shown.iterrows()]),
        "with_probe": probe_table(titles, [score for score in scores if score != YARDSTICK], agreement),
        "matrix": matrix(scores, agreement),
        "costs": table(["Score", "Median", "Largest"], costs),
        "warnings": table(["Score", "What", "Text", "Cells"], warnings.to_numpy().tolist(), numbers_from=3),
        "checks": table(["Set", "Severity", "What", "Text"], checks.to_numpy().tolist(), numbers_from=4),
    }


def table(head: Sequence[str], rows: Sequence[Sequence[object]], *, numbers_from: int = 1) -> str:
    """Columns from ``numbers_from`` on are aligned to the right."""
    rule = ["---" if column < numbers_from else "---:" for column in range(len(head))]
    return "\n".join(map(row_of, [head, rule, *rows]))


def number(value: float, digits: int = 2) -> str:
    return "—" if np.isnan(value) else f"{value:.{digits}f}".replace("-", "−")


def ranks_of(order: str) -> pd.Series:
    """Model → place from the last one up; models joined by ``=`` share one."""
    groups = order.split(" ")
    return pd.Series({model: float(len(groups) - place) for place, group in enumerate(groups) for model in group.split("=")})


def spearman(one: pd.Series, other: pd.Series) -> float:
    """Over the models that have both."""
    both = pd.concat([one, other], axis=1, join="inner")
    return float(stats.spearmanr(both[0], both[1]).statistic)


def order_table(title: str, rows: pd.DataFrame) -> str:
    lines = []
    for row in rows.itertuples():
        level, chance = ("—" if pd.isna(each) else f"{each:.0f}" for each in (row.level, row.chance))
        lines.append([row.score, row.order, level, "—" if pd.isna(row.pairs) else row.pairs, chance])
    note = "Without the pneumonia CNN, which was trained on these very images.\n\n" if title == "PneumoniaMNIST" else ""
    return f"### {title}\n\n{note}" + table(["Score", "Order", "Level with the first", "Pairs", "Chance"], lines, numbers_from=2)


def findings(titles: Sequence[str], scores: Sequence[str], orders: pd.DataFrame, ranks, agreement):
    """Counts only."""
    levels = orders[orders["score"] == "LogME"].set_index("set")["level"]
    for title in titles:
        firsts = len({ranks[title, score].idxmax() for score in scores})
        yield (
            f"{title}: LogME does not separate its first model from {levels[title]:.0f} others, and the {len(scores)} scores "
            f"name {firsts} different first models."
        )
    found = {score: agreement[score, YARDSTICK] for score in scores if score != YARDSTICK}
    clear = [score for score, values in found.items() if mean(values) - half_width(values) > 0]
    below = [score for score, values in found.items() if mean(values) < 0]
    yield (
        f"The mean correlation with the linear probe is above 0, with its whole interval, for {len(clear)} of {len(found)} "
        f"scores: {', '.join(clear[:-1])} and {clear[-1]}."
    )
    yield f"It is below 0 on average for: {', '.join(below) or 'none'}."


def probe_table(titles: Sequence[str], scores: Sequence[str], agreement) -> str:
    lines = []
    for score in sorted(scores, key=lambda score: -mean(agreement[score, YARDSTICK])):
        values = agreement[score, YARDSTICK]
        middle, half = mean(values), half_width(values)
        last = f"{number(middle)} [{number(middle - half)}, {number(middle + half)}]"
        lines.append([score, *map(number, values), last])
    return table(["Score", *titles, "Mean"], lines)


def matrix(scores: Sequence[str], agreement) -> str:
    """Mean over the sets, below the diagonal."""
    lines = []
    for place, one in enumerate(scores):
        cells = [number(mean(agreement[one, other])) for other in scores[:place]]
        lines.append([f"{place + 1} {one}", *cells, *[""] * (len(scores) - place)])
    return table(["Score", *(str(place + 1) for place in range(len(scores)))], lines)
