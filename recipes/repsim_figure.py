"""The figure of docs/results/repsim.md: accuracy against similarity, one panel a kind of network."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from study_rows import CurveRow, Table, TrainingRow

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


def write_figure(path: Path, panels: Mapping[str, Mapping[str, Table]]) -> None:
    """An SVG, the same bytes from the same rows; ``panels`` are the tables of each kind of network."""
    with mpl.rc_context({"svg.hashsalt": "trade-off", "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=(3.4 * len(panels), 3.2), layout="constrained")
        axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for panel, (title, tables) in zip(axes, panels.items(), strict=True):
            _draw(panel, tables)
            panel.set(title=title, xlabel="CKA to the pretrained network, debiased", xlim=(-0.02, 1.04))
        axes[0].set_ylabel("Accuracy on test")
        shown = {label: handle for each in axes for handle, label in zip(*each.get_legend_handles_labels(), strict=True)}
        if shown:
            figure.legend(shown.values(), shown.keys(), loc="outside right upper", frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _draw(axes: Axes, tables: Mapping[str, Table]) -> None:
    rows = [(name, row) for name, table in tables.items() for row in table.trainings if row.state == "done"]
    of_variant = {name: [(place, row) for place, row in rows if row.variant == name] for name in LOOKS}
    of_variant = {name: found for name, found in of_variant.items() if _is_whole(found, of_variant["full"])}
    complete = set.intersection(*map(_places, of_variant.values())) if of_variant else set()
    points = {
        name: _mean([row for place, row in found if (place, row.model, row.seed) in complete])
        for name, found in of_variant.items()
    }
    curve = [(name, row) for name, table in tables.items() for row in table.curve if row.batch_norm == "mix"]
    curve = [(name, row) for name, row in curve if (name, row.model, row.seed) in complete]
    free = [_mean([row for _, row in curve if row.alpha == alpha]) for alpha in sorted({row.alpha for _, row in curve})]
    axes.plot(*_columns(free), ":", color=FREE, label="weights mixed", zorder=1)
    ends = [points[name] for name in ("full", "linear") if name in points]
    axes.plot(*_columns(ends), "-", color="#CCCCCC", linewidth=0.8, zorder=0)
    for name, (x, y) in points.items():
        colour, marker = LOOKS[name]
        if x == x:
            axes.plot([x], [y], marker, color=colour, label=name, markersize=7, zorder=2)


def _is_whole(found: Sequence[tuple[str, TrainingRow]], full: Sequence[tuple[str, TrainingRow]]) -> bool:
    """Whether a seed has every set and network of FULL; one with a few of them would decide which all others are drawn for."""
    wanted = {(name, row.model) for name, row in full}
    seeds = {row.seed for _, row in found}
    return any(wanted <= {(name, row.model) for name, row in found if row.seed == seed} for seed in seeds)


def _places(found: Sequence[tuple[str, TrainingRow]]) -> set[tuple[str, str, int]]:
    return {(name, row.model, row.seed) for name, row in found}


def _mean(rows: Sequence[TrainingRow | CurveRow]) -> tuple[float, float]:
    pairs = [(row.cka_debiased, row.accuracy) for row in rows if row.cka_debiased is not None and row.accuracy is not None]
    if not pairs:
        return float("nan"), float("nan")
    return statistics.fmean(x for x, _ in pairs), statistics.fmean(y for _, y in pairs)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
