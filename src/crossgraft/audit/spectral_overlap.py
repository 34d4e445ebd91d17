"""How far the frequencies of an artefact are those that a network looks at."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from crossgraft.edit.spectrum import normalized_psd
from crossgraft.errors import DataError
from crossgraft.statistics import spearman

Spectrum = Float[np.ndarray, " rings"]


class SpectralOverlap(NamedTuple):
    """Two spectra beside each other, both with a sum of 1 and without the mean of the image.

    Attributes:
        overlap: Σ min(a, g), in [0, 1].
        cosine: In [0, 1].
        spearman: Rank correlation over the rings from 1 on; NaN where one of them is flat.
        distance: Earth mover's distance in shares of the band, Σ |cumulated difference| / (K − 1).
        flat: Overlap of the first with a flat spectrum: what broadband alone gives.
    """

    overlap: float
    cosine: float
    spearman: float
    distance: float
    flat: float


def spectral_overlap(residual_psd: Spectrum, priority: Spectrum) -> SpectralOverlap:
    """The spectrum of what an artefact changes beside the learning priority of a network.

    It compares networks for one artefact. Between artefacts it says nothing, and for one that touches a small part of the image
    neither, because that is broadband.

    Args:
        residual_psd: (K,) mean spectrum of edited minus original, from ``radial_psd``.
        priority: (K,) from ``learning_priority``.

    Raises:
        DataError: Lengths differ, there are fewer than three rings, or one of them is zero everywhere.

    Source: the predictor is this project's; the thesis compares by eye (section 5.2.2).
    """
    if len(residual_psd) != len(priority) or len(priority) < 3:
        raise DataError(
            f"Two spectra of the same length, at least 3, are compared; got {len(residual_psd)} and {len(priority)}."
        )
    if not (np.isfinite(residual_psd).all() and np.isfinite(priority).all()):
        raise DataError("A spectrum has values that are NaN or infinite.")
    a, g = normalized_psd(np.asarray(residual_psd)), normalized_psd(np.asarray(priority))
    if not (a.any() and g.any()):
        raise DataError("A spectrum is zero everywhere, so that nothing can be compared: the edit changed nothing.")
    rings = len(a)
    flat = np.r_[0.0, np.full(rings - 1, 1 / (rings - 1))]
    return SpectralOverlap(
        overlap=float(np.minimum(a, g).sum()),
        cosine=float(a @ g / math.sqrt((a @ a) * (g @ g))),
        spearman=float(spearman(a[1:], g[1:])),
        distance=float(np.abs(np.cumsum(a - g)).sum() / (rings - 1)),
        flat=float(np.minimum(a, flat).sum()),
    )
