"""An edit of one image: its options in physical units, and what it did; a confounder has its place in MICCAT, too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Literal, NamedTuple, cast

import numpy as np
from jaxtyping import Bool, Float64, Num

from crossgraft.errors import DataError, UsageError

Pixels = Float64[np.ndarray, "height width channels"]
"""One image, its range mapped to [0, 1]; an edit may leave that."""
Touched = Bool[np.ndarray, "height width"]
Image = Num[np.ndarray, "*shape"]
"""(height, width), (height, width, 1 or 3) or (1 or 3, height, width)."""
ShamKind = Literal["shuffled", "scrambled"]

LEAST_SIDE_PIXELS = 8
"""Images of a shorter side carry no artefact that can be told from another."""


class EditInfo(NamedTuple):
    """What was done to one image.

    Attributes:
        params: Option → value that was used.
        mask: (height, width), where a local edit touched it; None for an edit of the whole image.
        residual: Edited minus original, float64, after clipping and rounding.
        rms: Root mean square of the residual, in the unit of the image.
        share_changed: Share of the values that changed.
    """

    params: dict[str, object]
    mask: Touched | None
    residual: Float64[np.ndarray, "*shape"]
    rms: float
    share_changed: float


class Painted(NamedTuple):
    """What a leaf makes of pixels.

    Attributes:
        pixels: Edited, not clipped.
        mask: Where it touched them; None: everywhere.
    """

    pixels: Pixels
    mask: Touched | None = None


_STRONGEST = 1_000_000
"""More than makes the smallest change of a 16-bit image one from black to white."""


@dataclass(frozen=True)
class ImageEdit(ABC):
    """Base of all edits: a frozen dataclass whose fields are its options, and ``edit``.

    Calling it edits one image. The range of values is mapped to [0, 1], ``edit`` works there, the residual is scaled by
    ``strength``, and the result is clipped, rounded to the nearest integer for integer images, and has the shape and type that
    came in. With strength 0 that is the sham control: the same chain without an edit.

    Attributes:
        name: Name on the command line and in tables.
        title: Title in print.
        reference: Publication or norm behind it.
        is_stochastic: Whether two images get different edits.
        sham: How a change of the same size, place and strength is drawn that is not this one (``audit.shams``); None: not at all.
        why_no_sham: Reason that there is none, without a full stop.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    reference: ClassVar[str]
    is_stochastic: ClassVar[bool] = False
    sham: ClassVar[ShamKind | None] = "scrambled"
    why_no_sham: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Refuse options out of the range that their field states."""
        for each in fields(self):
            low, high = each.metadata.get("low"), each.metadata.get("high")
            for value in _numbers(getattr(self, each.name)):
                if not np.isfinite(value) or (low is not None and value < low) or (high is not None and value > high):
                    bounds = f"in [{'−∞' if low is None else f'{low:g}'}, {'∞' if high is None else f'{high:g}'}]"
                    raise UsageError(f"{each.name} of {self.name} must be {bounds}, got {value!r}.")

    @abstractmethod
    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """The edit at full strength.

        Args:
            pixels: (height, width, 1 or 3), the range of the image mapped to [0, 1]; not to be written to.
            rng: Random numbers of this image.
        """

    def __call__(
        self,
        image: Image,
        rng: np.random.Generator | None = None,
        *,
        strength: float = 1.0,
        value_range: tuple[float, float] | None = None,
    ) -> tuple[Image, EditInfo]:
        """The edited image, of the same shape and type, and what was done to it.

        Args:
            image: (height, width), (height, width, 1 or 3) or (1 or 3, height, width); integers, or floats.
            rng: Random numbers of this image; only a stochastic edit needs them.
            strength: Multiple of the residual: 0 leaves the image as it is, 1 is the edit.
            value_range: Lowest and highest value that the image may have; by default (0, 1) for floats, the range of
                uint8 and uint16 for these.

        Raises:
            DataError: The image has another form, values that are not finite or out of its range, or is too small.
            UsageError: ``strength`` is negative or above a million, a stochastic edit has no ``rng``, or ``edit`` gives no image.
        """
        if not 0 <= strength <= _STRONGEST:
            raise UsageError(f"The strength of {self.name} must be at least 0 and at most {_STRONGEST:,}, got {strength!r}.")
        if rng is None and self.is_stochastic:
            raise UsageError(f"{self.name} draws random numbers. Give it a generator: rng=.")
        low, high = value_range or _range_of(image)
        layout = _layout_of(image)
        given = np.asarray(image, dtype=np.float64)
        _refuse_values(given, low, high)
        pixels = (_channels_last(given, layout) - low) / (high - low)
        painted = Painted(pixels) if strength == 0 else self._painted(pixels, rng or np.random.default_rng(0))
        change = strength * (high - low) * (painted.pixels - pixels)
        clipped = np.clip((given + (np.moveaxis(change, 2, 0) if layout == "chw" else change).reshape(given.shape)), low, high)
        edited = (np.rint(clipped) if np.issubdtype(image.dtype, np.integer) else clipped).astype(image.dtype)
        residual = edited.astype(np.float64) - given
        return edited, EditInfo(
            params={**{each.name: getattr(self, each.name) for each in fields(self)}, "strength": strength},
            mask=painted.mask,
            residual=residual,
            rms=float(np.sqrt(np.mean(residual**2))),
            share_changed=float(np.mean(residual != 0)),
        )

    def _painted(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """What ``edit`` gives, if it is an image: NaN would be rounded to any value."""
        pixels.setflags(write=False)  # what is written there would be compared with itself, and be no change
        painted = cast("object", self.edit(pixels, rng))
        if not isinstance(painted, Painted):
            fault = f"an object of type {type(painted).__name__} instead of Painted(pixels)"
        elif np.shape(painted.pixels) != pixels.shape:
            fault = f"pixels of shape {np.shape(painted.pixels)} for an image of {pixels.shape}"
        elif not np.isfinite(painted.pixels).all():
            fault = "pixels that are NaN or infinite"
        elif painted.mask is not None and (np.shape(painted.mask) != pixels.shape[:2] or painted.mask.dtype != np.bool_):
            fault = f"a mask of shape {np.shape(painted.mask)} and type {painted.mask.dtype} for an image of {pixels.shape}"
        else:
            return painted
        raise UsageError(f"The edit {self.name} gave {fault}. Mend it, or leave it out.")


def measured_in(unit: str, *, low: float | None = None, high: float | None = None) -> Mapping[str, str | float | None]:
    """Metadata of a field: its unit, and its range."""
    return {"unit": unit, "low": low, "high": high}


def _numbers(value: object) -> list[float]:
    several = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
    return [float(each) for each in several if isinstance(each, int | float) and not isinstance(each, bool)]


def _range_of(image: Image) -> tuple[float, float]:
    if image.dtype.kind == "u" and image.dtype.itemsize <= 2:
        return 0.0, float(np.iinfo(image.dtype).max)
    if np.issubdtype(image.dtype, np.floating):
        return 0.0, 1.0
    raise DataError(f"An image of type {image.dtype} has no range that is known. Give value_range=(low, high).")


def _layout_of(image: Image) -> str:
    """``hw``, ``hwc`` or ``chw``."""
    if image.ndim == 2:
        layout, side = "hw", min(image.shape)
    elif image.ndim == 3 and image.shape[2] in (1, 3):
        layout, side = "hwc", min(image.shape[:2])
    elif image.ndim == 3 and image.shape[0] in (1, 3):
        layout, side = "chw", min(image.shape[1:])
    else:
        raise DataError(
            f"An image must be (height, width), (height, width, 1 or 3) or (1 or 3, height, width), got {image.shape}."
        )
    if side < LEAST_SIDE_PIXELS:
        raise DataError(f"An image of {image.shape} is too small to be edited: its sides need {LEAST_SIDE_PIXELS} pixels.")
    return layout


def _refuse_values(given: np.ndarray, low: float, high: float) -> None:
    if not np.isfinite(given).all():
        raise DataError("The image has values that are NaN or infinite.")
    if given.min() < low or given.max() > high:
        raise DataError(
            f"The image has values from {given.min():g} to {given.max():g}, out of its range of {low:g} to {high:g}. Give "
            "value_range=(low, high)."
        )


def _channels_last(given: np.ndarray, layout: str) -> np.ndarray:
    if layout == "hw":
        return given[:, :, None]
    return given if layout == "hwc" else np.moveaxis(given, 0, 2)


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
