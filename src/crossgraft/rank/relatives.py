"""Relatives err together: the covariance of what networks bring to one target beyond what they bring to every one.

With e_mt the effect of network m on target t alone, and θ what ``target_effects`` fits,

    Cov(e_m, e_m') = θ_own [m = m'] + θ_arch [same architecture] + θ_family [same family]
                     + θ_top1 x_m x_m' + θ_size s_m s_m' + θ_order μ_m μ_m'

with x the ImageNet top-1 and s the logarithm of the size (``described``): on one target the slopes on both may be other than
elsewhere, as in a random-coefficient model (Searle, Casella and McCulloch, Variance components, 1992, ch. 9). μ is the order
that is expected, less its mean: a target may follow it more, less, or turn it round, and then the errors of all networks go
together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from crossgraft.rank.described import Described

PARTS = ("own", "architecture", "family", "top1", "size", "order")
UNKNOWN = (1.0, 0.25)
"""Variances of top-1 and of size of a network that ImageNet does not know: it may be anywhere."""
Square = Float64[np.ndarray, "num_models num_models"]


def likeness(first: Sequence[Described], second: Sequence[Described]) -> dict[str, np.ndarray]:
    """Whether name, architecture and family are the same, and the products of top-1 and of size; networks × networks."""

    def ends(name: str) -> tuple[np.ndarray, np.ndarray]:
        return np.array([getattr(x, name) for x in first])[:, None], np.array([getattr(x, name) for x in second])[None]

    same = {name: np.equal(*ends(name)).astype(np.float64) for name in ("name", "architecture", "family")}
    unknown = same["name"] * ~np.array([x.is_known_to_imagenet for x in first], dtype=bool)[:, None]
    return {
        "own": same["name"],
        "architecture": same["architecture"],
        "family": same["family"],
        "top1": np.multiply(*ends("top1")) + UNKNOWN[0] * unknown,
        "size": np.multiply(*ends("size")) + UNKNOWN[1] * unknown,
    }


def target_parts(networks: Sequence[Described], order: np.ndarray) -> list[Square]:
    """What each θ multiplies, in the order of ``PARTS``."""
    centred = order - order.mean()
    return [*likeness(networks, networks).values(), np.outer(centred, centred)]


def target_covariance(networks: Sequence[Described], order: np.ndarray, variances: Sequence[float]) -> Square:
    """Cov(e) of networks whose expected order is known.

    Args:
        networks: What is known of them.
        order: What is expected of each, in normal scores.
        variances: θ, in the order of ``PARTS``.
    """
    return np.asarray(sum(v * part for v, part in zip(variances, target_parts(networks, order), strict=True)))
