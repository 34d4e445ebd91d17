"""What docs/results/frequency.md says: whether the overlap of spectra orders networks as their reliance on an artefact does."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from drawing.shortcuts import ASSESSED, read_reliance
from scipy.stats import rankdata
from tables import markdown, read_csv

from crossgraft.audit import risk_rank
from crossgraft.seeding import generator
from crossgraft.statistics import holm

SETS = {"busi": "BUSI", "brain": "Brain MRI"}
LEVEL, DRAWS, LEAST_OF_A_FAMILY = 0.05, 4999, 3
RANKED = ("artefact", "all", "ρ", "p", "Holm", "assessable", "ρ", "p", "within families", "ρ", "p", "probe ρ", "p", "rms ρ", "p")
NETWORKS = ("network", "input, pixels", "images", "learning priority", "of a probe", "median overlap")


class Order(NamedTuple):
    """Spearman's ρ with SRI over networks, and its one-sided p; None where there is none."""

    number: int
    rho: float | None
    p_value: float | None

    @property
    def shown(self) -> list[str]:
        """Both."""
        return [signed(self.rho), probability(self.p_value)]


def fields(results: Path, figures: Path) -> dict[str, str]:
    folder = results / "shortcut_frequency"
    orders = {name: dict(orders_of(joined(results, name))) for name in SETS}
    every = [each for of_set in orders.values() for each in of_set.values()]
    known = [each["overlap"].p_value for each in every]
    adjusted = iter(holm([value for value in known if value is not None]))
    for each in every:
        each["holm"] = Order(0, None, None if each["overlap"].p_value is None else next(adjusted))
    tomograms, tuned = read_csv(folder / "ct.csv"), read_csv(folder / "tuned.csv")
    bands = tuned.assign(shown=[interval(row) for _, row in tuned.iterrows()])
    halves = {"images": "the images", "before": "the pretrained network", "after": "the tuned one"}
    shown = [f"{half_below(tuned[tuned['curve'] == name], 'value'):.3f} for {what}" for name, what in halves.items()]
    return {
        "draws": str(DRAWS),
        "sets": "".join(
            f"\n## {title}\n\n{markdown(RANKED, ranked(orders[name]))}\n\nHalf of a spectrum lies below this frequency, in "
            f"cycles per pixel of the input (0.5 is the most):\n\n{markdown(NETWORKS, networks(folder, name))}\n"
            for name, title in SETS.items()
        ),
        "counted": textwrap.fill(counted(every), 128),
        "network": tuned["network"].iloc[0],
        "tomograms": markdown(
            ["slices", "number", "N₀", "rms, grey levels", "samples changed", "starved rays", "detectability"],
            [
                [
                    row["images"],
                    row["num_images"],
                    f"{row['num_photons']:g}",
                    f"{row['rms']:.2f}",
                    f"{row['share_changed']:.1%}",
                    f"{row['starved']:.1%}",
                    interval(row, "detectability"),
                ]
                for _, row in tomograms.iterrows()
            ],
        ),
        "num_test": str(tuned["num_images"].iloc[0]),
        "clean": bands[bands["curve"] == "clean"]["shown"].iloc[0],
        "bands": markdown(
            ["cutoff", "low-pass: what is below stays", "high-pass: what is above stays"],
            [
                [f"{cutoff:.4g}", *(of.set_index("curve").loc[["low-pass", "high-pass"], "shown"])]
                for cutoff, of in bands[bands["curve"].isin(["low-pass", "high-pass"])].groupby("cycles_per_pixel", sort=False)
            ],
        ),
        "halves": ", ".join(shown),
    }


def half_below(curve: pd.DataFrame, name: str) -> float:
    """The frequency below which half of a spectrum lies."""
    return float(np.interp(0.5, np.cumsum(curve[name]) / np.sum(curve[name]), curve["cycles_per_pixel"]))


def joined(results: Path, name: str) -> pd.DataFrame:
    """Networks that have an overlap with an artefact, and an SRI."""
    rows = read_csv(results / "shortcut_frequency" / f"{name}.csv")
    rows = rows.assign(artefact=rows["confounder"] + ":" + rows["options"].astype(str))
    known = read_reliance(results, name)[["network", "artefact", "sri", "outcome"]]
    return rows.merge(known, on=["network", "artefact"]).dropna(subset=["overlap", "sri"])


