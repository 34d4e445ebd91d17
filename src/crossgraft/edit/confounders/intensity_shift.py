"""Intensity shift: another gain and another offset of the detector."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from crossgraft.edit._image_edit import Confounder, Leaf, Painted, Pixels, measured_in


@dataclass(frozen=True)
class IntensityShift(Confounder):
    """Intensity shift: x·gain + offset, as between two devices or two settings of a window.

    Args:
        gain: Multiple of every value.
        offset: Addition to every value, as a share of the range.
    """

    name: ClassVar[str] = "intensity_shift"
    title: ClassVar[str] = "Intensity shift"
    leaf: ClassVar[Leaf] = "imaging"
    reference: ClassVar[str] = "Gonzalez and Woods 2018, Digital Image Processing, section 3.2"

    gain: float = field(default=1.1, metadata=measured_in("multiple", low=0))
    offset: float = field(default=0.05, metadata=measured_in("share of the range", low=-1, high=1))

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """Every value for itself."""
        return Painted(pixels * self.gain + self.offset)
