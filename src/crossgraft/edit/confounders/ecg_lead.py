"""ECG leads: electrodes on the skin, each with a wire that leaves the picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from crossgraft.edit._image_edit import Confounder, Leaf, Painted, Pixels, Scope, ShamKind, measured_in
from crossgraft.edit.confounders._drawing import Line, curve, mixed, stroke_coverage

MARGIN = 0.15
"""Share of width and height that the discs keep free."""
BEYOND = 0.05
"""How far out of the image a wire is drawn, as a share of width or height, so that its end is never seen."""
WANDER = 0.2
"""Farthest that a wire lies beside the straight way at its thirds, as a share of its length."""


@dataclass(frozen=True)
class EcgLead(Confounder):
    """Discs side by side, each with a wire that leaves through an edge of the image.

    Args:
        n: Number of leads.
        radius: Radius of a disc as a share of the shorter side.
        wire: Width of a wire as a share of the shorter side.
        value: Brightness of discs and wires as a share of the range.
        alpha: Share of the drawing in the mix with the image.
    """

    name: ClassVar[str] = "ecg_lead"
    title: ClassVar[str] = "ECG leads"
    leaf: ClassVar[Leaf] = "external"
    scope: ClassVar[Scope] = "local"
    sham: ClassVar[ShamKind | None] = "shuffled"
    modalities: ClassVar[str] = "radiography"
    reference: ClassVar[str] = "Olesen et al. 2024, arXiv:2406.12142"
    is_stochastic: ClassVar[bool] = True

    n: int = field(default=3, metadata=measured_in("count", low=1, high=20))
    radius: float = field(default=0.015, metadata=measured_in("share of the shorter side", low=0, high=0.5))
    wire: float = field(default=0.003, metadata=measured_in("share of the shorter side", low=0, high=1))
    value: float = field(default=1.0, metadata=measured_in("share of the range", low=0, high=1))
    alpha: float = field(default=0.7, metadata=measured_in("share", low=0, high=1))

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """Every disc in its own part of the width, so that none hides another."""
        shape = pixels.shape[:2]
        side = min(shape)
        wires = [_wire((place, self.n), rng) * shape for place in range(self.n)]
        discs = [line[[0, 0]] for line in wires]
        covered = np.maximum(
            stroke_coverage(shape, discs, 2 * self.radius * side), stroke_coverage(shape, wires, self.wire * side)
        )
        return mixed(pixels, self.alpha * covered, self.value)


def _wire(place: tuple[int, int], rng: np.random.Generator) -> Line:
    """From the centre of the disc over an edge, as shares of height and width; what bends back into the image is cut off.

    Args:
        place: Number of the lead, and of all leads.
        rng: Random numbers of this image.
    """
    index, n = place
    down, along = rng.uniform(0, 1), (index + rng.uniform(0.2, 0.8)) / n
    start = MARGIN + (1 - 2 * MARGIN) * np.array([down, along])
    stop = rng.uniform(0.2, 0.8, 2)
    stop[rng.integers(2)] = rng.choice([-BEYOND, 1 + BEYOND])
    way = stop - start
    aside = np.array([-way[1], way[0]])
    thirds = start + np.array([[1], [2]]) / 3 * way + rng.uniform(-WANDER, WANDER, (2, 1)) * aside
    line = curve(np.stack([start, *thirds, stop]))
    is_inside = ((line >= 0) & (line <= 1)).all(axis=1)
    return line[: int(np.argmin(is_inside)) + 1]
