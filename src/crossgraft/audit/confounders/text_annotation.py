"""A text annotation: a word that the station burned into the picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from crossgraft.audit.confounders._confounder import Confounder, Leaf, Painted, Pixels, Scope, measured_in
from crossgraft.audit.confounders._drawing import mixed, refuse_blank, text_coverage


@dataclass(frozen=True)
class TextAnnotation(Confounder):
    """A word in a corner, as stations burn in how or where the picture was taken.

    Args:
        text: Words to write.
        size: Height of the letters as a share of the shorter side.
        xy: Upper left corner as shares of width and height.
        value: Brightness of the letters as a share of the range.
    """

    name: ClassVar[str] = "text_annotation"
    title: ClassVar[str] = "Text annotation"
    leaf: ClassVar[Leaf] = "external"
    scope: ClassVar[Scope] = "local"
    reference: ClassVar[str] = "Zech et al. 2018, PLOS Medicine 15(11): e1002683"

    text: str = field(default="PORTABLE", metadata=measured_in("text"))
    size: float = field(default=0.03, metadata=measured_in("share of the shorter side", low=0, high=1))
    xy: tuple[float, float] = field(
        default=(0.05, 0.05), metadata=measured_in("shares of width and height", low=0, high=1)
    )
    value: float = field(default=1.0, metadata=measured_in("share of the range", low=0, high=1))

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_blank(self.text, self.name)

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """The words at one place, the same in every image."""
        shape = pixels.shape[:2]
        return mixed(pixels, text_coverage(shape, self.text, size=self.size, xy=self.xy, name=self.name), self.value)
