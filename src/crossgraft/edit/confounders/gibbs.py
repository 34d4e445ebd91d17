"""Gibbs ringing: an MR scan that stops short of the high frequencies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from crossgraft.edit._image_edit import Confounder, Domain, Leaf, Painted, Pixels, measured_in
from crossgraft.edit.spectrum import spectrum_of, whole_frequencies

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Gibbs(Confounder):
    """Gibbs ringing: frequencies outside the middle rectangle of k-space are removed, so that edges echo.

    The frequency k of N stays if 2·|k| ≤ keep·N, along either side: of the square of frequencies the share keep² is left. The
    image keeps its size, as with zero filling.

    Args:
        keep: Kept share of k-space along each side; 1 keeps the image.
    """

    name: ClassVar[str] = "gibbs"
    title: ClassVar[str] = "Gibbs ringing"
    leaf: ClassVar[Leaf] = "imaging"
    domain: ClassVar[Domain] = "fourier"
    modalities: ClassVar[str] = "MR"
    reference: ClassVar[str] = "Czervionke et al. 1988, American Journal of Roentgenology 151(6): 1219–1228"

    keep: float = field(default=0.7, metadata=measured_in("share of k-space along each side", low=0, high=1))

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """Every channel for itself."""
        rows, columns = (2 * np.abs(whole_frequencies(side)) <= self.keep * side * (1 + _ROUNDING) for side in pixels.shape[:2])
        kept = spectrum_of(pixels) * (rows[:, None] & columns)[:, :, None]
        return Painted(np.fft.ifft2(kept, axes=(0, 1)).real)
