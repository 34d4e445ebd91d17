"""The figures of docs/results/similarity.md: layers, mistakes and gains as chapter 3 has them, planes as RepSim has them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from similarity_numbers import Study, chosen, points_of
from similarity_rows import LayerRow, PointRow
from similarity_sets import SOURCES

COLOURS = {"imagenet": "#D55E00", "birds": "#0072B2", "insects": "#009E73"}
"""Safe for the colour-blind; dashes and markers differ, too."""
MARKERS = {"imagenet": "o", "birds": "s", "insects": "^"}
BETWEEN = {  # of, variant: words, colour, dashes
    ("before", "before"): ("two sources, before", "#CC79A7", "-"),
    ("models", "full"): ("two sources, full", "#E69F00", "-"),
    ("models", "head-first"): ("two sources, head-first", "#E69F00", "--"),
    ("random", "full"): ("source, full, and random", "#56B4E9", "-."),
}
UNTRAINED = ("two random initialisations", "#000000", ":")
MEASURES = {"cka": "CKA, debiased", "cca": "CCA of the thesis"}
METHOD_COLOURS = {
    "linear": "#000000", "full": "#D55E00", "repsim": "#0072B2", "l2_sp": "#009E73", "interpolated": "#56B4E9",
}  # fmt: skip
_Number = Callable[[LayerRow], float | None]


def write_layers(path: Path, study: Study, titles: Mapping[str, str]) -> None:
    """Fig. 3.3: similarity over layers, mean and range over seeds (and over pairs); a row of panels for each set."""
    with style("layers"):
        figure = Figure(figsize=(10.5, 2.6 * len(titles)), layout="constrained")
        grid = figure.subplots(len(titles), 4, squeeze=False, sharey=True)
        for panels, (name, title) in zip(grid, titles.items(), strict=True):
            own = study._replace(layers={name: study.layers.get(name, ())})
            for place, measure in enumerate(MEASURES):
                _change(panels[2 * place], own, measure)
                _between(panels[2 * place + 1], own, measure)
                panels[2 * place].set(title=f"{MEASURES[measure]}: before and after", xlabel="Layer")
                panels[2 * place + 1].set(title=f"{MEASURES[measure]}: two sources", xlabel="Layer")
            panels[0].set(ylabel=title, ylim=(-0.02, 1.02))
        _legend(figure, list(grid.flat), columns=3)
        save(figure, path)


def _change(axes: Axes, study: Study, measure: str) -> None:
    for source, words in SOURCES.items():
        for variant, dashes in (("full", "-"), ("head-first", "--")):
            rows = chosen(study, measure=measure, of="change", variant=variant, source=source)
            label = f"{words}, {variant}"
            _line(axes, [row for _, row in rows], label, COLOURS[source], dashes)
    rows = [row for _, row in chosen(study, measure=measure, of="change", variant="full")]
    _line(axes, rows, *UNTRAINED, number=lambda row: row.untrained)


def _between(axes: Axes, study: Study, measure: str) -> None:
    for (of, variant), (words, colour, dashes) in BETWEEN.items():
        rows = [row for _, row in chosen(study, measure=measure, of=of, variant=variant)]
        _line(axes, rows, words, colour, dashes)
    rows = [row for _, row in chosen(study, measure=measure, of="models", variant="full")]
    _line(axes, rows, *UNTRAINED, number=lambda row: row.untrained)


def _line(
    axes: Axes, rows: Sequence[LayerRow], label: str, colour: str, dashes: str, number: _Number = lambda row: row.value
) -> None:
    places = sorted({row.place for row in rows if row.place >= 0})
    columns = [[value for row in rows if row.place == place and (value := number(row)) is not None] for place in places]
    drawn = [(place + 1, found) for place, found in zip(places, columns, strict=True) if found]
    if not drawn:
        return
    xs = [place for place, _ in drawn]
    axes.plot(xs, [statistics.fmean(found) for _, found in drawn], dashes, color=colour, linewidth=1.3, label=label)
    ends = [[end(found) for _, found in drawn] for end in (min, max)]
    axes.fill_between(xs, *ends, color=colour, alpha=0.10, linewidth=0)
    axes.set_xticks(range(1, len(places) + 1))


def write_mistakes(path: Path, study: Study, titles: Mapping[str, str]) -> None:
    """Fig. 3.5: prediction similarity, and that of independent mistakes with its central 95 %."""
    ways = {"before": "before\n(probe)", "linear": "LINEAR", "full": "full", "head-first": "head-first"}
    there = {row.variant for rows in study.mistakes.values() for row in rows}
    shown = {way: words for way, words in ways.items() if way in there}
    with style("mistakes"):
        figure = Figure(figsize=(3.6 * len(titles), 3.0), layout="constrained")
        for axes, (name, title) in zip(
            figure.subplots(1, len(titles), squeeze=False, sharey=True)[0], titles.items(), strict=True
        ):
            for at, variant in enumerate(shown):
                rows = [row for row in study.mistakes.get(name, ()) if row.variant == variant]
                for number, row in enumerate(sorted(rows, key=lambda row: row.key)):
                    x = at + 0.6 * ((number + 0.5) / len(rows) - 0.5)
                    axes.plot([x, x], [row.independent_low, row.independent_high], "-", color="#AAAAAA", linewidth=1.5)
                    axes.plot([x], [row.independent], "_", color="#666666", markersize=5)
                    axes.plot([x], [row.value], "o", color="#0072B2", markersize=3.5)
            axes.set(title=title)
            axes.set_xticks(range(len(shown)), shown.values())
        figure.get_axes()[0].set_ylabel("P(both right or both wrong)")
        handles = [
            Line2D([], [], color="#0072B2", marker="o", linestyle="", markersize=3.5, label="two sources"),
            Line2D([], [], color="#AAAAAA", marker="_", label="independent mistakes, 95 %"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
        save(figure, path)


def write_gains(path: Path, study: Study, titles: Mapping[str, str], measure: str = "cka") -> None:
    """Fig. 3.6: relative AUC gain against similarity before and after, one panel a layer."""
    names = {row.place: row.layer for rows in study.layers.values() for row in rows if row.measure == measure and row.place >= 0}
    places = sorted(names)
    shown = [places[round(at * (len(places) - 1) / 4)] for at in range(5)] if len(places) >= 5 else places
    with style("gains"):
        figure = Figure(figsize=(2.3 * max(len(shown), 1), 2.9), layout="constrained")
        panels = figure.subplots(1, max(len(shown), 1), squeeze=False, sharey=True)[0]
        for axes, place in zip(panels, shown, strict=False):
            for source, words in SOURCES.items():
                points = points_of(study, measure, source, place)
                for name, fill in zip(titles, ("full", "none"), strict=False):
                    at = [n for n, unit in enumerate(points.units) if unit[0] == name]
                    xs, ys = ([column[n] for n in at] for column in (points.similar, points.gain))
                    axes.plot(
                        xs, [100 * y for y in ys], MARKERS[source], color=COLOURS[source], fillstyle=fill,
                        markersize=4, label=f"{words}, {titles[name]}", linestyle="",
                    )  # fmt: skip
            axes.axhline(0, color="#888888", linewidth=0.6)
            axes.set(title=names[place], xlabel=f"{MEASURES[measure]}")
        panels[0].set_ylabel("AUC gain over random weights, %")
        _legend(figure, panels)
        save(figure, path)


def write_planes(path: Path, points: Sequence[PointRow], kind: str, methods: Mapping[str, str]) -> None:
    """Figs. 3 and 4: test images in the plane, one panel a method; the pretrained network behind them where planes are one."""
    with style(kind):
        figure = Figure(figsize=(2.2 * len(methods), 2.4), layout="constrained")
        is_common = kind == "pca"
        panels = figure.subplots(1, len(methods), squeeze=False, sharex=is_common, sharey=is_common)[0]
        home = [point for point in points if (point.kind, point.variant) == (kind, "linear")]
        for axes, (method, title) in zip(panels, methods.items(), strict=True):
            own = [point for point in points if (point.kind, point.variant) == (kind, method)]
            if is_common and method != "linear":
                _scatter(axes, home, "#BBBBBB")
            _scatter(axes, own, METHOD_COLOURS[method])
            axes.set(title=title)
            axes.set_xticks([])
            axes.set_yticks([])
        save(figure, path)


def _scatter(axes: Axes, points: Sequence[PointRow], colour: str) -> None:
    axes.plot([p.x for p in points], [p.y for p in points], ".", color=colour, markersize=2.5, alpha=0.7)


def _legend(figure: Figure, panels: Sequence[Axes], columns: int = 4) -> None:
    shown = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if shown:
        figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=columns, frameon=False)


def style(salt: str) -> AbstractContextManager[None]:
    """The same bytes from the same rows."""
    return mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none", "font.size": 8, "axes.titlesize": 8})


def save(figure: Figure, path: Path) -> None:
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
