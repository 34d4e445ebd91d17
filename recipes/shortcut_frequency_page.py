"""docs/results/frequency.md, from the rows of recipes/shortcut_frequency.py and of recipes/shortcuts.py."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from shortcut_frequency_ranks import DRAWS, Order, Ranks, Row, rank_set

from crossgraft.statistics import holm

LEVEL = 0.05
CURVES = ("images", "priority", "probe")
HEAD = """# Is an artefact relied on where a network looks?

Written by `recipes/shortcut_frequency.py`; do not edit. [Frequency](../audit/frequency.md) explains the quantities. For each of
17 pretrained networks, at its own input: the [learning priority](../audit/learning_priority.md) (spectrum of the gradient of
½‖features‖² by the image) on the test part of an audit, at most 256 images, and its [overlap](../audit/spectral_overlap.md)
with the spectrum of what an artefact changes. The shortcut reliance index (SRI) of the same network with the same artefact is
that of [which networks lean on which artefact](shortcuts.md). If overlap predicted reliance, networks with a larger overlap
would have a larger SRI: Spearman's ρ would be positive, artefact by artefact. Only artefacts of the whole image are compared,
each at two strengths.

- *all*: over all networks with an SRI. p is one-sided (for a positive ρ), by {draws} permutations of the networks, which it takes
  as independent; Holm: adjusted for all rows of this page.
- *assessable*: over networks with which the artefact can be assessed: a probe sees it, and the network learned something.
- *within families*: 17 networks of five families are not independent. ρ of ranks that are centred in each family of at least
  three networks, and p by permutation within them.
