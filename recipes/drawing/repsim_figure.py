"""The figure of docs/results/repsim.md: accuracy against similarity, one panel a kind of network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from tables import PLACE, mean

LOOKS = {  # variant: colour (safe for the colour-blind), marker
    "full": ("#000000", "s"),
    "linear": ("#000000", "o"),
    "l2_sp": ("#009E73", "h"),
    "hcs 0.8": ("#0072B2", "o"),
    "paper": ("#999999", "D"),
    "batch": ("#D55E00", "^"),
    "repsim": ("#CC79A7", "*"),
    "procrustes": ("#E69F00", "P"),
}
FREE = "#56B4E9"


def draw(path: Path, panels: Mapping[str, tuple[pd.DataFrame, pd.DataFrame]]) -> None:
    """An SVG, the same bytes from the same rows; ``panels`` are trainings and interpolated networks of each kind."""
    with mpl.rc_context({"svg.hashsalt": "trade-off", "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=(3.4 * len(panels), 3.2), layout="constrained")
        axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for panel, (title, (rows, curve)) in zip(axes, panels.items(), strict=True):
            draw_kind(panel, rows, curve[curve["batch_norm"] == "mix"])
            panel.set(title=title, xlabel="CKA to the pretrained network, debiased", xlim=(-0.02, 1.04))
        axes[0].set_ylabel("Accuracy on test")
        shown = {label: handle for each in axes for handle, label in zip(*each.get_legend_handles_labels(), strict=True)}
        figure.legend(shown.values(), shown.keys(), loc="outside right upper", frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def draw_kind(axes: Axes, rows: pd.DataFrame, curve: pd.DataFrame) -> None:
    """What a seed has trained on every set and network of FULL, in the trainings that all variants have."""
    trained = {name: rows[rows["variant"] == name] for name in LOOKS}
    full = {*zip(trained["full"]["set"], trained["full"]["model"], strict=True)}
    trained = {
        name: own
        for name, own in trained.items()
        if any(full <= {*zip(seed["set"], seed["model"], strict=True)} for _, seed in own.groupby("seed"))
    }
    complete = set.intersection(*({*own[PLACE].itertuples(index=False, name=None)} for own in trained.values()))
    points = {name: point(own, complete) for name, own in trained.items()}
    free = [point(own, complete) for _, own in curve.groupby("alpha")]
    axes.plot([x for x, _ in free], [y for _, y in free], ":", color=FREE, label="weights mixed", zorder=1)
    ends = [points["full"], points["linear"]]
    axes.plot([x for x, _ in ends], [y for _, y in ends], "-", color="#CCCCCC", linewidth=0.8, zorder=0)
    for name, (x, y) in points.items():
        colour, marker = LOOKS[name]
        axes.plot([x], [y], marker, color=colour, label=name, markersize=7, zorder=2)


def point(rows: pd.DataFrame, complete: set[tuple[object, ...]]) -> tuple[float, float]:
    """Mean similarity and accuracy."""
    own = rows[[key in complete for key in rows[PLACE].itertuples(index=False, name=None)]]
    both = own[["cka_debiased", "accuracy"]].dropna()
    return mean(both["cka_debiased"]), mean(both["accuracy"])
