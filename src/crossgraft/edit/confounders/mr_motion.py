"""Motion in MR: lines of k-space that were recorded while the patient lay elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float64, Int64

from crossgraft.edit._image_edit import Confounder, Domain, Leaf, Painted, Pixels, measured_in
from crossgraft.edit.spectrum import whole_frequencies

STILL = -1


@dataclass(frozen=True)
class MrMotion(Confounder):
    """Motion in MR: the patient moves while k-space is recorded line by line, which gives ghosts along the columns.

    The lines of a moved patient have another phase, F'(ky, kx) = F(ky, kx) · exp(−2πi (ky·dy / H + kx·dx / W)), and the image is
    the magnitude of what comes back. Lines are recorded from one end of k-space to the other; each movement lasts for a run of
    neighbouring ones, and where the patient lies at the middle line, ky = 0, is where the image is. Black is no signal.

    Args:
        displacement: Largest way of a movement, down and sideways, each drawn evenly on both sides of 0.
        lines: Share of the lines that are recorded while the patient lies elsewhere.
        movements: Number of times that the patient moves away.
        pixel_size: Side of a pixel; with 1 a displacement is in pixels.
    """

    name: ClassVar[str] = "mr_motion"
    title: ClassVar[str] = "Motion in MR"
    leaf: ClassVar[Leaf] = "imaging"
    domain: ClassVar[Domain] = "fourier"
    modalities: ClassVar[str] = "MR"
    reference: ClassVar[str] = "Godenschweger et al. 2016, Physics in Medicine and Biology 61(5): R32–R56"
    is_stochastic: ClassVar[bool] = True

    displacement: float = field(default=3.0, metadata=measured_in("mm", low=0, high=1000))
    lines: float = field(default=0.3, metadata=measured_in("share of the lines", low=0, high=1))
    movements: int = field(default=4, metadata=measured_in("count", low=1, high=1000))
    pixel_size: float = field(default=1.0, metadata=measured_in("mm", low=1e-3, high=1000))

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """Every channel with the same movements."""
        largest = self.displacement / self.pixel_size
        moved = moved_lines(pixels.shape[0], self.lines, self.movements, rng)
        ways = rng.uniform(-largest, largest, (self.movements, 2))
        if largest == 0 or (moved == STILL).all():
            return Painted(pixels)
        return Painted(recorded(pixels, moved, ways))


def moved_lines(height: int, share: float, movements: int, rng: np.random.Generator) -> Int64[np.ndarray, " height"]:
    """Number of the movement that each line of k-space belongs to, ``STILL`` for none; lines in the order of ``fft``.

    Args:
        height: Number of lines.
        share: Share of them that belong to a movement; the middle one never does.
        movements: Number of runs of neighbouring lines, all as long as each other up to one line.
        rng: Random numbers.
    """
    others = height - 1
    number = min(round(share * height), others)
    lengths = np.diff(np.arange(movements + 1) * number // movements)
    # every way to leave the still lines before, between and after the runs
    gaps = np.sort(rng.integers(0, others - number + 1, movements))
    starts = gaps + np.r_[0, np.cumsum(lengths)[:-1]]
    in_time = np.full(others, STILL)
    for place, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
        in_time[start : start + length] = place
    frequencies = whole_frequencies(height)
    poses = np.full(height, STILL)
    poses[np.argsort(frequencies)[np.sort(frequencies) != 0]] = in_time
    return poses


def recorded(
    pixels: Pixels, moved: Int64[np.ndarray, " height"], ways: Float64[np.ndarray, "movements 2"]
) -> Float64[np.ndarray, "height width channels"]:
    """The image of a patient who lay elsewhere for some lines.

    Args:
        pixels: (height, width, channels).
        moved: Number of the movement of each line, or ``STILL``.
        ways: Pixels down and to the right, one row per movement.
    """
    height, width = pixels.shape[:2]
    of_line = np.where((moved == STILL)[:, None], 0.0, ways[moved])
    turns = whole_frequencies(height) * of_line[:, 0] / height
    phase = turns[:, None] + of_line[:, 1:] * whole_frequencies(width) / width
    k_space = np.fft.fft2(pixels, axes=(0, 1)) * np.exp(-2j * np.pi * phase)[:, :, None]
    return np.abs(np.fft.ifft2(k_space, axes=(0, 1)))
