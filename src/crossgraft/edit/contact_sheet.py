"""What an edit does to a few images: each without it, with it, and what changed, small enough to stand on one sheet."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, UInt8
from PIL import Image

from crossgraft.choice import spell
from crossgraft.edit._image_edit import EditInfo, ImageEdit
from crossgraft.edit.edits import GREY_LEVELS
from crossgraft.errors import CrossgraftError, CrossgraftWarning
from crossgraft.seeding import generator

SIDE_PIXELS = 256
"""Largest side of a picture; larger images are made smaller."""
_SHOWN_QUANTILE = 0.995
"""Share of the changed pixels that lie within ``ContactSheet.limit``: a single outlier would make all others pale."""

Picture = UInt8[np.ndarray, "height width channels"]
Change = Float32[np.ndarray, "height width"]
Outlined = Bool[np.ndarray, "height width"]


class Example(NamedTuple):
    """One image before any edit.

    Attributes:
        pixels: (height, width, 1 or 3).
        identity: 64 hexadecimal digits of the pixels, that random numbers are drawn by.
    """

    pixels: np.ndarray
    identity: str


class EditedExample(NamedTuple):
    """One image on a sheet, its longer side at most as long as was asked for.

    Attributes:
        without: The image as it is; samples of more than 8 bits stretched from its darkest to its brightest.
        edited: The image with the edit, stretched by the same; None where it cannot be edited.
        change: Strongest change of the pixels and channels that became one, in grey levels of 8 bits; None as ``edited``.
        mask: Where a local edit touched it; None for an edit of the whole image.
        rms: Root mean square of what changed, at full size, in grey levels of 8 bits.
        share_changed: Share of the samples that changed.
        share_touched: Share of the pixels inside the mask.
        num_samples: Number of samples at full size.
        problem: Reason why it cannot be edited, or a warning; empty otherwise.
    """

    without: Picture
    edited: Picture | None = None
    change: Change | None = None
    mask: Outlined | None = None
    rms: float = 0.0
    share_changed: float = 0.0
    share_touched: float | None = None
    num_samples: int = 0
    problem: str = ""


class ContactSheet(NamedTuple):
    """An edit on a few images.

    Attributes:
        images: The images, those among them that cannot be edited.
        rms: Root mean square of what changed, over all images, in grey levels of 8 bits; None where none can be edited.
        share_changed: Share of the samples that changed.
        psnr: Peak signal-to-noise ratio in dB; infinite where nothing changed.
        share_touched: Mean share of the pixels inside the mask; None for an edit of the whole image.
        limit: Grey levels that 99.5 % of the changed pixels stay within, to two digits; 0 where nothing changed.
        problems: What kept images from being edited, and warnings, each once.
    """

    images: list[EditedExample]
    rms: float | None
    share_changed: float | None
    psnr: float | None
    share_touched: float | None
    limit: float
    problems: list[str]

    @property
    def num_edited(self) -> int:
        """Images that can be edited."""
        return sum(image.edited is not None for image in self.images)


def contact_sheet(
    edit: ImageEdit, examples: Sequence[Example], *, seed: int = 0, side: int = SIDE_PIXELS
) -> ContactSheet:
    """Edit each image at its own size, as ``edit_data`` does with the same seed, and make everything small.

    Args:
        edit: What is done.
        examples: Images; one that cannot be edited stays there with the reason.
        seed: Random seed; an image has random numbers of its own, whatever its place.
        side: Largest side of what is kept, in pixels.

    Cost: one edit per image.
    """
    images = [_edited(edit, each, seed, side) for each in examples]
    done = [image for image in images if image.edited is not None]
    problems = list(dict.fromkeys(image.problem for image in images if image.problem))
    if not done:
        return ContactSheet(images, None, None, None, None, 0.0, problems)
    samples = np.array([image.num_samples for image in done])
    rms = math.sqrt(np.average([image.rms**2 for image in done], weights=samples))
    touched = [image.share_touched for image in done if image.share_touched is not None]
    return ContactSheet(
        images,
        rms=rms,
        share_changed=float(np.average([image.share_changed for image in done], weights=samples)),
        psnr=20 * math.log10(GREY_LEVELS / rms) if rms else math.inf,
        share_touched=float(np.mean(touched)) if touched else None,
        limit=_limit([image.change for image in done if image.change is not None]),
        problems=problems,
    )


def _edited(edit: ImageEdit, example: Example, seed: int, side: int) -> EditedExample:
    pixels = example.pixels
    low, high = (0.0, 255.0) if pixels.dtype == np.uint8 else (float(pixels.min()), float(pixels.max()))
    without = _picture(pixels, low, high, side)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", CrossgraftWarning)
            edited, info = edit(pixels, generator(seed, spell(edit), example.identity))
    except CrossgraftError as error:
        return EditedExample(without, problem=str(error))
    white = float(np.iinfo(pixels.dtype).max) if pixels.dtype.kind == "u" else 1.0
    said = [str(each.message) for each in warned if issubclass(each.category, CrossgraftWarning)]
    return EditedExample(
        without,
        edited=_picture(edited, low, high, side),
        change=_strongest(info.residual * (GREY_LEVELS / white), side),
        mask=_mask(info, side),
        rms=info.rms * GREY_LEVELS / white,
        share_changed=info.share_changed,
        share_touched=None if info.mask is None else float(info.mask.mean()),
        num_samples=pixels.size,
        problem=" ".join(dict.fromkeys(said)),
    )


def smaller(shape: tuple[int, int], side: int) -> tuple[int, int]:
    """Height and width with the same aspect whose longer one is at most ``side``."""
    factor = min(1.0, side / max(shape))
    return max(1, round(shape[0] * factor)), max(1, round(shape[1] * factor))


def _picture(pixels: np.ndarray, low: float, high: float, side: int) -> Picture:
    """Means of the pixels that become one: any other filter would add an artefact of its own."""
    stretched = (pixels.astype(np.float32) - low) * (GREY_LEVELS / max(high - low, 1e-12))
    samples = np.rint(np.clip(stretched, 0, GREY_LEVELS)).astype(np.uint8)
    height, width = smaller(samples.shape[:2], side)
    drawn = Image.fromarray(samples[:, :, 0] if samples.shape[2] == 1 else samples)
    small = np.asarray(drawn.resize((width, height), Image.Resampling.BOX))
    return small.reshape(height, width, samples.shape[2])


def shrink_picture(picture: Picture, side: int) -> UInt8[np.ndarray, "_ _ channels"]:
    """A picture whose longer side is at most ``side``."""
    return _picture(picture, 0.0, 255.0, side)


def shrink_change(change: Change, side: int) -> Float32[np.ndarray, "_ _"]:
    """The strongest of the changes that become one; their mean would lose what changes from pixel to pixel."""
    return _strongest(change[:, :, None], side)


def _strongest(residual: np.ndarray, side: int) -> Change:
    up = _largest(np.maximum(residual.max(axis=2), 0), side)
    down = _largest(np.maximum(-residual.min(axis=2), 0), side)
    return np.where(up >= down, up, -down).astype(np.float32)


def _mask(info: EditInfo, side: int) -> Outlined | None:
    return None if info.mask is None else _largest(info.mask, side)


def _largest(values: np.ndarray, side: int) -> np.ndarray:
    """(height, width) to a size of ``smaller``: the largest value of each block."""
    for axis, length in enumerate(smaller((values.shape[0], values.shape[1]), side)):
        starts = np.arange(length) * values.shape[axis] // length
        values = np.maximum.reduceat(values, starts, axis=axis)
    return values


def _limit(changes: Sequence[Float32[np.ndarray, "_ _"]]) -> float:
    sizes = np.abs(np.concatenate([change.ravel() for change in changes]))
    return float(f"{np.quantile(sizes[sizes > 0], _SHOWN_QUANTILE):.2g}") if sizes.any() else 0.0
