"""A chest tube: a drain that enters between the ribs and runs up to the top of the lung."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float64
from scipy.ndimage import gaussian_filter

from crossgraft.edit._image_edit import Confounder, Leaf, Painted, Pixels, Scope, ShamKind, measured_in
from crossgraft.edit.confounders._drawing import Line, curve, distance_to

WALL = 0.25
"""Thickness of the wall as a share of the radius."""
COURSE = ((-0.05, 0.75), (0.1, 0.68), (0.22, 0.53), (0.28, 0.36), (0.32, 0.22))
"""Shares of width and height that the middle of the tube passes; the first lies out of the image, so that no end is seen."""
SHIFT_DOWN = 0.1
"""Farthest that all of the course lies higher or lower, as a share of the height."""
WANDER = 0.03
"""Farthest that each point of the course lies off, as a share of width and height."""
OFFSETS = np.linspace(-0.4, 0.4, 5)
"""Where a pixel is sampled, across the tube, in pixels."""


@dataclass(frozen=True)
class ChestTube(Confounder):
    """A hollow tube from the left or right edge: two bright rims, and a core that is darker than they are.

    What is added to the image is the length of the way through the wall of the tube, so the core is brighter than the
    surroundings. A tube below one pixel is drawn one pixel wide, and the blur makes it fainter.

    Args:
        radius: Outer radius as a share of the width of the image.
        amplitude: Brightness that the rims add before the blur, as a share of the range.
        blur: Standard deviation of the blur of the edges, in pixels.
    """

    name: ClassVar[str] = "chest_tube"
    title: ClassVar[str] = "Chest tube"
    leaf: ClassVar[Leaf] = "external"
    scope: ClassVar[Scope] = "local"
    sham: ClassVar[ShamKind | None] = "shuffled"
    modalities: ClassVar[str] = "radiography"
    reference: ClassVar[str] = "Oakden-Rayner et al. 2020, Proceedings of ACM CHIL: 151–159"
    is_stochastic: ClassVar[bool] = True

    radius: float = field(default=0.008, metadata=measured_in("share of the width", low=0, high=0.5))
    amplitude: float = field(default=0.25, metadata=measured_in("share of the range", low=0, high=1))
    blur: float = field(default=1.0, metadata=measured_in("pixels", low=0, high=100))

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """One tube, drawn from either side."""
        shape = pixels.shape[:2]
        radius = max(self.radius * shape[1], 0.5)
        reach = radius - OFFSETS[0]
        distance = distance_to(shape, [curve(_course(shape, rng))], reach)
        near = distance <= reach
        profile = np.zeros(shape)
        profile[near] = np.mean([_way_through_wall(distance[near] + offset, radius) for offset in OFFSETS], axis=0)
        added = self.amplitude * gaussian_filter(profile, self.blur, mode="nearest")
        return Painted(pixels + added[:, :, None], added > 0)


def _course(shape: tuple[int, int], rng: np.random.Generator) -> Line:
    """Points of the middle of the tube; the same random numbers give the same shares of any image."""
    shares = np.array(COURSE) + rng.uniform(-WANDER, WANDER, (len(COURSE), 2))
    shares[0, 0] = COURSE[0][0]
    shares[:, 1] += rng.uniform(-SHIFT_DOWN, SHIFT_DOWN)
    if rng.random() < 0.5:
        shares[:, 0] = 1 - shares[:, 0]
    return shares[:, ::-1] * shape


def _way_through_wall(distance: Float64[np.ndarray, " near"], radius: float) -> Float64[np.ndarray, " near"]:
    """Length of a ray inside the wall, by its distance from the middle of the tube; 1 where it grazes the inner wall."""
    inner = (1 - WALL) * radius
    outside, inside = (np.sqrt(np.maximum(each**2 - distance**2, 0)) for each in (radius, inner))
    return (outside - inside) / np.sqrt(radius**2 - inner**2)
