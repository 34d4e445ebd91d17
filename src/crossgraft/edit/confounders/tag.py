"""A tag: a letter of lead beside the patient, which says left or right."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from crossgraft.edit._image_edit import Leaf, Scope, ShamKind, measured_in
from crossgraft.edit.confounders._drawing import Lettering


@dataclass(frozen=True)
class Tag(Lettering):
    """A letter, as a marker of the side leaves it on a radiograph.

    The defaults are those of the thesis, 64 pixels high at (200, 200) of an image of 1024 × 1024. Letters below 6 pixels are
    a gray spot rather than a letter.

    Args:
        size: Height of the letters as a share of the shorter side.
        xy: Upper left corner as shares of width and height.
        text: Letters to write.
        value: Brightness of the letters as a share of the range.
    """

    name: ClassVar[str] = "tag"
    title: ClassVar[str] = "Tag"
    leaf: ClassVar[Leaf] = "external"
    scope: ClassVar[Scope] = "local"
    sham: ClassVar[ShamKind | None] = "shuffled"
    modalities: ClassVar[str] = "radiography"
    reference: ClassVar[str] = "Juodelyte, thesis on cross-domain transfer in medical imaging, chapter 4"

    size: float = field(default=0.0625, metadata=measured_in("share of the shorter side", low=0, high=1))
    xy: tuple[float, float] = field(default=(0.195, 0.195), metadata=measured_in("shares of width and height", low=0, high=1))
    text: str = field(default="R", metadata=measured_in("text"))
    value: float = field(default=1.0, metadata=measured_in("share of the range", low=0, high=1))
