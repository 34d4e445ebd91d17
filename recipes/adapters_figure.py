"""The figure of docs/results/adapters.md: what RepSim does to accuracy and similarity of each method."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from study_rows import Table
from study_tables import values

LOOKS = {  # method: colour (safe for the colour-blind), marker
    "lora": ("#0072B2", "o"),
    "adaptformer": ("#D55E00", "s"),
    "partial-3": ("#009E73", "^"),
    "full": ("#000000", "D"),
    "linear": ("#777777", "x"),
}
TITLES = {"lora": "LoRA", "adaptformer": "AdaptFormer", "partial-3": "Last three blocks", "full": "FULL", "linear": "LINEAR"}


def write_figure(path: Path, tables: Mapping[str, Table], titles: Mapping[str, str], vit: str) -> None:
    """An SVG, the same bytes from the same rows."""
    with mpl.rc_context({"svg.hashsalt": "crossgraft", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = Figure(figsize=(3.4 * len(titles) + 0.4, 6.4), layout="constrained")
        grid = figure.subplots(2, len(titles), squeeze=False)
        for column, (name, title) in enumerate(titles.items()):
            for row, (kind, is_vit) in enumerate({"ViT": True, "MobileNets": False}.items()):
                axes: Axes = grid[row][column]
                table = Table(tuple(r for r in tables[name].trainings if (r.model == vit) == is_vit))
                draw(axes, {name: table})
                axes.set_title(f"{title}, {kind}", fontsize=10)
                axes.set_xlabel("CKA to the pretrained network" if row else "")
                axes.set_ylabel("" if column else "Accuracy")
        handles = {t.get_label(): t for line in grid for axes in line for t in axes.get_lines() if t.get_label()[0] != "_"}
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(LOOKS), frameon=False)
        figure.savefig(path, metadata={"Date": None, "Creator": None})


def draw(axes: Axes, tables: Mapping[str, Table]) -> None:
    """One set, the networks of one kind."""
    axes.grid(color="#E5E5E5", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(0.12)
    for method, (colour, marker) in LOOKS.items():
        plain = mean_point(tables, method)
        if plain is None:
            continue
        axes.plot(*plain, marker, color=colour, markersize=7, label=TITLES[method], linestyle="none")
        held = mean_point(tables, f"{method} + repsim")
        if held is not None:
            axes.plot(*held, marker, color=colour, markersize=7, markerfacecolor="white", linestyle="none")
            axes.annotate("", held, plain, arrowprops={"arrowstyle": "->", "color": colour, "shrinkA": 5, "shrinkB": 5})


def mean_point(tables: Mapping[str, Table], variant: str) -> tuple[float, float] | None:
    """CKA and accuracy, mean over networks and seeds; None where there is no training."""
    similar, right = (list(values(tables, variant, metric).values()) for metric in ("cka", "accuracy"))
    return (statistics.fmean(similar), statistics.fmean(right)) if similar and right else None
