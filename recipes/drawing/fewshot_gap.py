"""What docs/results/fewshot.md says of the gap between images and prototypes, and of heads that start from class weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from tables import Difference, difference, markdown, mean, number, read_csv, signed

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
        "gap_figure": "fewshot/gap.svg",
        "gap_claims": claims(rows),
        "gap_panels": panels(rows),
        "gap_moves": moves(rows),
        "gap_coefficients": coefficients(rows),
        "class_weights": class_weights(weights),
    }


def at(rows: pd.DataFrame, rule: str, head: str, moved: str, place: float, column: str) -> pd.Series:
    """One number a set: the mean over its networks."""
    own = rows[(rows["episodes_by"] == rule) & (rows["head"] == head) & (rows["moved"] == moved) & (rows["at"] == place)]
    return own.groupby("set", sort=True)[column].mean()


def as_it_is(rows: pd.DataFrame, rule: str, head: str, column: str) -> pd.Series:
    return at(rows, rule, head, "features", 0.0, column)


def claims(rows: pd.DataFrame) -> str:
    """Each statement of docs/log.md with both rules."""

    def less(column: str, head: str, other: str) -> Callable[[str], pd.Series]:
        return lambda rule: as_it_is(rows, rule, head, column) - as_it_is(rows, rule, other, column)

    def moved(head: str, how: str, place: float) -> Callable[[str], pd.Series]:
        return lambda rule: at(rows, rule, head, how, place, "difference")

    asked: dict[str, tuple[Callable[[str], pd.Series], int]] = {
        "one map narrows the gap: URL at 0.1 less embeddings": (less("gap", "url", "ncc"), -1),
        "the same at rate 1": (less("gap", "url:learning_rate=unseen", "ncc"), -1),
        "CoPA widens the gap: CoPA less embeddings": (less("gap", "copa", "ncc"), 1),
        "(a) two maps are better than one: CoPA less its loss with one map": (less("accuracy", "copa", "copa:shared=True"), 1),
        "(b) CoPA is worse with its gap closed: features moved": (moved("copa", "features", CLOSED), -1),
        "(b) the same: the mean of both maps in place of two": (moved("copa", "maps", 0.0), -1),
        **{
            f"(c) embeddings are better with a wider gap: {place:g} added": (moved("ncc", "features", place), 1)
            for place in WIDER
        },
    }
    lines = []
    for said, (values, sign) in asked.items():
        found = [difference(values(rule)) for rule in RULES]
        lines.append([said, *map(signed, found), verdict(found, sign)])
    return markdown(["statement", *RULES, "holds"], lines)


def verdict(found: list[Difference | None], sign: int) -> str:
    holds = [each is not None and sign * each.mean > 0 and each.excludes_0 for each in found]
    against = [each is not None and sign * each.mean < 0 and each.excludes_0 for each in found]
    if all(holds):
        return "yes"
    known = {rule: "yes" if yes else "the opposite" for rule, yes, no in zip(RULES, holds, against, strict=True) if yes or no}
    return ", ".join(f"{word} ({rule})" for rule, word in known.items()) or "not decided"


def panels(rows: pd.DataFrame) -> str:
    """‖Δ‖, each prototype once per image, by set."""
    lines = [
        [rule, name, *(number(as_it_is(rows, rule, head, "gap").get(name), ".3f") for head in HEADS)]
        for rule in RULES
        for name in sorted({*rows["set"]})
    ]
    return markdown(["episodes", "set", *HEADS.values()], lines)


def draw_panels(path: Path, rows: pd.DataFrame) -> None:
    """‖Δ‖ of every set by head, one line each, and the mean over sets, one panel a rule."""
    with mpl.rc_context({"svg.hashsalt": "gap", "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=(6.4, 3.0), layout="constrained")
        for axes, rule in zip(figure.subplots(1, len(RULES), sharey=True), RULES, strict=True):
            by_head = pd.DataFrame({title: as_it_is(rows, rule, head, "gap") for head, title in HEADS.items()})
            for _, of_set in by_head.iterrows():
                axes.plot(of_set.to_numpy(), "o-", color="#999999", markersize=2.5, linewidth=0.7)
            axes.plot(by_head.mean().to_numpy(), "o-", color="#0072b2", markersize=5, linewidth=1.6, label="mean over sets")
            axes.set(title=rule, xticks=range(len(HEADS)))
            axes.set_xticklabels([title.replace(", ", ",\n").replace(" (", "\n(") for title in HEADS.values()])
        figure.axes[0].set_ylim(bottom=0)
        figure.axes[0].set_ylabel("Gap ‖Δ‖ of unit vectors")
        figure.axes[0].legend(frameon=False, loc="upper left")
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def moves(rows: pd.DataFrame) -> str:
    """Accuracy less that of the head as it is, with the gap set."""
    lines = []
    for rule in RULES:
        for head, title in HEADS.items():
            cells = [signed(difference(at(rows, rule, head, "features", place, "difference"))) for place in (CLOSED, 1.0, 4.0)]
            widths = [mean(at(rows, rule, head, "features", place, "gap")) for place in (0.0, CLOSED, 4.0)]
            lines.append([rule, title, " → ".join(f"{width:.2f}" for width in widths[:2]), f"{widths[2]:.2f}", *cells])
    return markdown(["episodes", "head", "gap, closed", "at +4", "closed (−1)", "+1", "+4"], lines)


def coefficients(rows: pd.DataFrame) -> str:
    """M‖Θ‖² and what it bounds, under Meta-Dataset's rule."""
    own = rows[(rows["episodes_by"] == "Meta-Dataset") & (rows["moved"] == "training") & rows["coefficient"].notna()]
    lines = []
    for head, title in HEADS.items():
        for step, of_step in own[own["head"] == head].groupby("at"):
            by_set = of_step.groupby("set")[["coefficient", "squared_ratio"]].mean()
            low, high = by_set["coefficient"].min(), by_set["coefficient"].max()
            ratio = by_set["squared_ratio"]
            lines.append(
                [title, f"{step:.0f}", f"{low:.2f} to {high:.2f}", f"{mean(ratio):.2f} ({ratio.min():.2f} to {ratio.max():.2f})"]
            )
    return markdown(["map", "steps", "M‖Θ‖², over sets", "squared gap over that before"], lines)


