"""What the confounders that write letters share."""

from __future__ import annotations

from abc import ABC

import numpy as np

from crossgraft.edit.confounders._confounder import Confounder, Painted, Pixels
from crossgraft.edit.confounders._drawing import mixed, refuse_blank, text_coverage


class Lettering(Confounder, ABC):
    """Letters at one place, the same in every image; a leaf says which options come first and what they are by default.

    Attributes:
        text: Letters to write.
        size: Height of the letters as a share of the shorter side.
        xy: Upper left corner as shares of width and height.
        value: Brightness of the letters as a share of the range.
    """

    text: str
    size: float
    xy: tuple[float, float]
    value: float

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_blank(self.text, self.name)

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """The letters at their place, the same in every image."""
        shape = pixels.shape[:2]
        return mixed(pixels, text_coverage(shape, self.text, size=self.size, xy=self.xy, name=self.name), self.value)
