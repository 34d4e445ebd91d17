"""Pen marks: arcs of a surgical marker around the middle of the picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from PIL import ImageColor

from crossgraft.edit._image_edit import Confounder, Leaf, Painted, Pixels, Scope, ShamKind, measured_in
from crossgraft.edit.confounders._drawing import Line, mixed, stroke_coverage
from crossgraft.errors import UsageError

OFF_CENTRE = 0.08
"""Farthest that the centre of an arc lies from that of the image, up, down or sideways."""
RADII = (0.2, 0.35)
"""Shares of the shorter side, so that an arc stays inside the image."""
ANGLES = (np.pi / 3, np.pi)
"""How far an arc goes around, in radians."""


@dataclass(frozen=True)
class PenMark(Confounder):
    """Arcs of ink on the skin, as a surgeon marks a lesion.

    An image of one channel has no colours: there they have the top of the range.

    Args:
        n: Number of arcs.
        width: Width of the pen as a share of the shorter side.
        color: Name of the colour of the ink.
        alpha: Share of the ink in the mix with the image.
    """

    name: ClassVar[str] = "pen_mark"
    title: ClassVar[str] = "Pen marks"
    leaf: ClassVar[Leaf] = "external"
    scope: ClassVar[Scope] = "local"
    sham: ClassVar[ShamKind | None] = "shuffled"
    modalities: ClassVar[str] = "dermatoscopy"
    reference: ClassVar[str] = "Winkler et al. 2019, JAMA Dermatology 155(10): 1135–1141"
    is_stochastic: ClassVar[bool] = True

    n: int = field(default=1, metadata=measured_in("count", low=1, high=100))
    width: float = field(default=0.008, metadata=measured_in("share of the shorter side", low=0, high=1))
    color: str = field(default="purple", metadata=measured_in("name of a colour"))
    alpha: float = field(default=0.7, metadata=measured_in("share", low=0, high=1))

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            ImageColor.getrgb(self.color)
        except ValueError as error:
            raise UsageError(f"color of pen_mark must be the name of a colour, such as purple, got {self.color!r}.") from error

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """Arcs near the centre; where two of them cross, the ink is no thicker."""
        shape = pixels.shape[:2]
        covered = stroke_coverage(shape, [_arc(shape, rng) for _ in range(self.n)], self.width * min(shape))
        ink = 1.0 if pixels.shape[2] == 1 else tuple(part / 255 for part in ImageColor.getrgb(self.color)[:3])
        return mixed(pixels, self.alpha * covered, ink)


def _arc(shape: tuple[int, int], rng: np.random.Generator) -> Line:
    """One arc; the same random numbers give the same shares of any image."""
    side = min(shape)
    centre = np.array(shape) / 2 + side * rng.uniform(-OFF_CENTRE, OFF_CENTRE, 2)
    radius = side * rng.uniform(*RADII)
    start = rng.uniform(0, 2 * np.pi)
    angles = np.linspace(start, start + rng.uniform(*ANGLES), 65)
    return centre + radius * np.stack([np.sin(angles), np.cos(angles)], axis=1)
