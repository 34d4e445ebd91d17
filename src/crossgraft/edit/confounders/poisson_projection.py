"""Poisson noise as of a computed tomograph: on the projections, seen in the reconstruction."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Float64

from crossgraft.edit._image_edit import Confounder, Domain, Leaf, Painted, Pixels, ShamKind, measured_in
from crossgraft.edit.confounders._projection import (
    SYMMETRIES,
    counted_integrals,
    filtered_back_projection,
    line_integrals,
    refuse_scale,
    smooth_line_integrals,
)
from crossgraft.errors import CrossgraftWarning, UsageError

PIXEL_SIZE_M = 0.26 / 362
"""Field of view of LoDoPaB-CT over its pixels."""
_MANY_STARVED = 0.01


class ProjectionNoise(NamedTuple):
    """What counting photons does to a slice.

    Attributes:
        change: Reconstructed minus given, in the range of the image mapped to [0, 1].
        starved_share: Share of the rays through the image that let no photon through.
    """

    change: Float64[np.ndarray, "height width"]
    starved_share: float


@dataclass(frozen=True)
class PoissonProjection(Confounder):
    """Poisson noise (projection): photons of every ray of a parallel beam are counted, and the slice is reconstructed.

    Grey values are taken for Hounsfield units h and these for attenuation, μ = h·(μ_w − μ_a)/1000 + μ_w, at least 0. p is the
    integral of μ along a ray, K a Poisson number of mean N₀·e^(−p), p' = −ln(max(K, 0.1)/N₀), with the constants of
    LoDoPaB-CT. ``mode="residual"`` adds the reconstruction of p' − p, which is exact because filtered back projection is
    linear, and blurs nothing. ``mode="full"`` returns the reconstruction of p', whose blur is a hundred times the noise: use it
    only where the images without the artefact are reconstructed, too (num_photons=1e15 does that). The noise is computed from
    the mean of the channels, and all of them get the same.

    The image is taken to be all there is: outside of it is air. Where more than 1 % of the rays through it let no photon
    through, it warns.

    Args:
        num_photons: Photons of a ray before the body, N₀; LoDoPaB-CT has 4096.
        method: ``variance_map``, the counts of line integrals from at most 128² pixels and an eighth of the angles, or
            ``full_projection``, those from every pixel and angle, about fifteen times as slow.
        mode: ``residual`` or ``full``; the latter needs ``method="full_projection"``.
        pixel_size_m: Side of a pixel.
        window_low: Hounsfield units of black.
        window_high: Hounsfield units of white.
        mu_water: Attenuation of water.
        mu_air: Attenuation of air.
        num_angles: Angles of a half turn, a multiple of 4.
    """

    name: ClassVar[str] = "poisson_projection"
    title: ClassVar[str] = "Poisson noise (projection)"
    leaf: ClassVar[Leaf] = "imaging"
    domain: ClassVar[Domain] = "projection"
    modalities: ClassVar[str] = "CT"
    reference: ClassVar[str] = "Leuschner et al. 2021, Scientific Data 8: 109 (LoDoPaB-CT)"
    is_stochastic: ClassVar[bool] = True
    sham: ClassVar[ShamKind | None] = None
    why_no_sham: ClassVar[str] = "noise with other phases is the same noise"

    num_photons: float = field(default=2e7, metadata=measured_in("photons per ray", low=1, high=1e15))
    method: Literal["variance_map", "full_projection"] = field(default="variance_map", metadata=measured_in("name"))
    mode: Literal["residual", "full"] = field(default="residual", metadata=measured_in("name"))
    pixel_size_m: float = field(default=PIXEL_SIZE_M, metadata=measured_in("m", low=1e-9))
    window_low: float = field(default=-1000.0, metadata=measured_in("HU"))
    window_high: float = field(default=3071.0, metadata=measured_in("HU"))
    mu_water: float = field(default=20.0, metadata=measured_in("1/m", low=0))
    mu_air: float = field(default=0.02, metadata=measured_in("1/m", low=0))
    num_angles: int = field(default=1000, metadata=measured_in("angles", low=SYMMETRIES, high=100_000))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method not in ("variance_map", "full_projection"):
            raise UsageError(f"method of {self.name} must be variance_map or full_projection, got {self.method!r}.")
        if self.mode not in ("residual", "full"):
            raise UsageError(f"mode of {self.name} must be residual or full, got {self.mode!r}.")
        if self.mode == "full" and self.method != "full_projection":
            raise UsageError(f"{self.name}:mode=full reconstructs all of the image. Add method=full_projection.")
        if self.num_angles % SYMMETRIES:
            raise UsageError(f"num_angles of {self.name} must be a multiple of {SYMMETRIES}, got {self.num_angles}.")
        refuse_scale(self.name, self.window_low, self.window_high, self.mu_water, self.mu_air)

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """The same change of every channel."""
        noise = self.noise(pixels.mean(axis=2), rng)
        if noise.starved_share > _MANY_STARVED:
            warnings.warn(
                f"{self.name}: no photon comes through on {noise.starved_share:.1%} of the rays. Raise num_photons, or say what "
                "the image shows: pixel_size_m, window_low and window_high.",
                CrossgraftWarning,
                stacklevel=3,
            )
        return Painted(pixels + noise.change[:, :, None])

    def noise(self, plane: Float64[np.ndarray, "height width"], rng: np.random.Generator) -> ProjectionNoise:
        """The change of one slice, in [0, 1], and the share of its rays that let no photon through."""
        black, white = (hu * (self.mu_water - self.mu_air) / 1000 + self.mu_water for hu in (self.window_low, self.window_high))
        attenuation = np.maximum(black + plane * (white - black), 0)
        project = line_integrals if self.method == "full_projection" else smooth_line_integrals
        p = project(attenuation, self.num_angles) * self.pixel_size_m
        counted = counted_integrals(p, self.num_photons, rng)
        through = max(1, np.count_nonzero(p > 0))
        share = np.count_nonzero(counted.is_starved & (p > 0)) / through
        if self.mode == "full":
            reconstructed = filtered_back_projection(counted.values, plane.shape) / self.pixel_size_m
            return ProjectionNoise((reconstructed - black) / (white - black) - plane, share)
        # Noise is wanted to a few digits alone, and half the bytes are half the time.
        noise = filtered_back_projection((counted.values - p).astype(np.float32), plane.shape).astype(np.float64)
        return ProjectionNoise(noise / (self.pixel_size_m * (white - black)), share)
