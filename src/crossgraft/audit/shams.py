"""Sham edits: changes of the same size, place and strength as an artefact, which are not the artefact."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

from crossgraft.choice import spell
from crossgraft.edit._image_edit import ImageEdit, ShamKind
from crossgraft.errors import DataError
from crossgraft.seeding import generator

NUM_SHAMS = 8
"""Draws of a sham that a verdict is made of."""
IN_WORDS: dict[ShamKind, str] = {
    "shuffled": "its pixels change places within its smallest rectangle, and signs at random",
    "scrambled": "its frequencies get random phases, and its mean a random sign",
}
"""What a sham does with the change of the artefact."""
LARGEST_MISMATCH = 0.1
"""A sham fits an image where the root mean square of its change is that of the artefact, up to this share."""
_LARGEST_GAIN, _STEPS, _CLOSE = 4.0, 12, 0.01

Change = Float64[np.ndarray, "height width channels"]


@dataclass
class Sham:
    """One draw of a sham, as what ``Dataset.edited`` takes.

    The change that the artefact makes in an image, clipped and rounded, is drawn anew for each image. ``shuffled``: its pixels
    change places within the smallest rectangle that holds it, and each a sign at random. ``scrambled``: its spectrum gets other
    phases, so that every frequency keeps its power, and its mean a sign at random. A model that learned "something bright there"
    is thereby told from one that any change moves. Where such a change does not fit the image (nothing is darker than black), it
    keeps its signs. The result is made stronger or weaker until the root mean square of what is left after clipping and rounding
    is that of the artefact.

    Args:
        edit: The artefact.
        draw: Number of the draw.
        strength: Multiple of what the artefact changes.
        seed: Random seed of the artefact and of the draw.

    Attributes:
        misfits: Identities of images that no sham fits, because too much of the change is clipped; they are returned with the
            strongest that does, and are no evidence.

    Raises:
        DataError: The artefact has no sham.
    """

    edit: ImageEdit
    draw: int
    strength: float = 1.0
    seed: int = 0
    misfits: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        if self.edit.sham is None:
            raise DataError(f"{self.edit.name} has no sham: {self.edit.why_no_sham}.")

    def __call__(self, pixels: np.ndarray, identity: str) -> np.ndarray:
        """(height, width, 1 or 3) with the sham, of the same type."""
        name = spell(self.edit)
        _, info = self.edit(pixels, generator(self.seed, name, identity), strength=self.strength)
        if info.rms == 0:
            return pixels
        found, mismatch = pixels, np.inf
        for has_signs in (True, False):
            rng = generator(self.seed, name, "sham", self.draw, identity)
            tried, off = _as_strong(pixels, _drawn(info.residual, self.edit.sham, rng, has_signs=has_signs), info.rms)
            if off < mismatch:
                found, mismatch = tried, off
            if mismatch <= LARGEST_MISMATCH:
                return found
        self.misfits.add(identity)
        return found


def refuse_misfits(misfits: int, num_images: int, name: str) -> None:
    """Refuse shams that do not fit the images.

    Args:
        misfits: Images that some draw does not fit.
        num_images: All of them.
        name: The artefact as it was written.

    Raises:
        DataError: They are more than one in ten.
    """
    if misfits > LARGEST_MISMATCH * num_images:
        raise DataError(
            f"Shams of {name} do not fit {misfits} of {num_images} images: drawn anew, too much of the change is clipped at "
            "black or white. Lower --strength, or move the artefact."
        )


def _rectangle(residual: Change) -> tuple[slice, slice]:
    """The smallest one that holds everything that changed."""
    changed = (residual != 0).any(axis=2)
    rows, columns = (np.flatnonzero(changed.any(axis=axis)) for axis in (1, 0))
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)


def _drawn(residual: Change, kind: ShamKind | None, rng: np.random.Generator, *, has_signs: bool) -> Change:
    """The change drawn anew, before it is made as strong as the artefact."""
    return (_scrambled if kind == "scrambled" else _shuffled)(residual, rng, has_signs=has_signs)


def _shuffled(residual: Change, rng: np.random.Generator, *, has_signs: bool) -> Change:
    box, found = _rectangle(residual), np.zeros_like(residual)
    inside = residual[box]
    pixels = inside.reshape(-1, inside.shape[2])[rng.permutation(inside.shape[0] * inside.shape[1])]
    signs = rng.choice([-1.0, 1.0], (len(pixels), 1)) if has_signs else 1.0
    found[box] = (signs * pixels).reshape(inside.shape)
    return found


def _scrambled(residual: Change, rng: np.random.Generator, *, has_signs: bool) -> Change:
    """The same power at every frequency, with the phases of real noise."""
    turns = np.exp(1j * np.angle(np.fft.fft2(rng.standard_normal(residual.shape[:2]))))
    turns[0, 0] = rng.choice([-1.0, 1.0]) if has_signs else 1.0
    return np.fft.ifft2(np.fft.fft2(residual, axes=(0, 1)) * turns[:, :, None], axes=(0, 1)).real


def _as_strong(pixels: np.ndarray, change: Change, rms: float) -> tuple[np.ndarray, float]:
    """Pixels with the multiple of the change that is as strong as wanted after clipping, and by which share it is not.

    The root mean square grows with the multiple, so that halving an interval finds it; only what changes is looked at.
    """
    high = float(np.iinfo(pixels.dtype).max) if pixels.dtype.kind == "u" else 1.0
    box = _rectangle(change)
    given, part = pixels[box].astype(np.float64), change[box]
    wanted = rms * math.sqrt(pixels.size / given.size)

    def with_gain(gain: float) -> tuple[np.ndarray, float]:
        values = np.clip(given + gain * part, 0, high)
        values = np.rint(values) if pixels.dtype.kind == "u" else values
        return values, math.sqrt(float(np.mean((values - given) ** 2))) / wanted

    tried = [with_gain(1.0)]
    low, top = (1.0, _LARGEST_GAIN) if tried[0][1] < 1 else (0.0, 1.0)
    while len(tried) < _STEPS and abs(tried[-1][1] - 1) > _CLOSE:
        middle = (low + top) / 2
        tried.append(with_gain(middle))
        low, top = (middle, top) if tried[-1][1] < 1 else (low, middle)
    best, reached = min(tried, key=lambda one: abs(one[1] - 1))
    found = pixels.copy()
    found[box] = best.astype(pixels.dtype)
    return found, abs(reached - 1)
