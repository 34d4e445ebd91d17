"""What docs/results/real-scores.md says of all scores of seventeen checkpoints: their orders, and whether they agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from tables import Lines, body, body_of, half_width, markdown, mean, read_csv, typeset

YARDSTICK = "Linear probe"
Agreement = dict[tuple[str, str], list[float]]
"""Two scores → their correlation on each set."""
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
    return {
        "set_table": body(sets[list(SETS)].to_numpy().tolist()),
        "findings": "\n".join(f"- {each}" for each in findings(titles, scores, orders, ranks, agreement)),
        "orders": "\n\n".join(order_table(title, orders[orders["set"] == title]) for title in titles),
        "logme": body([model, *cells] for model, cells in shown.iterrows()),
        "with_probe": body(probe_table([score for score in scores if score != YARDSTICK], agreement)),
        "matrix": matrix(scores, agreement),
        "costs": body_of(costs, "{score}", "{median:.3f}", "{largest:.3f}"),
        "warnings": body(warnings.to_numpy().tolist()),
        "checks": body(checks.to_numpy().tolist()),
    }


def number(value: float, digits: int = 2) -> str:
    return "—" if np.isnan(value) else typeset(f"{value:.{digits}f}")


def ranks_of(order: str) -> pd.Series:
    """Model → place from the last one up; models joined by ``=`` share one."""
    groups = order.split(" ")
    return pd.Series({model: float(len(groups) - place) for place, group in enumerate(groups) for model in group.split("=")})


def spearman(one: pd.Series, other: pd.Series) -> float:
    """Over the models that have both."""
    both = pd.concat([one, other], axis=1, join="inner")
    return float(stats.spearmanr(both[0], both[1]).statistic)


def order_table(title: str, rows: pd.DataFrame) -> str:
    known = rows[["level", "pairs", "chance"]].map(
        lambda value: "—" if pd.isna(value) else f"{value:.0f}" if np.isreal(value) else value
    )
    lines = pd.concat([rows[["score", "order"]], known], axis=1).to_numpy().tolist()
    note = "Without the pneumonia CNN, which was trained on these very images.\n\n" if title == "PneumoniaMNIST" else ""
    return f"### {title}\n\n{note}" + markdown(["Score", "Order", "Level with the first", "Pairs", "Chance"], lines, 2)


def findings(
    titles: Sequence[str], scores: Sequence[str], orders: pd.DataFrame, ranks: dict, agreement: Agreement
) -> Iterator[str]:
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


def probe_table(scores: Sequence[str], agreement: Agreement) -> Lines:
    for score in sorted(scores, key=lambda score: -mean(agreement[score, YARDSTICK])):
        values = agreement[score, YARDSTICK]
        middle, half = mean(values), half_width(values)
        yield [score, *map(number, values), f"{number(middle)} [{number(middle - half)}, {number(middle + half)}]"]


def matrix(scores: Sequence[str], agreement: Agreement) -> str:
    """Mean over the sets, below the diagonal."""
    means = [[number(mean(agreement[one, other])) for other in scores[:place]] for place, one in enumerate(scores)]
    lines = [[f"{n} {one}", *cells, *[""] * (len(scores) - len(cells))] for n, one, cells in zip(count(1), scores, means)]
    return markdown(["Score", *(str(place + 1) for place in range(len(scores)))], lines, 1)