- *probe*: as *all*, but with the gradient of the loss of logistic regression on frozen features, which is what SRI is of.
- *rms*: as *all*, but with the root mean square of the change at the input in place of the overlap: no look at frequencies.
"""


def write_page(
    path: Path, sets: Sequence[tuple[str, str]], tables: Mapping[str, Sequence[Row]], reliance: Mapping[str, Sequence[Row]]
) -> None:
    """The whole page."""
    parts = [HEAD.format(draws=DRAWS)]
    ranked = [each for name, title in sets for each in rank_set(title, tables.get(name, ()), reliance.get(name, ()))]
    known = [each.overlap.p_value for each in ranked]
    adjusted = iter(holm([value for value in known if value is not None]))
    holms = [None if value is None else next(adjusted) for value in known]
    for name, title in sets:
        if tables.get(name):
            of_set = [(each, one) for each, one in zip(ranked, holms, strict=True) if each.where == title]
            parts += [f"\n## {title}\n\n", *_ranks(of_set), *_networks(tables[name], tables.get(f"{name}_spectra", ()))]
    parts += [*_findings(ranked, holms), *_tomograms(tables.get("ct", ())), *_tuned(tables.get("tuned", ()))]
    path.write_text("".join(parts), encoding="utf-8")


def half_below(frequencies: Sequence[float], psd: Sequence[float]) -> float:
    """The frequency below which half of a spectrum lies."""
    return float(np.interp(0.5, np.cumsum(psd) / np.sum(psd), frequencies))


def _ranks(found: Sequence[tuple[Ranks, float | None]]) -> list[str]:
    if not found:
        return ["The SRI of these networks is not measured yet.\n"]
    lines = [
        "| artefact | all | ρ | p | Holm | assessable | ρ | p | within families | ρ | p | probe ρ | p | rms ρ | p |\n",
        f"|{'---|' * 15}\n",
    ]
    for each, adjusted in found:
        cells = [each.artefact, *_texts(each.overlap), _p(adjusted), *_texts(each.assessable), *_texts(each.within)]
        cells += [*_texts(each.probe)[1:], *_texts(each.rms)[1:]]
        lines.append(f"| {' | '.join(cells)} |\n")
    return lines


def _texts(order: Order) -> tuple[str, str, str]:
    return str(order.number), _number(order.rho), _p(order.p_value)


def _networks(rows: Sequence[Row], spectra: Sequence[Row]) -> list[str]:
    """Where each network looks, and where its images are."""
    lines = [
        "\nHalf of a spectrum lies below this frequency, in cycles per pixel of the input (0.5 is the most):\n\n",
        "| network | input, pixels | images | learning priority | of a probe | median overlap |\n|---|---|---|---|---|---|\n",
    ]
    for network in dict.fromkeys(row["network"] for row in spectra):
        curve = [row for row in spectra if row["network"] == network]
        frequencies = [float(row["cycles_per_pixel"]) for row in curve]
        halves = [half_below(frequencies, [float(row[name]) for row in curve]) for name in CURVES]
        overlaps = [float(row["overlap"]) for row in rows if row["network"] == network and row["overlap"]]
        middle = f"{statistics.median(overlaps):.2f}" if overlaps else "–"
        cells = [network, curve[0]["input_pixels"], *(f"{half:.3f}" for half in halves), middle]
        lines.append(f"| {' | '.join(cells)} |\n")
    return lines


def _findings(ranked: Sequence[Ranks], holms: Sequence[float | None]) -> list[str]:
    if not any(each.overlap.rho is not None for each in ranked):
        return []
    small = sum(one is not None and one < LEVEL for one in holms)
    over = {name: _said([getattr(each, name) for each in ranked]) for name in Ranks._fields[2:]}
    number = sum(each.overlap.p_value is not None for each in ranked)
    said = (
        f"Counted over {number} combinations of set, artefact and strength; of an order that says nothing, p would be below "
        f"{LEVEL} in about {number * LEVEL:.0f}, and above {1 - LEVEL} in as many. *All* networks: {over['overlap']}; after "
        f"Holm's adjustment p is below {LEVEL} in {small}. *Assessable* networks, five at least: {over['assessable']}. "
        f"*Within families*: {over['within']}. With the gradient of a *probe*: {over['probe']}. "
        f"With the *rms* alone: {over['rms']}."
    )
    return ["\n## What this says\n", *(f"\n{textwrap.fill(each, 128)}\n" for each in (said, LIMITS))]


def _said(orders: Sequence[Order]) -> str:
    """How often ρ is positive, and how often p says so or the reverse."""
    known = [(each.rho, each.p_value) for each in orders if each.rho is not None and each.p_value is not None]
    if not known:
        return "none"
    rhos = [rho for rho, _ in known]
    agree, reverse = (sum(p_value < LEVEL for _, p_value in known), sum(p_value > 1 - LEVEL for _, p_value in known))
    return (
        f"ρ is positive in {sum(rho > 0 for rho in rhos)} of {len(known)}, median {_number(statistics.median(rhos))}, p below "
        f"{LEVEL} in {agree} and above {1 - LEVEL} (the reverse order) in {reverse}"
    )


LIMITS = """An overlap compares shapes of spectra and knows nothing of amplitudes: an artefact of which resizing left almost
nothing has one, too. Ring 0, the mean of an image, is in no spectrum, although it is most of what a shift of intensity changes.
Networks with small inputs differ from the others in more than where they look, so that ρ over all networks also compares input
sizes; ranks within families take that away as far as families share theirs. Strengths of one artefact, and artefacts on the same
images, are no independent tests. SRI is that of frozen features; after fine-tuning a network may look elsewhere."""
TOMOGRAMS = """A demonstration: no tomograms of known units are at hand. Slices of Medical MNIST (64 × 64 pixels, 8 bits) are
taken to be 0.26 m wide, as those of LoDoPaB-CT, and black and white to be −1000 and 3071 HU; neither is known of them.
Detectability is the AUC of a probe on the features of {network}. Starved rays are those through the slice that let no photon
through. N₀ = 2e7 is the dose of the thesis, 4096 that of LoDoPaB-CT."""
TUNED = """A demonstration with one fine-tuning of {network}, all weights, seed 0. AUC on the {number} test images of BUSI with
its interval over groups; {clean} as they are. Cutoffs are cycles per pixel of the images."""


def _tomograms(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    lines = [
        "\n## Projection noise on computed tomograms\n\n",
        f"{textwrap.fill(TOMOGRAMS.format(network=rows[0]['network']), 128)}\n\n",
        "| slices | number | N₀ | rms, grey levels | samples changed | starved rays | detectability |\n",
        "|---|---|---|---|---|---|---|\n",
    ]
    for row in rows:
        seen = f"{float(row['detectability']):.2f}"
        seen += f" [{float(row['low']):.2f}, {float(row['high']):.2f}]" if row["low"] and row["high"] else ""
        cells = [row["images"], row["num_images"], row["num_photons"], f"{float(row['rms']):.2f}"]
        cells += [f"{float(row['share_changed']):.1%}", f"{float(row['starved']):.1%}", seen]
        lines.append(f"| {' | '.join(cells)} |\n")
    return lines


def _tuned(rows: Sequence[Row]) -> list[str]:
    """AUC by cutoff, and half of each spectrum."""
    if not rows:
        return []
    clean = next(row for row in rows if row["curve"] == "clean")
    about = TUNED.format(network=clean["network"], number=clean["num_images"], clean=_interval(clean))
    lines = [
        "\n## A tuned network without some frequencies\n\n",
        f"{textwrap.fill(about, 128)}\n\n",
        "| cutoff | low-pass: what is below stays | high-pass: what is above stays |\n|---|---|---|\n",
    ]
    cutoffs = list(dict.fromkeys(row["cycles_per_pixel"] for row in rows if row["curve"] == "low-pass"))
    for cutoff in cutoffs:
        pair = [
            _interval(row)
            for name in ("low-pass", "high-pass")
            for row in rows
            if (row["curve"], row["cycles_per_pixel"]) == (name, cutoff)
        ]
        lines.append(f"| {float(cutoff):.4g} | {' | '.join(pair)} |\n")
    halves: dict[str, float] = {}
    for name in ("images", "before", "after"):
        curve = [row for row in rows if row["curve"] == name]
        if curve:
            halves[name] = half_below(*([float(row[key]) for row in curve] for key in ("cycles_per_pixel", "value")))
    said = {"images": "the images", "before": "the pretrained network", "after": "the tuned one"}
    texts = [f"{halves[name]:.3f} for {said[name]}" for name in halves]
    lines.append(f"\nHalf of the spectrum lies below, in cycles per pixel of the input: {', '.join(texts)} (½‖features‖²).\n")
    return lines


def _interval(row: Row) -> str:
    ends = f" [{float(row['low']):.2f}, {float(row['high']):.2f}]" if row["low"] and row["high"] else ""
    return f"{float(row['value']):.2f}{ends}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:+.2f}".replace("-", "−")


def _p(value: float | None) -> str:
    return "–" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"