def orders_of(rows: pd.DataFrame):
    """Artefact → how several things order networks, beside their SRI."""
    for artefact, of in rows.groupby("artefact", sort=False):
        yield (
            artefact,
            {
                "overlap": order(of, "overlap"),
                "assessable": order(of[of["outcome"].isin(ASSESSED)], "overlap"),
                "within": within_families(of),
                "probe": order(of, "overlap_probe"),
                "rms": order(of, "rms"),
            },
        )


def order(rows: pd.DataFrame, by: str) -> Order:
    found = risk_rank(list(rows[by]), list(rows["sri"]), num_permutations=DRAWS)
    return Order(len(rows), found.spearman, found.p_value)


def within_families(rows: pd.DataFrame) -> Order:
    """ρ of ranks centred within families of three networks or more, and its p by permutation within them."""
    large = [of for _, of in rows.groupby("family", sort=False) if len(of) >= LEAST_OF_A_FAMILY]
    pairs = [(centred(of["overlap"]), centred(of["sri"])) for of in large]
    scale = float(np.sqrt(sum(x @ x for x, _ in pairs) * sum(y @ y for _, y in pairs)))
    observed = sum(float(x @ y) for x, y in pairs)
    rng = generator(0, "within families")
    drawn = [sum(float(x @ rng.permutation(y)) for x, y in pairs) for _ in range(DRAWS)]
    hits = sum(value >= observed - 1e-9 for value in drawn)
    return Order(sum(map(len, large)), observed / scale, (1 + hits) / (1 + DRAWS))


def centred(values: pd.Series) -> np.ndarray:
    ranks = rankdata(values)
    return ranks - ranks.mean()


def ranked(orders: dict[str, dict[str, Order]]) -> list[list[object]]:
    return [
        [
            artefact,
            each["overlap"].number,
            *each["overlap"].shown,
            each["holm"].shown[1],
            each["assessable"].number,
            *each["assessable"].shown,
            each["within"].number,
            *each["within"].shown,
            *each["probe"].shown,
            *each["rms"].shown,
        ]
        for artefact, each in orders.items()
    ]


def networks(folder: Path, name: str) -> list[list[object]]:
    """Where each network looks, and where its images are."""
    overlaps = read_csv(folder / f"{name}.csv").groupby("network")["overlap"].median()
    return [
        [network, curve["input_pixels"].iloc[0]]
        + [f"{half_below(curve, column):.3f}" for column in ("images", "priority", "probe")]
        + [f"{overlaps[network]:.2f}"]
        for network, curve in read_csv(folder / f"{name}_spectra.csv").groupby("network", sort=False)
    ]


def counted(every: Sequence[dict[str, Order]]) -> str:
    small = sum(each["holm"].p_value is not None and each["holm"].p_value < LEVEL for each in every)
    number = sum(each["overlap"].p_value is not None for each in every)
    over = {name: said([each[name] for each in every]) for name in ("overlap", "assessable", "within", "probe", "rms")}
    return (
        f"Counted over {number} combinations of set, artefact and strength; of an order that says nothing, p would be below "
        f"{LEVEL} in about {number * LEVEL:.0f}, and above {1 - LEVEL} in as many. *All* networks: {over['overlap']}; after "
        f"Holm's adjustment p is below {LEVEL} in {small}. *Assessable* networks, five at least: {over['assessable']}. "
        f"*Within families*: {over['within']}. With the gradient of a *probe*: {over['probe']}. "
        f"With the *rms* alone: {over['rms']}."
    )


def said(orders: Sequence[Order]) -> str:
    """How often ρ is positive, and how often p says so or the reverse."""
    known = [(each.rho, each.p_value) for each in orders if each.rho is not None and each.p_value is not None]
    positive = sum(rho > 0 for rho, _ in known)
    agree, reverse = (sum(p_value < LEVEL for _, p_value in known), sum(p_value > 1 - LEVEL for _, p_value in known))
    return (
        f"ρ is positive in {positive} of {len(known)}, median {signed(statistics.median(rho for rho, _ in known))}, p below "
        f"{LEVEL} in {agree} and above {1 - LEVEL} (the reverse order) in {reverse}"
    )


def interval(row: pd.Series, name: str = "value") -> str:
    ends = "" if pd.isna(row["low"]) or pd.isna(row["high"]) else f" [{row['low']:.2f}, {row['high']:.2f}]"
    return f"{row[name]:.2f}{ends}"


def signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.2f}".replace("-", "−")


def probability(value: float | None) -> str:
    return "–" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"
