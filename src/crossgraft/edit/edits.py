"""Edits of data sets, chosen by name: every confounder, and edits that take cues away."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from crossgraft.choice import choose, spell
from crossgraft.edit._image_edit import ImageEdit, Painted, Pixels
from crossgraft.edit.confounders import CONFOUNDERS
from crossgraft.edit.high_pass import HighPass
from crossgraft.edit.source_editing import whiten_spectrum
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.registry import Registry
from crossgraft.seeding import generator

GREY_LEVELS = 255


@dataclass(frozen=True)
class WhitenSpectrum(ImageEdit):
    """A flat spectrum: what is left of an image is its phase. Values that leave the range are clipped."""

    name: ClassVar[str] = "whiten_spectrum"
    title: ClassVar[str] = "Whitened spectrum"
    reference: ClassVar[str] = "Juodelyte, thesis on cross-domain transfer in medical imaging, equation 5.2"

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """Every channel for itself."""
        return Painted(whiten_spectrum(pixels))


SOURCE_EDITS: Registry[type[Any]] = Registry("edit", group="crossgraft.edits", plugin_type=type)
"""Edits that are no confounder: they take cues away."""
SOURCE_EDITS.add(WhitenSpectrum.name, WhitenSpectrum)
SOURCE_EDITS.add(HighPass.name, HighPass)


class EditFacts(NamedTuple):
    """What an edit did to images, in grey levels of 8 bits whatever their type.

    Attributes:
        num_images: Different images that it was done to.
        rms: Root mean square of the residual, over all of them.
        share_changed: Share of the samples that changed.
        psnr: Peak signal-to-noise ratio in dB; infinite where nothing changed.
    """

    num_images: int
    rms: float
    share_changed: float
    psnr: float


@dataclass
class Editing:
    """Edits in their order, as what ``Dataset.edited`` takes; remembers what each of them did.

    Args:
        edits: What is done to an image.
        strength: Multiple of every residual.
        seed: Random seed; an image has random numbers of its own, whatever its place.
    """

    edits: Sequence[ImageEdit]
    strength: float = 1.0
    seed: int = 0
    _seen: dict[tuple[int, str], tuple[float, float, int]] = field(
        default_factory=dict[tuple[int, str], tuple[float, float, int]]
    )

    def __call__(self, pixels: np.ndarray, identity: str) -> np.ndarray:
        """Edited pixels of the same shape and type."""
        for place, edit in enumerate(self.edits):
            rng = generator(self.seed, spell(edit), identity)
            edited, info = edit(pixels, rng, strength=self.strength)
            white = float(np.iinfo(pixels.dtype).max) if pixels.dtype.kind == "u" else 1.0
            squares = float(np.square(info.residual * (GREY_LEVELS / white)).sum())
            self._seen[place, identity] = (squares, info.share_changed * pixels.size, pixels.size)
            pixels = edited
        return pixels

    def facts(self) -> list[EditFacts]:
        """One entry per edit, over the images so far."""
        found: list[EditFacts] = []
        for place in range(len(self.edits)):
            rows = [row for (edit, _), row in self._seen.items() if edit == place]
            squares, changed, samples = (sum(column) for column in zip(*rows, strict=True)) if rows else (0.0, 0.0, 0)
            rms = math.sqrt(squares / samples) if samples else 0.0
            psnr = 20 * math.log10(GREY_LEVELS / rms) if rms else math.inf
            found.append(EditFacts(len(rows), rms, changed / samples if samples else 0.0, psnr))
        return found


def choose_edits(edits: str | ImageEdit | Sequence[Any]) -> list[ImageEdit]:
    """The edits that are asked for, in their order.

    Args:
        edits: Name with options, such as ``low_pass:0.125``, an edit, or several of them.

    Raises:
        UsageError: None was named, or an option has a wrong value.
        UnknownNameError: There is no such edit; the message gives the nearest names.
    """
    several = [edits] if isinstance(edits, str | ImageEdit) else list(edits)
    if not several:
        raise UsageError("No edit was named, for example: --with tag.")
    for each in several:
        if not isinstance(each, str | ImageEdit):
            raise UsageError(f"An edit is a name with options, such as low_pass:0.125, not {each!r}.")
    return [_one(each) for each in several]


def _one(edit: str | ImageEdit) -> ImageEdit:
    if isinstance(edit, ImageEdit):
        return edit
    name = edit.partition(":")[0].strip()
    if name in SOURCE_EDITS.names():
        return choose(SOURCE_EDITS, edit)
    if name not in CONFOUNDERS.names():
        raise UnknownNameError("edit", name, [*CONFOUNDERS.names(), *SOURCE_EDITS.names()])
    return choose(CONFOUNDERS, edit)
