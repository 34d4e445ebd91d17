"""What docs/results/real-scores.md says of all scores of seventeen checkpoints: their orders, and whether they agree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from tables import Lines, body, half_width, markdown, mean, read_csv, typeset

from crossgraft.scores import SCORES

YARDSTICK = "Linear probe"
Agreement = dict[tuple[str, str], list[float]]
"""Two scores → their correlation on each set."""
SHORT = {
    "mobilenetv1_025 · ImageNet": "v1-025", "mobilenetv1_025 · person or not": "v1-person",
    "mobilenetv1_050 · ImageNet": "v1-050", "mobilenetv1_075 · ImageNet": "v1-075", "mobilenetv1_100 · ImageNet": "v1-100",
    "mobilenetv2_035 · ImageNet": "v2-035", "mobilenetv2_100 · ImageNet": "v2-100", "mobilenetv2_100 · birds": "v2-birds",
    "mobilenetv2_100 · insects": "v2-insects", "resnet20 · CIFAR-10": "r20", "resnet32 · CIFAR-10": "r32",
    "resnet44 · CIFAR-10": "r44", "resnet56 · CIFAR-10": "r56", "conv4 · miniImageNet, 5-shot": "c4-5shot",
    "conv4 · miniImageNet, 1-shot": "c4-1shot", "conv4 · Omniglot": "c4-omniglot", "pneumonia_cnn · PneumoniaMNIST": "pneumonia",
}  # fmt: skip


def fields(results: Path, figures: Path) -> dict[str, str]:
    rows, checks = (read_csv(results / "real-scores" / f"{name}.csv") for name in ("values", "checks"))
    known = {score.title: place for place, score in enumerate(map(SCORES.get, SCORES.names()))}
    titles, scores = list(rows["set"].unique()), sorted(rows["score"].unique(), key=known.__getitem__)
    cells = {place: own.set_index("model") for place, own in rows.groupby(["set", "score"])}
    agreement = {
        (one, other): [spearman(cells[title, one]["value"], cells[title, other]["value"]) for title in titles]
        for one in scores
        for other in scores
    }
    logme = rows[rows["score"] == "LogME"]
    logme = logme.assign(shown=[f"{number(r.value, 3)} [{number(r.low, 3)}, {number(r.high, 3)}]" for r in logme.itertuples()])
    shown = logme.pivot(index="model", columns="set", values="shown").fillna("—").loc[list(SHORT), titles]
    return {
        "findings": "\n".join(f"- {each}" for each in findings(titles, scores, cells, agreement)),
        "short_names": ", ".join(f"{short} = {model}" for model, short in SHORT.items()),
        "orders": "\n\n".join(order_table(title, {score: cells[title, score] for score in scores}) for title in titles),
        "logme": body([model, *each] for model, each in shown.iterrows()),
        "with_probe": body(probe_table([score for score in scores if score != YARDSTICK], agreement)),
        "matrix": matrix(scores, agreement),
        "costs": body(costs(rows)),
        "checks": body(checks.to_numpy().tolist()),
    }


def number(value: float, digits: int = 2) -> str:
    return "—" if np.isnan(value) else typeset(f"{value:.{digits}f}")


def spearman(one: pd.Series, other: pd.Series) -> float:
    """Over the models that have both."""
    both = pd.concat([one, other], axis=1, join="inner")
    return float(stats.spearmanr(both.iloc[:, 0], both.iloc[:, 1]).statistic)


def order_table(title: str, of_scores: Mapping[str, pd.DataFrame]) -> str:
    lines = [[score, in_order(cells["value"]), *separable(cells)] for score, cells in of_scores.items()]
    note = "Without the pneumonia CNN, which was trained on these very images.\n\n" if title == "PneumoniaMNIST" else ""
    return f"### {title}\n\n{note}" + markdown(["Score", "Order", "Level with the first", "Pairs", "Chance"], lines, 2)


def in_order(values: pd.Series) -> str:
    """Short names, the largest value first; ``=`` joins equal ones."""
    return " ".join("=".join(SHORT[model] for model in own.index) for _, own in sorted(values.groupby(values), reverse=True))


def separable(cells: pd.DataFrame) -> list[str]:
    """How many are level with the first, how many of all pairs are separable, and how many do not exceed shuffled labels."""
    above = cells["above_shuffled"].dropna()
    chance = str((above == False).sum()) if len(above) else "—"  # noqa: E712
    if cells["low"].isna().any():
        return ["—", "—", chance]
    pairs = math.comb(len(cells), 2)
    return [f"{cells.loc[cells['value'].idxmax(), 'level']:.0f}", f"{pairs - cells['level'].sum() // 2:.0f} of {pairs}", chance]


def findings(
    titles: Sequence[str], scores: Sequence[str], cells: Mapping[tuple[str, str], pd.DataFrame], agreement: Agreement
) -> Iterator[str]:
    """Counts only."""
    for title in titles:
        firsts = len({cells[title, score]["value"].idxmax() for score in scores})
        yield (
            f"{title}: LogME does not separate its first model from {separable(cells[title, 'LogME'])[0]} others, and the "
            f"{len(scores)} scores name {firsts} different first models."
        )
    found = {score: agreement[score, YARDSTICK] for score in scores if score != YARDSTICK}
    clear = [score for score, values in found.items() if mean(values) - half_width(values) > 0]
    below = [score for score, values in found.items() if mean(values) < 0]
    yield (
        f"The mean correlation with the linear probe is above 0, with its whole interval, for {len(clear)} of {len(found)} "
        f"scores: {', '.join(clear[:-1])} and {clear[-1]}."
    )
    yield f"It is below 0 on average for: {', '.join(below) or 'none'}."


def costs(rows: pd.DataFrame) -> Lines:
    found = rows.groupby("score")["seconds"].agg(["median", "max"]).sort_values("median", ascending=False)
    for row in found.itertuples():
        yield [row.Index, f"{row.median:.3f}", f"{row.max:.3f}"]


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
