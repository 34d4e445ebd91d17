"""The figures of docs/results/sim.md: sweeps over what Fig. 3 has, and the norm of the gradient as Fig. 5 has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from figures import figure
from matplotlib.ticker import LogLocator
from tables import Difference

from crossgraft.tune.engine.gradient_norms import moving_average

LOOKS = {"baseline": ("#000000", "-"), "rho_sim": ("#D55E00", "--"), "placebo": ("#0072B2", ":")}
"""Safe for the colour-blind; dashes differ, too."""


def draw_gradients(path: Path, steps: pd.DataFrame) -> None:
    """Norm of each step, pale, and its moving average."""
    with figure(path, (6.4, 3.0)) as drawn:
        axes = drawn.subplots()
        for variant, (colour, dashes) in LOOKS.items():
            norms = steps.loc[steps["variant"] == variant, ["norm"]].to_numpy()
            places = np.arange(1, len(norms) + 1)
            axes.plot(places, norms[:, 0], color=colour, alpha=0.15, linewidth=0.6)
            axes.plot(places, moving_average(norms)[:, 0], dashes, color=colour, linewidth=1.4, label=variant)
        axes.set(xlabel="Step", ylabel="Norm of the gradient, all blocks", yscale="log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
        axes.legend(frameon=False)


def draw_sweeps(path: Path, sweeps: Mapping[str, Sequence[tuple[float, Difference]]]) -> None:
    """Difference to the baseline over ρ and over the weight, one panel each, with intervals."""
    with figure(path, (6.4, 2.8)) as drawn:
        panels = drawn.subplots(1, len(sweeps), squeeze=False, sharey=True)[0]
        for axes, (option, points) in zip(panels, sweeps.items(), strict=True):
            means, halves = [each.mean for _, each in points], [each.high - each.mean for _, each in points]
            axes.axhline(0, color="#000000", linestyle="--", linewidth=1)
            look = {"color": LOOKS["rho_sim"][0], "markersize": 4, "linewidth": 1.2, "elinewidth": 0.8, "capsize": 2}
            axes.errorbar([value for value, _ in points], means, halves, fmt="o-", **look)
            axes.set(xlabel={"rho": "Share of tokens ρ", "weight": "Weight"}[option])
            if option == "weight":
                axes.set_xscale("log")
        panels[0].set_ylabel("Accuracy − baseline, points")
