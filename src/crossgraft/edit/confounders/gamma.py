"""Gamma: another curve from values to grey levels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from crossgraft.edit._image_edit import Confounder, Leaf, Painted, Pixels, measured_in


@dataclass(frozen=True)
class Gamma(Confounder):
    """Gamma: x^γ on values from 0 to 1, as between two displays or two presentation settings; black and white stay.

    Args:
        gamma: Exponent; above 1 darkens.
    """

    name: ClassVar[str] = "gamma"
    title: ClassVar[str] = "Gamma"
    leaf: ClassVar[Leaf] = "imaging"
    reference: ClassVar[str] = "Gonzalez and Woods 2018, Digital Image Processing, equation 3-5"

    gamma: float = field(default=1.2, metadata=measured_in("exponent", low=0.01, high=100))

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """Every value for itself."""
        return Painted(pixels**self.gamma)
