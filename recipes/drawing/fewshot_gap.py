"""What docs/results/fewshot.md says of the gap between images and prototypes, and of heads that start from class weights."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pandas as pd
from figures import figure
from tables import Difference, Lines, body, difference, mean, number, read_csv, signed

HEADS = {
    "ncc": "embeddings (NCC)",
    "url": "URL, rate 0.1",
    "url:learning_rate=unseen": "URL, rate 1",
    "copa:shared=True": "CoPA's loss, one map",
    "copa": "CoPA",
}
RULES = ("5 shots", "Meta-Dataset")
CLOSED, WIDER = -1.0, (1.0, 2.0, 4.0)


def fields(results: Path, figures: Path) -> dict[str, str]:
    rows = read_csv(results / "fewshot" / "gap.csv.gz")
    weights = read_csv(results / "fewshot" / "class-weights.csv")
    draw_panels(figures / "gap.svg", rows)
    return {
        **claims(rows),
        "gap_panels": panels(rows),
        "gap_moves": body(moves(rows)),
        "gap_coefficients": body(coefficients(rows)),
        "class_weights": body(class_weights(weights)),
    }


def at(rows: pd.DataFrame, rule: str, head: str, moved: str, place: float, column: str) -> pd.Series:
    """One number a set: the mean over its networks."""
    own = rows[(rows["episodes_by"] == rule) & (rows["head"] == head) & (rows["moved"] == moved) & (rows["at"] == place)]
    return own.groupby("set", sort=True)[column].mean()


def as_it_is(rows: pd.DataFrame, rule: str, head: str, column: str) -> pd.Series:
    return at(rows, rule, head, "features", 0.0, column)


def claims(rows: pd.DataFrame) -> dict[str, str]:
    """Each statement of docs/log.md with both rules, and whether it holds."""

    def less(column: str, head: str, other: str) -> Callable[[str], pd.Series]:
        return lambda rule: as_it_is(rows, rule, head, column) - as_it_is(rows, rule, other, column)

    def moved(head: str, how: str, place: float) -> Callable[[str], pd.Series]:
        return lambda rule: at(rows, rule, head, how, place, "difference")

    asked: list[tuple[Callable[[str], pd.Series], int]] = [  # in the words of the page
        (less("gap", "url", "ncc"), -1),
        (less("gap", "url:learning_rate=unseen", "ncc"), -1),
        (less("gap", "copa", "ncc"), 1),
        (less("accuracy", "copa", "copa:shared=True"), 1),
        (moved("copa", "features", CLOSED), -1),
        (moved("copa", "maps", 0.0), -1),
        *((moved("ncc", "features", place), 1) for place in WIDER),
    ]
    found = [([difference(values(rule)) for rule in RULES], sign) for values, sign in asked]
    return {
        f"gap_claim_{place}": " | ".join([*map(signed, each), verdict(each, sign)]) for place, (each, sign) in enumerate(found)
    }


def verdict(found: list[Difference | None], sign: int) -> str:
    holds = [each is not None and sign * each.mean > 0 and each.excludes_0 for each in found]
    against = [each is not None and sign * each.mean < 0 and each.excludes_0 for each in found]
    if all(holds):
        return "yes"
    known = {rule: "yes" if yes else "the opposite" for rule, yes, no in zip(RULES, holds, against, strict=True) if yes or no}
    return ", ".join(f"{word} ({rule})" for rule, word in known.items()) or "not decided"


def panels(rows: pd.DataFrame) -> str:
    """‖Δ‖, each prototype once per image, by set."""
    found = {rule: pd.DataFrame({head: as_it_is(rows, rule, head, "gap") for head in HEADS}) for rule in RULES}
    return body([rule, name, *(number(each, ".3f") for each in gap)] for rule in RULES for name, gap in found[rule].iterrows())


def draw_panels(path: Path, rows: pd.DataFrame) -> None:
    """‖Δ‖ of every set by head, one line each, and the mean over sets, one panel a rule."""
    with figure(path, (6.4, 3.0)) as drawn:
        for axes, rule in zip(drawn.subplots(1, len(RULES), sharey=True), RULES, strict=True):
            by_head = pd.DataFrame({title: as_it_is(rows, rule, head, "gap") for head, title in HEADS.items()})
            for _, of_set in by_head.iterrows():
                axes.plot(of_set.to_numpy(), "o-", color="#999999", markersize=2.5, linewidth=0.7)
            axes.plot(by_head.mean().to_numpy(), "o-", color="#0072b2", markersize=5, linewidth=1.6, label="mean over sets")
            axes.set(title=rule, xticks=range(len(HEADS)))
            axes.set_xticklabels([title.replace(", ", ",\n").replace(" (", "\n(") for title in HEADS.values()])
        drawn.axes[0].set_ylim(bottom=0)
        drawn.axes[0].set_ylabel("Gap ‖Δ‖ of unit vectors")
        drawn.axes[0].legend(frameon=False, loc="upper left")


def moves(rows: pd.DataFrame) -> Lines:
    """Accuracy less that of the head as it is, with the gap set."""
    for rule, (head, title) in product(RULES, HEADS.items()):
        cells = [signed(difference(at(rows, rule, head, "features", place, "difference"))) for place in (CLOSED, 1.0, 4.0)]
        whole, closed, wide = (mean(at(rows, rule, head, "features", place, "gap")) for place in (0.0, CLOSED, 4.0))
        yield [rule, title, f"{whole:.2f} → {closed:.2f}", f"{wide:.2f}", *cells]


def coefficients(rows: pd.DataFrame) -> Lines:
    """M‖Θ‖² and what it bounds, under Meta-Dataset's rule."""
    own = rows[(rows["episodes_by"] == "Meta-Dataset") & (rows["moved"] == "training") & rows["coefficient"].notna()]
    for head, title in HEADS.items():
        for step, of_step in own[own["head"] == head].groupby("at"):
            bound, ratio = (of_step.groupby("set")[column].mean() for column in ("coefficient", "squared_ratio"))
            cells = [f"{bound.min():.2f} to {bound.max():.2f}", f"{mean(ratio):.2f} ({ratio.min():.2f} to {ratio.max():.2f})"]
            yield [title, f"{step:.0f}", *cells]


def class_weights(rows: pd.DataFrame) -> Lines:
    """SIM's Table 4 on four sets."""
    for name, of_set in rows.groupby("set", sort=False):
        own = {row.head: row for row in of_set.itertuples()}
        zero, tip, meta = (own[head] for head in ("Zero-shot", "Tip-Adapter-F", "Meta-Adapter"))
        accuracy = f"{tip.accuracy:.3f}{half(tip.half_width)}"
        less_tip = [f"{row.accuracy:.3f} ({row.less_tip_adapter:+.3f}{half(row.less_tip_adapter_half)})" for row in (zero, meta)]
        yield [name, accuracy, *less_tip, *(gain(own[f"{row.head} + ρSIM"]) for row in (tip, meta))]


def half(width: float) -> str:
    return "" if pd.isna(width) else f" ± {width:.3f}"


def gain(row: tuple[object, ...]) -> str:
    others = f"{row.episodes_that_differ:.0f} of {row.episodes:.0f}"
    return f"{row.less_without:+.4f} ± {row.less_without_half:.4f} ({others})"
