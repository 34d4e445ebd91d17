"""What is left of an edit at the input of a network, by frequency."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float64

from crossgraft.audit._network_inputs import network_inputs, shorter_side
from crossgraft.audit._network_priority import exceeds_rounding
from crossgraft.data.rows import ImageRows
from crossgraft.edit.spectrum import normalized_psd, radial_psd
from crossgraft.errors import DataError
from crossgraft.types import Preprocessing

Scope = Literal["local", "global"]


class EditSpectrum(NamedTuple):
    """One edit at the input of a network; the same for all networks that get the same inputs.

    Attributes:
        edit: Its name with options.
        scope: Whether it touches a part of an image or all of it.
        psd: (K,) mean over images of the spectrum of edited minus original input, each with a sum of 1; None: nothing is left.
        num_changed: Images that count: more than their mean, or the corners of their spectrum, changed.
        rms: Root mean square of what changed, in units of the input, over all images.
    """

    edit: str
    scope: Scope
    psd: Float64[np.ndarray, " rings"] | None
    num_changed: int
    rms: float


def edit_spectrum(
    clean: ImageRows,
    edited: ImageRows,
    preprocessing: Preprocessing,
    *,
    edit: str,
    scope: Scope = "global",
    told: Callable[[], object] = lambda: None,
) -> EditSpectrum:
    """Mean spectrum of what an edit changes in prepared images.

    Args:
        clean: Images as they are.
        edited: The same images with the edit.
        preprocessing: How images become inputs.
        edit: Name of the edit.
        scope: What it touches.
        told: Called after each image.

    Raises:
        DataError: There are no images, or other ones; or the input is too small.

    Cost: each image is prepared twice, and an FFT of the difference.
    """
    shorter_side(preprocessing)
    if len(clean) != len(edited) or not len(clean):
        raise DataError(
            f"The same images are needed without and with the edit; there are {len(clean)} and {len(edited)}."
        )
    spectra: list[np.ndarray] = []
    squares: list[float] = []
    for before, after in zip(network_inputs(clean, preprocessing), network_inputs(edited, preprocessing), strict=True):
        residual = after - before
        squares.append(float(np.mean(residual**2)))
        psd = radial_psd(residual)
        if exceeds_rounding(psd, max(np.abs(before).max(), np.abs(after).max()), residual[:, :, 0].size):
            spectra.append(normalized_psd(psd))
        told()
    rms = math.sqrt(math.fsum(squares) / len(squares))
    return EditSpectrum(edit, scope, np.mean(spectra, axis=0) if spectra else None, len(spectra), rms)
