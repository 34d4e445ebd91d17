"""Poisson noise as of an X-ray detector, on the picture itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Float64

from crossgraft.edit._image_edit import Confounder, Leaf, Painted, Pixels, ShamKind, measured_in
from crossgraft.edit.confounders._projection import counted_integrals, refuse_scale

MU_WATER, MU_AIR = 0.1837, 0.1662
"""Attenuation in the code of the thesis, per cm. They look like mass attenuation in cm²/g at 80 keV: air, with its density of
1.205·10⁻³ g/cm³, attenuates 2.0·10⁻⁴ per cm."""
_LEAST_SHARE = 1e-8
_WHITE = 255
"""Grey levels of 8 bits between black and white."""
_ROUNDING = 1e-9
"""A whole grey level stays where it is."""


def noise_in_grey_levels(
    num_photons: float,
    hu: Float[np.ndarray, "*shape"] | float,
    *,
    mu_water: float = MU_WATER,
    mu_air: float = MU_AIR,
    path_cm: float = 1.0,
    window_hu: float = 2000.0,
) -> Float64[np.ndarray, "*shape"] | float:
    """Standard deviation of the noise in grey levels of an 8-bit picture, √(e^p / N₀) · 1000 / (μ_w − μ_a) · 255 / window.

    Below about 0.3 the noise is lost when the picture is rounded.

    Args:
        num_photons: N₀, photons that a ray starts with.
        hu: Grey values in Hounsfield units.
        mu_water: Attenuation of water, per cm.
        mu_air: Attenuation of air, per cm.
        path_cm: Length of the way through one pixel.
        window_hu: Hounsfield units between black and white.
    """
    p = (np.asarray(hu, dtype=np.float64) * (mu_water - mu_air) / 1000 + mu_water) * path_cm
    return np.sqrt(np.exp(p) / num_photons) * 1000 / ((mu_water - mu_air) * path_cm) * 255 / window_hu


@dataclass(frozen=True)
class PoissonImage(Confounder):
    """Poisson noise (image): every pixel is the way of one ray, whose photons are counted.

    Grey values are taken for Hounsfield units h, p = (h·(μ_w − μ_a)/1000 + μ_w) · path, K a Poisson number of mean
    N₀·e^(−p), p' = −ln(max(K/N₀, 10⁻⁸)) (equation 4.2), and p' is turned into grey values again. An X-ray has one channel: the
    photons are counted for the mean of the channels, and all of them get the same noise. ``noise_in_grey_levels`` tells how
    much that is: 1.8 levels of 255 by default, and 0.17 with the attenuation of real air.

    In images with the artefact alone, the released code of the thesis adds a random part of a grey level before, and rounds down
    afterwards: ``dequantize`` and ``floor`` do so, to compare with its figures. Off by default, since rounding down makes an
    image half a level darker, which a network can learn.

    Args:
        num_photons: Photons of a ray before the body, N₀.
        window_low: Hounsfield units of black.
        window_high: Hounsfield units of white.
        mu_water: Attenuation of water.
        mu_air: Attenuation of air; that of the thesis is a mass attenuation.
        path_cm: Length of the way through one pixel.
        dequantize: Whether an even number between 0 and 1 grey level of 8 bits is added to every pixel before.
        floor: Whether the result is rounded down to whole grey levels of 8 bits.
    """

    name: ClassVar[str] = "poisson_image"
    title: ClassVar[str] = "Poisson noise (image)"
    leaf: ClassVar[Leaf] = "imaging"
    modalities: ClassVar[str] = "X-ray"
    reference: ClassVar[str] = "Juodelyte, thesis on cross-domain transfer in medical imaging, equation 4.2"
    is_stochastic: ClassVar[bool] = True
    sham: ClassVar[ShamKind | None] = None
    why_no_sham: ClassVar[str] = "noise with its pixels in other places is the same noise"

    num_photons: float = field(default=2e7, metadata=measured_in("photons per ray", low=1, high=1e15))
    window_low: float = field(default=-1200.0, metadata=measured_in("HU"))
    window_high: float = field(default=800.0, metadata=measured_in("HU"))
    mu_water: float = field(default=MU_WATER, metadata=measured_in("1/cm", low=0))
    mu_air: float = field(default=MU_AIR, metadata=measured_in("1/cm", low=0))
    path_cm: float = field(default=1.0, metadata=measured_in("cm", low=1e-6))
    dequantize: bool = field(default=False, metadata=measured_in("yes or no"))
    floor: bool = field(default=False, metadata=measured_in("yes or no"))

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_scale(self.name, self.window_low, self.window_high, self.mu_water, self.mu_air)

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """The same noise on every channel."""
        per_hu = (self.mu_water - self.mu_air) / 1000 * self.path_cm
        per_range = (self.window_high - self.window_low) * per_hu
        start = pixels
        if self.dequantize:
            start = pixels + rng.random(pixels.shape[:2])[:, :, None] / _WHITE
        p = start.mean(axis=2) * per_range + self.window_low * per_hu + self.mu_water * self.path_cm
        counted = counted_integrals(p, self.num_photons, rng, least_count=_LEAST_SHARE * self.num_photons)
        noisy = start + ((counted.values - p) / per_range)[:, :, None]
        return Painted(np.floor(np.clip(noisy, 0, 1) * _WHITE + _ROUNDING) / _WHITE if self.floor else noisy)