def class_weights(rows: pd.DataFrame) -> str:
    """SIM's Table 4 on four sets."""
    lines = []
    for name, of_set in rows.groupby("set", sort=False):
        own = of_set.set_index("head")
        zero, tip, meta = (own.loc[head] for head in ("Zero-shot", "Tip-Adapter-F", "Meta-Adapter"))
        lines.append([name, accuracy(tip), *(less_tip(row) for row in (zero, meta))])
        lines[-1] += [gain(own.loc[f"{head} + ρSIM"]) for head in ("Tip-Adapter-F", "Meta-Adapter")]
    head = ["set", "Tip-Adapter-F", "zero-shot, less it", "Meta-Adapter, less Tip-Adapter-F", "ρSIM on Tip-Adapter-F"]
    return markdown([*head, "ρSIM on Meta-Adapter"], lines)


def less_tip(row: pd.Series) -> str:
    half = "" if pd.isna(row["less_tip_adapter_half"]) else f" ± {row['less_tip_adapter_half']:.3f}"
    return f"{row['accuracy']:.3f} ({row['less_tip_adapter']:+.3f}{half})"


def accuracy(row: pd.Series) -> str:
    half = "" if pd.isna(row["half_width"]) else f" ± {row['half_width']:.3f}"
    return f"{row['accuracy']:.3f}{half}"


def gain(row: pd.Series) -> str:
    others = f"{row['episodes_that_differ']:.0f} of {row['episodes']:.0f}"
    return f"{row['less_without']:+.4f} ± {row['less_without_half']:.4f} ({others})"
