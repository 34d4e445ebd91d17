"""The figures of docs/results/similarity.md: layers, mistakes and gains as chapter 3 has them, planes as RepSim has them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from figures import SMALL, figure, legend
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from tables import mean

SETS = {"breastmnist": "BreastMNIST", "pneumoniamnist": "PneumoniaMNIST"}
SOURCES = {"imagenet": "ImageNet", "birds": "birds", "insects": "insects"}
LOOKS = {"imagenet": ("#D55E00", "o"), "birds": ("#0072B2", "s"), "insects": ("#009E73", "^")}
"""Safe for the colour-blind; dashes and markers differ, too."""
BETWEEN = {  # of, variant: words, colour, dashes
    ("before", "before"): ("two sources, before", "#CC79A7", "-"),
    ("models", "full"): ("two sources, full", "#E69F00", "-"),
    ("models", "head-first"): ("two sources, head-first", "#E69F00", "--"),
    ("random", "full"): ("source, full, and random", "#56B4E9", "-."),
}
UNTRAINED = ("two random initialisations", "#000000", ":")
MEASURES = {"cka": "CKA, debiased", "cca": "CCA of the thesis"}
METHODS = {"linear": "LINEAR", "full": "FULL", "repsim": "RepSim", "l2_sp": "L2-SP", "interpolated": "interpolated, α = 0.5"}
STYLE = {**SMALL, "axes.titlesize": 8}
METHOD_COLOURS = {
    "linear": "#000000", "full": "#D55E00", "repsim": "#0072B2", "l2_sp": "#009E73", "interpolated": "#56B4E9",
}  # fmt: skip


def draw_layers(path: Path, layers: pd.DataFrame) -> None:
    """Fig. 3.3: similarity over layers, mean and range over seeds (and over pairs); a row of panels for each set."""
    with figure(path, (10.5, 2.6 * len(SETS)), style=STYLE) as drawn:
        grid = drawn.subplots(len(SETS), 4, squeeze=False, sharey=True)
        for panels, (name, title) in zip(grid, SETS.items(), strict=True):
            for place, (measure, words) in enumerate(MEASURES.items()):
                own = layers[(layers["set"] == name) & (layers["measure"] == measure)]
                draw_change(panels[2 * place], own)
                draw_between(panels[2 * place + 1], own)
                panels[2 * place].set(title=f"{words}: before and after", xlabel="Layer")
                panels[2 * place + 1].set(title=f"{words}: two sources", xlabel="Layer")
            panels[0].set(ylabel=title, ylim=(-0.02, 1.02))
        legend(drawn, grid.flat, columns=3)


def draw_change(axes: Axes, rows: pd.DataFrame) -> None:
    change = rows[rows["of"] == "change"]
    for source, words in SOURCES.items():
        for way, dashes in (("full", "-"), ("head-first", "--")):
            own = change[(change["variant"] == way) & (change["first"] == source)]
            draw_line(axes, own, f"{words}, {way}", LOOKS[source][0], dashes)
    draw_line(axes, change[change["variant"] == "full"], *UNTRAINED, column="untrained")


def draw_between(axes: Axes, rows: pd.DataFrame) -> None:
    for (of, way), look in BETWEEN.items():
        draw_line(axes, rows[(rows["of"] == of) & (rows["variant"] == way)], *look)
    draw_line(axes, rows[(rows["of"] == "models") & (rows["variant"] == "full")], *UNTRAINED, column="untrained")


def draw_line(axes: Axes, rows: pd.DataFrame, label: str, colour: str, dashes: str, column: str = "value") -> None:
    of_place = rows[rows["place"] >= 0].dropna(subset=[column]).groupby("place")[column]
    xs = [place + 1 for place in of_place.groups]
    axes.plot(xs, list(of_place.agg(mean)), dashes, color=colour, linewidth=1.3, label=label)
    axes.fill_between(xs, list(of_place.min()), list(of_place.max()), color=colour, alpha=0.10, linewidth=0)
    axes.set_xticks(range(1, len(xs) + 1))


def draw_mistakes(path: Path, mistakes: pd.DataFrame) -> None:
    """Fig. 3.5: prediction similarity, and that of independent mistakes with its central 95 %."""
    ways = {"before": "before\n(probe)", "linear": "LINEAR", "full": "full", "head-first": "head-first"}
    with figure(path, (3.6 * len(SETS), 3.0), style=STYLE) as drawn:
        for axes, (name, title) in zip(drawn.subplots(1, len(SETS), squeeze=False, sharey=True)[0], SETS.items(), strict=True):
            for at, way in enumerate(ways):
                own = mistakes[(mistakes["set"] == name) & (mistakes["variant"] == way)]
                for number, row in enumerate(own.sort_values(["seed", "first", "second"]).itertuples()):
                    x = at + 0.6 * ((number + 0.5) / len(own) - 0.5)
                    axes.plot([x, x], [row.independent_low, row.independent_high], "-", color="#AAAAAA", linewidth=1.5)
                    axes.plot([x], [row.independent], "_", color="#666666", markersize=5)
                    axes.plot([x], [row.value], "o", color="#0072B2", markersize=3.5)
            axes.set(title=title)
            axes.set_xticks(range(len(ways)), ways.values())
        drawn.get_axes()[0].set_ylabel("P(both right or both wrong)")
        handles = [
            Line2D([], [], color="#0072B2", marker="o", linestyle="", markersize=3.5, label="two sources"),
            Line2D([], [], color="#AAAAAA", marker="_", label="independent mistakes, 95 %"),
        ]
        drawn.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)


def draw_gains(path: Path, layers: pd.DataFrame, gain: Mapping[str, pd.Series]) -> None:
    """Fig. 3.6: relative AUC gain against similarity before and after, one panel for each of five layers.

    ``gain``: way → series by source, set and seed.
    """
    rows = layers[(layers["measure"] == "cka") & (layers["place"] >= 0)]
    names = rows.drop_duplicates("place", keep="last").set_index("place")["layer"]
    places = sorted(names.index)
    shown = [places[round(at * (len(places) - 1) / 4)] for at in range(5)]
    with figure(path, (2.3 * len(shown), 2.9), style=STYLE) as drawn:
        panels = drawn.subplots(1, len(shown), squeeze=False, sharey=True)[0]
        for axes, place in zip(panels, shown, strict=True):
            at_place = rows[(rows["of"] == "change") & (rows["place"] == place)]
            for source, words in SOURCES.items():
                colour, marker = LOOKS[source]
                for (name, title), fill in zip(SETS.items(), ("full", "none"), strict=True):
                    own = at_place[(at_place["first"] == source) & (at_place["set"] == name)]
                    points = [
                        (row.value, 100 * of_way[source, name, row.seed])
                        for way, of_way in gain.items()
                        for row in own[own["variant"] == way].itertuples()
                    ]
                    look = {"color": colour, "fillstyle": fill, "markersize": 4, "linestyle": ""}
                    axes.plot(*zip(*points, strict=True), marker, label=f"{words}, {title}", **look)
            axes.axhline(0, color="#888888", linewidth=0.6)
            axes.set(title=names[place], xlabel=MEASURES["cka"])
        panels[0].set_ylabel("AUC gain over random weights, %")
        legend(drawn, panels, columns=4)


def draw_planes(path: Path, points: pd.DataFrame, kind: str) -> None:
    """Figs. 3 and 4: test images in the plane, one panel a method; the pretrained network behind them where planes are one."""
    with figure(path, (2.2 * len(METHODS), 2.4), style=STYLE) as drawn:
        is_common = kind == "pca"
        panels = drawn.subplots(1, len(METHODS), squeeze=False, sharex=is_common, sharey=is_common)[0]
        for axes, (method, title) in zip(panels, METHODS.items(), strict=True):
            for name, colour in (("linear", "#BBBBBB"), (method, METHOD_COLOURS[method])):
                own = points[(points["kind"] == kind) & (points["variant"] == name)]
                if colour != "#BBBBBB" or (is_common and method != "linear"):
                    axes.plot(list(own["x"]), list(own["y"]), ".", color=colour, markersize=2.5, alpha=0.7)
            axes.set(title=title)
            axes.set_xticks([])
            axes.set_yticks([])
