"""The figures of docs/results/sim.md: sweeps as Fig. 3 has them, and the norm of the gradient as Fig. 5 has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from sim_looks import StepRow

from crossgraft.tune.engine.gradient_norms import moving_average

COLOURS = {"baseline": "#000000", "rho_sim": "#D55E00", "placebo": "#0072B2"}
"""Safe for the colour-blind; dashes differ, too."""
DASHES = {"baseline": "-", "rho_sim": "--", "placebo": ":"}


def write_gradients(path: Path, steps: Sequence[StepRow]) -> None:
    """Norm of each step, pale, and its moving average; an SVG, the same bytes from the same rows."""
    with _style("gradients"):
        figure = Figure(figsize=(6.4, 3.0), layout="constrained")
        axes = figure.subplots()
        for variant, colour in COLOURS.items():
            norms = np.array([[row.norm] for row in steps if row.variant == variant])
            if not len(norms):
                continue
            places = np.arange(1, len(norms) + 1)
            axes.plot(places, norms[:, 0], color=colour, alpha=0.15, linewidth=0.6)
            axes.plot(places, moving_average(norms)[:, 0], DASHES[variant], color=colour, linewidth=1.4, label=variant)
        axes.set(xlabel="Step", ylabel="Norm of the gradient, all blocks", yscale="log")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
        _save(figure, path)


def write_sweeps(
    path: Path, sweeps: Mapping[str, Sequence[tuple[float, float, float]]], baseline: float | None
) -> None:
    """Accuracy over ρ and over the weight, one panel each: value, mean, and half the range over seeds."""
    with _style("sweeps"):
        figure = Figure(figsize=(6.4, 2.8), layout="constrained")
        panels = figure.subplots(1, len(sweeps), squeeze=False, sharey=True)[0]
        for axes, (title, points) in zip(panels, sweeps.items(), strict=True):
            xs, means, halves = zip(*sorted(points), strict=True) if points else ((), (), ())
            axes.errorbar(xs, means, yerr=halves, fmt="o-", color="#D55E00", markersize=4, linewidth=1.2, capsize=2)
            if baseline is not None:
                axes.axhline(baseline, color="#000000", linestyle="--", linewidth=1)
            axes.set(xlabel=title)
            if title == "weight" and points:  # an empty axis has no logarithm
                axes.set_xscale("log")
        panels[0].set_ylabel("Accuracy on test")
        _save(figure, path)


def _style(salt: str) -> object:
    return mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none", "font.size": 8})


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
