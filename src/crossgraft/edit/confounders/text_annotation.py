"""A text annotation: a word that the station burned into the picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from crossgraft.edit._image_edit import Leaf, Scope, ShamKind, measured_in
from crossgraft.edit.confounders._drawing import Lettering


@dataclass(frozen=True)
class TextAnnotation(Lettering):
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
    sham: ClassVar[ShamKind | None] = "shuffled"
    reference: ClassVar[str] = "Zech et al. 2018, PLOS Medicine 15(11): e1002683"

    text: str = field(default="PORTABLE", metadata=measured_in("text"))
    size: float = field(default=0.03, metadata=measured_in("share of the shorter side", low=0, high=1))
    xy: tuple[float, float] = field(default=(0.05, 0.05), metadata=measured_in("shares of width and height", low=0, high=1))
    value: float = field(default=1.0, metadata=measured_in("share of the range", low=0, high=1))
