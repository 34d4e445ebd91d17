"""The options of ρSIM, checked when they are made."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, SupportsIndex

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.tune.sim.distances import DISTANCES
from crossgraft.tune.sim.layouts import LAYOUTS

SAMPLINGS = ("v0", "v1", "v2", "norm")
ORDERS = ("code", "paper")
REDUCTIONS = ("mean", "sum")
FEWEST_FOR_A_PLACEBO = 2
"""Images at a time: it predicts the tokens of another one."""


@dataclass
class SimOptions:
    """What is reconstructed, and how it is compared.

    Fields are as the arguments of ``RhoSim``.

    Raises:
        UsageError: A value is out of its range, or does not go with another.
        UnknownNameError: A name is unknown; the message gives the nearest ones.
    """

    rho: float = 0.2
    weight: float = 5e-3
    distance: str = "norm_l2"
    K: Any = "auto"
    blocks: Any = "auto"
    order: str = "code"
    sampling: str = "v0"
    channels: float = 1.0
    layout: str = "auto"
    reduce: str = "mean"
    projected: bool = True
    placebo: bool = False

    def __post_init__(self) -> None:
        for option in ("rho", "channels"):
            value = getattr(self, option)
            if not (_is_number(value) and 0 < value <= 1):
                raise UsageError(f"{option} of rho_sim must be a number above 0 and at most 1, found {value!r}.")
        if not (_is_number(self.weight) and math.isfinite(self.weight) and self.weight >= 0):
            raise UsageError(f"weight of rho_sim must be a number of at least 0, found {self.weight!r}.")
        if self.K != "auto":
            if isinstance(self.K, str | bool) or (whole := _whole(self.K)) is None or whole < 1:
                raise UsageError(f"K of rho_sim must be auto or a whole number of at least 1, found {self.K!r}.")
            object.__setattr__(self, "K", whole)  # NumPy has whole numbers of its own
        known: dict[str, Iterable[str]] = {
            "distance": DISTANCES,
            "order": ORDERS,
            "sampling": SAMPLINGS,
            "layout": LAYOUTS,
            "reduce": REDUCTIONS,
        }
        for option, names in known.items():
            name = getattr(self, option)
            if not isinstance(name, str) or name not in names:
                raise UnknownNameError(f"{option} of rho_sim", str(name), names)
        if self.order == "paper" and not self.projected:
            raise UsageError(
                "rho_sim:projected=false is equation 1, which standardises nothing; order=paper is about projections. Leave one "
                "of them out."
            )

    def width(self, automatic: int) -> int:
        """K, where ``auto`` stands for ``automatic``."""
        return self.K if isinstance(self.K, int) else automatic

    def number_of_channels(self, channels: int) -> int:
        """Channels that are looked at, of so many."""
        return max(1, math.floor(self.channels * channels + 0.5))


def _is_number(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real)


def _whole(value: SupportsIndex) -> int | None:
    try:
        return operator.index(value)
    except TypeError:
        return None
