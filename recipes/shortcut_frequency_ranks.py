"""Spearman's ρ of overlap and reliance over networks, over all of them and within their families."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from crossgraft.audit import risk_rank
from crossgraft.seeding import generator

Row = dict[str, str]
ASSESSABLE = ("relies", "passes", "undecided")
DRAWS = 4999
LEAST_OF_A_FAMILY = 3


class Order(NamedTuple):
    """Spearman's ρ over networks, and its one-sided p; None where there is none."""

    number: int
    rho: float | None
    p_value: float | None


class Ranks(NamedTuple):
    """One artefact at one strength on one set: whether something orders networks as their SRI does.

    Attributes:
        where: Title of the set.
        artefact: Its name with options.
        overlap: Overlap, over all networks.
        assessable: The same over networks with which the artefact can be assessed.
        within: The same within families.
        probe: Overlap with what a probe looks at, over all networks.
        rms: Size of the change at the input, over all networks.
    """

    where: str
    artefact: str
    overlap: Order
    assessable: Order
    within: Order
    probe: Order
    rms: Order


class Joined(NamedTuple):
    """One network with one artefact."""

    network: str
    family: str
    overlap: float
    probe: float
    rms: float
    sri: float
    is_assessable: bool


def rank_set(title: str, rows: Sequence[Row], reliance: Sequence[Row]) -> list[Ranks]:
    """Every artefact and strength that both tables have."""
    found: list[Ranks] = []
    for key in dict.fromkeys((row["confounder"], row["options"]) for row in rows):
        networks = joined([row for row in rows if (row["confounder"], row["options"]) == key], reliance)
        if not networks:
            continue
        found.append(
            Ranks(
                title,
                ":".join(key),
                overlap=_order(networks, "overlap"),
                assessable=_order([each for each in networks if each.is_assessable], "overlap"),
                within=within_families(networks),
                probe=_order(networks, "probe"),
                rms=_order(networks, "rms"),
            )
        )
    return found


def joined(rows: Sequence[Row], reliance: Sequence[Row]) -> list[Joined]:
    """Networks that have an overlap with the artefact, and an SRI."""
    known = {(row["network"], row["confounder"], row["options"]): row for row in reliance}
    found: list[Joined] = []
    for row in rows:
        other = known.get((row["network"], row["confounder"], row["options"]))
        if other is None or not other["sri"] or not row["overlap"]:
            continue
        overlap, probe, rms = (float(row[key]) for key in ("overlap", "overlap_probe", "rms"))
        is_assessable = other["outcome"] in ASSESSABLE
        found.append(Joined(row["network"], row["family"], overlap, probe, rms, float(other["sri"]), is_assessable))
    return found


def within_families(networks: Sequence[Joined]) -> Order:
    """ρ of ranks centred within families of three networks or more, and its p by permutation within them."""
    names = dict.fromkeys(each.family for each in networks)
    families = [[each for each in networks if each.family == family] for family in names]
    large = [family for family in families if len(family) >= LEAST_OF_A_FAMILY]
    pairs = [(_centred([each.overlap for each in one]), _centred([each.sri for each in one])) for one in large]
    number = sum(map(len, large))
    scale = float(np.sqrt(sum(x @ x for x, _ in pairs) * sum(y @ y for _, y in pairs))) if pairs else 0.0
    if scale == 0:
        return Order(number, None, None)
    observed = sum(float(x @ y) for x, y in pairs)
    rng = generator(0, "within families")
    drawn = [sum(float(x @ rng.permutation(y)) for x, y in pairs) for _ in range(DRAWS)]
    hits = sum(value >= observed - 1e-9 for value in drawn)
    return Order(number, observed / scale, (1 + hits) / (1 + DRAWS))


def _centred(values: Sequence[float]) -> np.ndarray:
    ranks = rankdata(values)
    return ranks - ranks.mean()


def _order(networks: Sequence[Joined], by: str) -> Order:
    """``by`` is the name of a field."""
    found = risk_rank([getattr(each, by) for each in networks], [each.sri for each in networks], num_permutations=DRAWS)
    return Order(len(networks), found.spearman, found.p_value)
