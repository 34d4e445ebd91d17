"""What every confounder is: an edit of one image in physical units, and its place in MICCAT, the taxonomy of the thesis."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import ClassVar, Literal

from crossgraft.edit._image_edit import EditInfo as EditInfo
from crossgraft.edit._image_edit import Image as Image
from crossgraft.edit._image_edit import ImageEdit as ImageEdit
from crossgraft.edit._image_edit import Painted as Painted
from crossgraft.edit._image_edit import Pixels as Pixels
from crossgraft.edit._image_edit import ShamKind as ShamKind
from crossgraft.edit._image_edit import Touched as Touched
from crossgraft.edit._image_edit import measured_in as measured_in

Level = Literal["patient", "environment"]
Leaf = Literal["demographic", "anatomical", "external", "imaging"]
Scope = Literal["local", "global"]
Domain = Literal["image", "projection", "fourier", "codec"]


@dataclass(frozen=True)
class Confounder(ImageEdit, ABC):
    """Base of the leaves.

    Attributes:
        level: Whether it lies in the person or in how the picture came to be.
        leaf: Place in MICCAT.
        scope: Whether it touches a part of the image or all of it.
        domain: Where it acts.
        modalities: Kinds of images that it occurs in.
    """

    level: ClassVar[Level] = "environment"
    leaf: ClassVar[Leaf]
    scope: ClassVar[Scope] = "global"
    domain: ClassVar[Domain] = "image"
    modalities: ClassVar[str] = "any"
