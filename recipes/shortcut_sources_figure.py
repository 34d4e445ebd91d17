"""The figure of docs/results/shortcut_sources.md: how far each source's network relies on each artefact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

LOOKS = {  # source: colour (safe for the colour-blind), marker
    "natural": ("#0072B2", "o"),
    "low_passed": ("#56B4E9", "v"),
    "medical": ("#D55E00", "s"),
    "whitened": ("#E69F00", "^"),
    "random": ("#777777", "x"),
}


def write_figure(path: Path, audits: Sequence[Mapping[str, str]], titles: Mapping[str, str]) -> None:
    """SRI with the interval over patients; an SVG, the same bytes from the same rows."""
    artefacts = list(dict.fromkeys(row["confounder"] for row in audits))
    with mpl.rc_context({"svg.hashsalt": "crossgraft", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9}):
        figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        axes = figure.subplots()
        for place, (source, (colour, marker)) in enumerate(LOOKS.items()):
            found = {row["confounder"]: row for row in audits if row["source"] == source}
            known = [(number, found[name]) for number, name in enumerate(artefacts) if name in found]
            if not known:
                continue
            xs = [number + 0.13 * (place - 2) for number, _ in known]
            ys = [float(row["sri"]) for _, row in known]
            ends = [
                [y - float(row["patients_low"]) for y, (_, row) in zip(ys, known, strict=True)],
                [float(row["patients_high"]) - y for y, (_, row) in zip(ys, known, strict=True)],
            ]
            axes.errorbar(xs, ys, yerr=ends, fmt=marker, color=colour, label=titles[source], markersize=5, linewidth=1.2)
        axes.axhline(0, color="#000000", linewidth=0.8)
        axes.set_xticks(range(len(artefacts)), [name.partition(":")[0] for name in artefacts])
        axes.set_ylabel("Shortcut reliance index")
        axes.grid(axis="y", color="#E5E5E5", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None, "Creator": None})
