"""Bias field: a coil receives some regions louder than others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from crossgraft.edit._image_edit import Confounder, Leaf, Painted, Pixels, measured_in


@dataclass(frozen=True)
class BiasField(Confounder):
    """Bias field: x · exp(Σ c_ij · uⁱ · vʲ), i + j ≤ order, over coordinates u, v from −1 to 1 between the edges.

    Each image draws its coefficients, evenly between −largest and largest; i = j = 0 is one of them, so that the brightness
    varies as well.

    Args:
        largest: Largest size of a coefficient, in natural logarithms of the gain.
        order: Highest power of the polynomial.
    """

    name: ClassVar[str] = "bias_field"
    title: ClassVar[str] = "Bias field"
    leaf: ClassVar[Leaf] = "imaging"
    modalities: ClassVar[str] = "MR"
    reference: ClassVar[str] = "Van Leemput et al. 1999, IEEE Transactions on Medical Imaging 18(10): 885–896"
    is_stochastic: ClassVar[bool] = True

    largest: float = field(default=0.3, metadata=measured_in("natural logarithm of the gain", low=0, high=10))
    order: int = field(default=3, metadata=measured_in("power", low=0, high=10))

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """The same field on every channel."""
        powers = np.arange(self.order + 1)
        drawn = rng.uniform(-self.largest, self.largest, (powers.size, powers.size))
        coefficients = np.where(powers[:, None] + powers <= self.order, drawn, 0)
        down, right = (np.linspace(-1, 1, side) for side in pixels.shape[:2])
        exponent = np.polynomial.polynomial.polygrid2d(down, right, coefficients)
        return Painted(pixels * np.exp(exponent)[:, :, None])
