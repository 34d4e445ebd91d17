"""What docs/results/frequency.md says: whether the overlap of spectra orders networks as their reliance on an artefact does."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from drawing.shortcuts import ASSESSED, read_reliance
from scipy.stats import rankdata
from tables import body, body_of, markdown, read_csv, typeset

from crossgraft.audit import risk_rank
from crossgraft.seeding import generator
from crossgraft.statistics import holm

SETS = ("busi", "brain")
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
    adjusted = iter(holm([each["overlap"].p_value for each in every if each["overlap"].p_value is not None]))
    for each in every:
        each["holm"] = Order(0, None, None if each["overlap"].p_value is None else next(adjusted))
    tomograms, tuned = read_csv(folder / "ct.csv"), read_csv(folder / "tuned.csv")
    bands = tuned.assign(shown=[interval(row) for _, row in tuned.iterrows()])
    halves = {"images": "the images", "before": "the pretrained network", "after": "the tuned one"}
    cutoffs = bands[bands["curve"].isin(["low-pass", "high-pass"])].groupby("cycles_per_pixel", sort=False)
    return {
        "draws": str(DRAWS),
        **{f"ranked_{name}": markdown(RANKED, ranked(orders[name])) for name in SETS},
        **{f"networks_{name}": markdown(NETWORKS, networks(folder, name)) for name in SETS},
        "counted": textwrap.fill(counted(every), 128),
        "network": tuned["network"].iloc[0],
        "tomograms": body_of(
            tomograms.assign(seen=[interval(row, "detectability") for _, row in tomograms.iterrows()]),
            *("{images}", "{num_images}", "{num_photons:g}", "{rms:.2f}", "{share_changed:.1%}", "{starved:.1%}", "{seen}"),
        ),
        "num_test": str(tuned["num_images"].iloc[0]),
        "clean": bands[bands["curve"] == "clean"]["shown"].iloc[0],
        "bands": body([f"{at:.4g}", *of.set_index("curve")["shown"].loc[["low-pass", "high-pass"]]] for at, of in cutoffs),
        "halves": ", ".join(
            f"{half_below(tuned[tuned['curve'] == name], 'value'):.3f} for {what}" for name, what in halves.items()
        ),
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


def orders_of(rows: pd.DataFrame) -> Iterator[tuple[str, dict[str, Order]]]:
    """Artefact → how several things order networks, beside their SRI."""
    for artefact, of in rows.groupby("artefact", sort=False):
        found = {"overlap": order(of, "overlap"), "assessable": order(of[of["outcome"].isin(ASSESSED)], "overlap")}
        yield artefact, found | {"within": within_families(of), "probe": order(of, "overlap_probe"), "rms": order(of, "rms")}


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
        [artefact, each["overlap"].number, *each["overlap"].shown, each["holm"].shown[1]]
        + [cell for name in ("assessable", "within") for cell in (each[name].number, *each[name].shown)]
        + [*each["probe"].shown, *each["rms"].shown]
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
    overlap, assessable, within, probe, rms = (
        said([each[name] for each in every]) for name in ("overlap", "assessable", "within", "probe", "rms")
    )
    return (
        f"Counted over {number} combinations of set, artefact and strength; of an order that says nothing, p would be below "
        f"{LEVEL} in about {number * LEVEL:.0f}, and above {1 - LEVEL} in as many. *All* networks: {overlap}; after "
        f"Holm's adjustment p is below {LEVEL} in {small}. *Assessable* networks, five at least: {assessable}. "
        f"*Within families*: {within}. With the gradient of a *probe*: {probe}. With the *rms* alone: {rms}."
    )


def said(orders: Sequence[Order]) -> str:
    """How often ρ is positive, and how often p says so or the reverse."""
    known = [(each.rho, each.p_value) for each in orders if each.rho is not None and each.p_value is not None]
    rhos, p_values = (np.array(each) for each in zip(*known, strict=True))
    return (
        f"ρ is positive in {sum(rhos > 0)} of {len(rhos)}, median {signed(np.median(rhos))}, p below {LEVEL} in "
        f"{sum(p_values < LEVEL)} and above {1 - LEVEL} (the reverse order) in {sum(p_values > 1 - LEVEL)}"
    )


def interval(row: pd.Series, name: str = "value") -> str:
    ends = "" if pd.isna(row["low"]) or pd.isna(row["high"]) else f" [{row['low']:.2f}, {row['high']:.2f}]"
    return f"{row[name]:.2f}{ends}"


def signed(value: float | None) -> str:
    return "–" if value is None else typeset(f"{value:+.2f}")


def probability(value: float | None) -> str:
    return "–" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"
