"""The figure of docs/results/repsim.md: accuracy against similarity, one column a set, one row an estimate of CKA."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from studies import half_width
from study_rows import CurveRow, Table, TrainingRow

LOOKS = {  # variant: colour (safe for the colour-blind), marker
    "full": ("#000000", "s"),
    "linear": ("#000000", "o"),
    "scratch": ("#999999", "x"),
    "repsim": ("#D55E00", "*"),
    "repsim, weight 10": ("#D55E00", "*"),
    "repsim, weight 100": ("#D55E00", "*"),
    "repsim, Q fixed": ("#D55E00", "v"),
    "repsim, with μ": ("#D55E00", "^"),
    "repsim, as printed": ("#D55E00", "D"),
    "repsim, procrustes": ("#E69F00", "P"),
    "hcs 0.8": ("#0072B2", "o"),
    "hcs 0.6": ("#0072B2", "o"),
    "hcs 0.4": ("#0072B2", "o"),
    "hcs 0.2": ("#0072B2", "o"),
    "l2_sp": ("#009E73", "h"),
}
HCS = ("hcs 0.8", "hcs 0.6", "hcs 0.4", "hcs 0.2")
NAMED_BESIDE = {name: name.rpartition(" ")[2] for name in (*HCS, "repsim, weight 10", "repsim, weight 100")}
"""One marker for several strengths, which stand beside it; in the key once."""
CURVES = {"estimate": ("#56B4E9", "-", "WiSE-FT, estimated"), "mix": ("#56B4E9", ":", "WiSE-FT, mixed")}
ESTIMATES = {"cka": "CKA to the pretrained network", "cka_debiased": "CKA, debiased"}


def write_figure(path: Path, tables: Mapping[str, Table], titles: Mapping[str, str]) -> None:
    """An SVG, the same bytes from the same rows."""
    with mpl.rc_context({"svg.hashsalt": "trade-off", "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=(3.6 * len(titles), 6.4), layout="constrained")
        panels = figure.subplots(len(ESTIMATES), len(titles), squeeze=False, sharex="row", sharey="col")
        for row, (estimate, words) in zip(panels, ESTIMATES.items(), strict=True):
            for axes, (name, title) in zip(row, titles.items(), strict=True):
                _draw(axes, tables[name], estimate)
                axes.set(title=title, xlabel=words, ylabel="Accuracy on test")
        shown = {
            label: handle for axes in panels[0] for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        order = [label for label in [*(words for *_, words in CURVES.values()), *map(_in_key, LOOKS)] if label in shown]
        if shown:
            order = list(dict.fromkeys(order))
            figure.legend([shown[label] for label in order], order, loc="outside right upper", frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _draw(axes: Axes, table: Table, estimate: str) -> None:
    for kind, (colour, style, label) in CURVES.items():
        alphas = sorted({row.alpha for row in table.curve if row.batch_norm == kind})
        of_alphas = [[r for r in table.curve if (r.batch_norm, r.alpha) == (kind, alpha)] for alpha in alphas]
        points = [(_mean(rows, estimate), _mean(rows, "accuracy")) for rows in of_alphas]
        axes.plot(*_columns(points), style, color=colour, label=label, zorder=1)
    of_variant = {
        name: [row for row in table.trainings if row.variant == name and row.state == "done"] for name in LOOKS
    }
    line = [(_mean(of_variant[n], estimate), _mean(of_variant[n], "accuracy")) for n in HCS if of_variant[n]]
    axes.plot(*_columns(line), "--", color=LOOKS["hcs 0.8"][0], linewidth=0.8, zorder=1)
    for name, rows in of_variant.items():
        if rows:
            colour, marker = LOOKS[name]
            x, y = _mean(rows, estimate), _mean(rows, "accuracy")
            error = {"xerr": _half(rows, estimate), "yerr": _half(rows, "accuracy")}
            axes.errorbar(
                x, y, **error, fmt=marker, color=colour, label=_in_key(name), linewidth=0.5, markersize=6, zorder=2
            )
            if name in NAMED_BESIDE:
                axes.annotate(NAMED_BESIDE[name], (x, y), xytext=(3, 3), textcoords="offset points", color=colour)


def _in_key(name: str) -> str:
    """What a marker is called; of a strength beside it, what it is the strength of."""
    if name in HCS:
        return "hcs, λ beside"
    return "repsim, weight beside" if name in NAMED_BESIDE else name


def _of_seeds(rows: Sequence[TrainingRow | CurveRow], name: str) -> list[float]:
    """Mean over the networks of each seed."""
    found = [(row.seed, value) for row in rows if (value := getattr(row, name)) is not None]
    return [statistics.fmean(v for s, v in found if s == seed) for seed in sorted({seed for seed, _ in found})]


def _mean(rows: Sequence[TrainingRow | CurveRow], name: str) -> float:
    found = _of_seeds(rows, name)
    return statistics.fmean(found) if found else float("nan")


def _half(rows: Sequence[TrainingRow | CurveRow], name: str) -> float | None:
    found = _of_seeds(rows, name)
    return half_width(found) if len(found) > 1 else None


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
