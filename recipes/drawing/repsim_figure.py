"""The figure of docs/results/repsim.md: accuracy against similarity, one panel a kind of network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from figures import figure, legend
from matplotlib.axes import Axes
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
    """``panels`` are trainings and interpolated networks of each kind."""
    with figure(path, (3.4 * len(panels), 3.2)) as drawn:
        axes = drawn.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for panel, (title, (rows, curve)) in zip(axes, panels.items(), strict=True):
            draw_kind(panel, rows, curve[curve["batch_norm"] == "mix"])
            panel.set(title=title, xlabel="CKA to the pretrained network, debiased", xlim=(-0.02, 1.04))
        axes[0].set_ylabel("Accuracy on test")
        legend(drawn, axes, "outside right upper")


def draw_kind(axes: Axes, rows: pd.DataFrame, curve: pd.DataFrame) -> None:
    """What a seed has trained on every set and network of FULL, in the trainings that all variants have."""
    trained = {name: pd.MultiIndex.from_frame(rows.loc[rows["variant"] == name, PLACE]) for name in LOOKS}
    full = {*trained["full"].droplevel("seed")}
    trained = {
        name: places
        for name, places in trained.items()
        if any(full <= {*places[places.get_level_values("seed") == seed].droplevel("seed")} for seed in places.unique("seed"))
    }
    complete = set.intersection(*({*places} for places in trained.values()))
    points = {name: point(rows[rows["variant"] == name], complete) for name in trained}
    free = [point(own, complete) for _, own in curve.groupby("alpha")]
    axes.plot(*zip(*free, strict=True), ":", color=FREE, label="weights mixed", zorder=1)
    axes.plot(*zip(points["full"], points["linear"], strict=True), "-", color="#CCCCCC", linewidth=0.8, zorder=0)
    for name, (x, y) in points.items():
        colour, marker = LOOKS[name]
        axes.plot([x], [y], marker, color=colour, label=name, markersize=7, zorder=2)


def point(rows: pd.DataFrame, complete: set[tuple[object, ...]]) -> tuple[float, float]:
    """Mean similarity and accuracy."""
    both = rows.set_index(PLACE).loc[lambda own: own.index.isin(complete), ["cka_debiased", "accuracy"]].dropna()
    return mean(both["cka_debiased"]), mean(both["accuracy"])
