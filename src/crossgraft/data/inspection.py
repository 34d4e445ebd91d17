"""Look at every image once, when the data are opened: no surprise is left for the middle of a long run.

One pass decodes each image, finds the damaged ones by name, refuses samples without a meaning (NaN, floats
outside [0, 1]), counts sizes and bit depths, and takes the digests of the fingerprint. What fits in memory is
kept: many backbones look at the same images, and decoding a JPEG costs more than resizing it.

Images may also be edited: other pixels under the same labels, groups, splits and attributes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from crossgraft.compute import available_cores
from crossgraft.data.decoding import strict_decoding
from crossgraft.data.fingerprint import image_digest
from crossgraft.data.medical.files import DicomPlace
from crossgraft.errors import DataError, UnreadableImageError, UsageError
from crossgraft.progress import Reporter

THUMBNAIL_SIDE = 32
"""Pixels a side of the grey thumbnail that near duplicates are compared on."""

Thumbnail = UInt8[np.ndarray, "thumbnail_height thumbnail_width"]

_DEPTHS = {"uint8": "8-bit", "uint16": "16-bit", "float32": "float"}
_WHITE_8_BIT = 255
_FLOAT_ROUNDING = 1e-3  # of a step of 8 bits; division in float32 or float64 is off by less than 1e-4
_WIDE_STEP = 257  # 65535 / 255
_PIXELS_MEASURED = 2**16  # more do not change mean and spread of an image much
_WHITES = {"uint8": 255.0, "uint16": 65535.0, "float32": 1.0}
_SAMPLES_TRIED_FIRST = 1024  # a few samples usually show that an image is not grey, not 8-bit, not constant


class ImageFacts(NamedTuple):
    """What an image showed; all empty for one that cannot be decoded.

    Attributes:
        digest: ``image_digest`` of the samples as they were decoded.
        picture: The same of the canonical form: equal for images of one size that show the same picture, whether grey or
            RGB with three equal channels, whether 8 bits or the same 8 bits stretched to 16 or to floats.
        kind: Height, width, channels and depth in words.
        height: Height in pixels.
        width: Width in pixels.
        is_constant: Whether all pixels have the same value.
        peak_16_bit: Largest sample of a 16-bit image.
        thumbnail: Grey, ``THUMBNAIL_SIDE`` pixels a side whatever the shape of the image, or None if not asked for.
        intensity: Mean of the samples, as a fraction of white; None if no thumbnail was asked for.
        contrast: Their standard deviation, likewise.
    """

    digest: bytes = b""
    picture: bytes = b""
    kind: str = ""
    height: int = 0
    width: int = 0
    is_constant: bool = False
    peak_16_bit: int | None = None
    thumbnail: Thumbnail | None = None
    intensity: float | None = None
    contrast: float | None = None


def look_at(pixels: np.ndarray, *, with_thumbnail: bool = False) -> ImageFacts:
    """The facts of (height, width, 1 or 3) samples; O(number of samples)."""
    height, width, channels = pixels.shape
    digest = image_digest(pixels)
    canonical = canonical_form(pixels)
    intensity, contrast = _intensity_and_contrast(pixels) if with_thumbnail else (None, None)
    return ImageFacts(
        digest=digest,
        picture=digest if canonical is pixels else image_digest(canonical),
        kind=f"{height}×{width} {'grey' if channels == 1 else 'RGB'} {_DEPTHS[pixels.dtype.name]}",
        height=height,
        width=width,
        is_constant=_holds(lambda part: bool((part == pixels[0, 0]).all()), pixels),
        peak_16_bit=int(pixels.max()) if pixels.dtype == np.uint16 else None,
        thumbnail=_thumbnail(pixels) if with_thumbnail else None,
        intensity=intensity,
        contrast=contrast,
    )


def canonical_form(pixels: np.ndarray) -> np.ndarray:
    """The plainest array that shows the same picture; ``pixels`` itself where there is none plainer.

    Three equal channels become one. Samples of 16 bits that are all 257 times an 8-bit one become 8-bit, and so do floats
    that are all an 8-bit one divided by 255.
    """
    canonical = pixels
    if pixels.shape[-1] == 3 and _holds(_has_equal_channels, pixels):
        canonical = canonical[..., :1]
    if canonical.dtype == np.uint16 and _holds(_is_stretched_from_8_bits, canonical):
        canonical = (canonical // _WIDE_STEP).astype(np.uint8)
    if canonical.dtype == np.float32 and _holds(_is_divided_8_bits, canonical):
        canonical = np.rint(canonical * _WHITE_8_BIT).astype(np.uint8)
    return canonical


def _holds(condition: Callable[[np.ndarray], bool], pixels: np.ndarray) -> bool:
    """Whether the condition holds for the first rows, and then for all."""
    few_rows = 1 + _SAMPLES_TRIED_FIRST // (pixels.shape[1] * pixels.shape[2])
    return condition(pixels[:few_rows]) and condition(pixels)


def _has_equal_channels(pixels: np.ndarray) -> bool:
    return bool((pixels[..., 0] == pixels[..., 1]).all() and (pixels[..., 0] == pixels[..., 2]).all())


def _is_stretched_from_8_bits(pixels: np.ndarray) -> bool:
    return not (pixels % _WIDE_STEP).any()


def _is_divided_8_bits(pixels: np.ndarray) -> bool:
    steps = pixels * _WHITE_8_BIT
    return bool((np.abs(steps - np.rint(steps)) < _FLOAT_ROUNDING).all())


def _intensity_and_contrast(pixels: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation over at most ``_PIXELS_MEASURED`` pixels, evenly spaced, as fractions of white."""
    step = math.ceil(math.sqrt(pixels.shape[0] * pixels.shape[1] / _PIXELS_MEASURED))
    grey = pixels[::step, ::step].mean(axis=-1, dtype=np.float64) / _WHITES[pixels.dtype.name]
    return float(grey.mean()), float(grey.std())


def _thumbnail(pixels: np.ndarray) -> Thumbnail:
    """Grey, 8-bit, averaged over boxes; colours weigh as in luminance.

    Other types are stretched to the range of the image: of 10 or 12 bits in 16 nothing would be left in 8.
    """
    if pixels.dtype != np.uint8:
        low, high = float(pixels.min()), float(pixels.max())
        scale = _WHITE_8_BIT / (high - low) if high > low else 0.0
        pixels = np.rint((pixels.astype(np.float32) - low) * scale).astype(np.uint8)
    picture = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).convert("L")
    return np.asarray(picture.resize((THUMBNAIL_SIDE, THUMBNAIL_SIDE), Image.Resampling.BOX))


KEPT_BYTES = 2**30
"""Decoded images are kept in memory up to this many bytes; the others are decoded at each reading."""

_NAMES_IN_MESSAGE = 5
_MAX_THREADS = 8  # decoding saturates memory bandwidth before it uses more
_ROWS_AT_ONCE = 256  # bounds how many decoded images wait to be looked at
_MAX_KINDS = 8  # more sizes than this are shown as a range
# Below a quarter of the 16-bit range an image looks almost black to a model trained on photographs: typical of
# 12-bit scanners whose files were never rescaled.
_DARK_BELOW = 2**14


@dataclass(frozen=True, eq=False)
class InspectedImages:
    """Images that were decoded once, by row.

    Attributes:
        names: Name of each image, without an absolute path.
        facts: Facts about each image; empty for an unreadable one.
        unreadable: Row → why it cannot be used.
        dicom_place: Place of a row in a file of DICOM; None where no row is of DICOM, or what they were read from is far.
    """

    names: Sequence[str] = field(repr=False)
    facts: Sequence[ImageFacts] = field(repr=False)
    unreadable: dict[int, str] = field(repr=False)
    decode: Callable[[int], np.ndarray] = field(repr=False)
    kept: dict[int, np.ndarray] = field(repr=False)
    dicom_place: Callable[[int], DicomPlace | None] | None = field(default=None, repr=False)

    def read(self, row: int) -> np.ndarray:
        """Pixels of one row, (height, width, channels), read-only; safe to call from several threads."""
        kept = self.kept.get(row)
        return kept if kept is not None else _frozen(self.decode(row))

    def in_memory(self, rows: Sequence[int] | np.ndarray) -> InspectedImages:
        """These images for another process: their pixels instead of files, and numbers instead of names of files."""
        numbers = [int(row) for row in rows]
        read = {row: self.read(row) for row in dict.fromkeys(numbers) if row not in self.unreadable}
        pixels = {index: read[row] for index, row in enumerate(numbers) if row in read}
        return InspectedImages(
            names=[f"image {index + 1}" for index in range(len(numbers))],
            facts=[self.facts[row] for row in numbers],
            unreadable={index: self.unreadable[row] for index, row in enumerate(numbers) if row in self.unreadable},
            decode=pixels.__getitem__,
            kept={},
        )

    def __getstate__(self) -> dict[str, Any]:
        """For ``pickle``: as ``in_memory``."""
        return vars(self.in_memory(range(len(self.names))))


class _Look(NamedTuple):
    """What one image showed."""

    pixels: np.ndarray | None
    facts: ImageFacts = ImageFacts()
    unreadable: str | None = None


def inspect_images(
    names: Sequence[str],
    decode: Callable[[int], np.ndarray],
    *,
    skip_unreadable: bool = False,
    for_check: bool = False,
    num_threads: int | None = None,
    kept_bytes: int = KEPT_BYTES,
    reporter: Reporter | None = None,
) -> InspectedImages:
    """Decode every image once and remember what was seen; O(number of samples).

    Args:
        names: Name of each row in messages.
        decode: Pixels of one row; called from several threads.
        skip_unreadable: Go on when images cannot be decoded or their samples have no meaning, and list them.
        for_check: The same, make the thumbnails that near duplicates are found with, and say nothing of images that are all
            dark: the check does that.
        num_threads: Threads that decode; by default one per core, at most 8.
        kept_bytes: Keep decoded images in memory up to this many bytes.
        reporter: Reporter of progress.

    Raises:
        UnreadableImageError: Some images cannot be decoded, and ``skip_unreadable`` is off; all are counted.
        DataError: Samples are NaN, infinite or outside [0, 1], and ``skip_unreadable`` is off.
    """
    reporter = reporter if reporter is not None else Reporter(quiet=True)
    go_on = skip_unreadable or for_check
    threads = num_threads if num_threads is not None else min(available_cores(), _MAX_THREADS)
    looks: list[_Look] = []
    kept: dict[int, np.ndarray] = {}
    room = kept_bytes
    with reporter.stage("Looking at the images", total=len(names)) as stage, strict_decoding():
        for row, look in enumerate(_look_at_all(names, decode, threads, for_check, go_on)):
            if look.pixels is not None and look.pixels.nbytes <= room:
                kept[row] = look.pixels
                room -= look.pixels.nbytes
            looks.append(look._replace(pixels=None))
            stage.advance()
    unreadable = {row: look.unreadable for row, look in enumerate(looks) if look.unreadable is not None}
    if unreadable and not go_on:
        first, *others = unreadable
        reason = unreadable[first]
        if others:
            listed = ", ".join(names[row] for row in others[:_NAMES_IN_MESSAGE])
            more = " …" if len(others) > _NAMES_IN_MESSAGE else ""
            reason = f"{reason} ({len(others)} more cannot be read: {listed}{more})"
        raise UnreadableImageError(names[first], reason)
    facts = [look.facts for look in looks]
    dark = describe_dark(facts)
    if dark is not None and not for_check:
        reporter.warn(dark)
    return InspectedImages(names, facts, unreadable, decode, kept)


def summarise_kinds(kinds: Iterable[str]) -> dict[str, int]:
    """How many images there are of each kind, most frequent first; many different sizes become one range."""
    counts = Counter(kinds)
    if len(counts) > _MAX_KINDS:
        counts = _merge_sizes(counts)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def describe_dark(facts: Iterable[ImageFacts]) -> str | None:
    """What to say where no 16-bit image comes near white; None where that is not so."""
    peaks = [fact.peak_16_bit for fact in facts if fact.peak_16_bit is not None]
    if not peaks or max(peaks) >= _DARK_BELOW:
        return None
    return (
        f"The {len(peaks)} 16-bit images use only 0 … {max(peaks)} of 0 … 65535, so models see them almost black. If they "
        "come from a 10-, 12- or 14-bit scanner, rescale them."
    )


def _look_at_all(
    names: Sequence[str], decode: Callable[[int], np.ndarray], threads: int, with_thumbnails: bool, go_on: bool
) -> Iterable[_Look]:
    def look(row: int) -> _Look:
        try:
            pixels = _frozen(_samples(decode(row), names[row]))
            _refuse_meaningless(pixels, names[row])
        except UnreadableImageError as error:
            return _Look(None, unreadable=error.reason)
        except DataError as error:
            if not go_on:
                raise
            return _Look(None, unreadable=str(error).removeprefix(f"The image {names[row]} "))
        return _Look(pixels, look_at(pixels, with_thumbnail=with_thumbnails))

    with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="decode") as pool:
        for start in range(0, len(names), _ROWS_AT_ONCE):
            rows = range(start, min(start + _ROWS_AT_ONCE, len(names)))
            yield from pool.map(look, rows)


def _refuse_meaningless(pixels: np.ndarray, name: str) -> None:
    if pixels.size == 0:
        raise DataError(f"The image {name} has no pixels: its shape is {pixels.shape}.")
    if pixels.dtype.kind != "f":
        return
    if not np.isfinite(pixels).all():
        bad = int(pixels.size - np.isfinite(pixels).sum())
        raise DataError(
            f"The image {name} has {bad} of {pixels.size} samples that are NaN or infinite. Fill them, or leave the "
            "image out (--skip-unreadable)."
        )
    if pixels.min() < 0 or pixels.max() > 1:
        raise DataError(
            f"The image {name} has float samples from {pixels.min():.4g} to {pixels.max():.4g}, where 0 must be black "
            "and 1 white. Rescale all images alike to [0, 1], save them as 16-bit PNG, or leave such images out "
            "(--skip-unreadable)."
        )


_SAMPLE_TYPES = ("uint8", "uint16", "float32")


def _samples(decoded: object, name: str) -> np.ndarray:
    """Decoded pixels, if they are what every source promises.

    Raises:
        UsageError: A source of another package gave something else.
    """
    if (
        isinstance(decoded, np.ndarray)
        and decoded.ndim == 3
        and decoded.shape[2] in (1, 3)
        and decoded.dtype.name in _SAMPLE_TYPES
    ):
        return decoded
    found = (
        f"shape {decoded.shape} and type {decoded.dtype}" if isinstance(decoded, np.ndarray) else f"type {type(decoded).__name__}"
    )
    raise UsageError(
        f"The data source gave the image {name} as an object of {found}, not as (height, width, 1 or 3) of uint8, uint16 or "
        "float32. Mend the package that brings it."
    )


def _frozen(pixels: np.ndarray) -> np.ndarray:
    """A view that nobody can write to: the array may be shared by many readers."""
    view = pixels.view()
    view.setflags(write=False)
    return view


def _merge_sizes(counts: Counter[str]) -> Counter[str]:
    merged: Counter[str] = Counter()
    sizes: dict[str, list[tuple[int, int]]] = {}
    for kind, count in counts.items():
        size, sample = kind.split(" ", 1)
        height, width = size.split("×")
        merged[sample] += count
        sizes.setdefault(sample, []).append((int(height), int(width)))
    named: Counter[str] = Counter()
    for sample, count in merged.items():
        heights, widths = zip(*sizes[sample], strict=True)
        named[f"{_from_to(heights)}×{_from_to(widths)} {sample}"] = count
    return named


def _from_to(lengths: Sequence[int]) -> str:
    return str(min(lengths)) if min(lengths) == max(lengths) else f"{min(lengths)}–{max(lengths)}"


Edit = Callable[[np.ndarray, str], np.ndarray]
"""Function of the pixels of an image, (height, width, 1 or 3), read-only, and of its identity, 64 hexadecimal digits of the
pixels, that random numbers can be drawn by; to new pixels of the same shape and type. Called from several threads, and again
for images that do not fit in memory."""


def edited_images(
    images: InspectedImages,
    image_rows: Sequence[int] | np.ndarray,
    edit: Edit,
    rows: Collection[int],
    *,
    reshapes: bool = False,
    kept_bytes: int = KEPT_BYTES,
) -> InspectedImages:
    """The images of each row, edited in ``rows``, with facts and digests of the pixels that they have then.

    Args:
        images: What was decoded.
        image_rows: Image of each row.
        edit: What is done.
        rows: Rows that it is done to; unreadable ones stay as they are.
        reshapes: Whether images may have another height and width afterwards.
        kept_bytes: Edited images are kept in memory up to this many bytes; the others are edited at each reading.

    Raises:
        DataError: The edit changed the shape or the type of an image, or made samples that are not finite.
    """
    numbers = [int(row) for row in image_rows]
    unreadable = {index: images.unreadable[row] for index, row in enumerate(numbers) if row in images.unreadable}
    edited = {index for index in rows if index not in unreadable}

    def read(index: int) -> np.ndarray:
        pixels = images.read(numbers[index])
        if index not in edited:
            return pixels
        name = images.names[numbers[index]]
        try:
            return _checked(edit(pixels, images.facts[numbers[index]].digest.hex()), pixels, reshapes=reshapes)
        except DataError as error:
            raise DataError(f"{name} cannot be edited. {error}") from error

    facts, kept, room = [images.facts[row] for row in numbers], dict[int, np.ndarray](), kept_bytes
    for index in sorted(edited):
        pixels = read(index)
        facts[index] = look_at(pixels, with_thumbnail=facts[index].thumbnail is not None)
        if pixels.nbytes <= room:
            kept[index] = pixels
            room -= pixels.nbytes
    return InspectedImages([images.names[row] for row in numbers], facts, unreadable, read, kept)


def without_name(error: DataError) -> str:
    """Why an image cannot be edited, in a sentence that does not name its file, which may say who it is of."""
    cause = error.__cause__
    return f"An image cannot be edited. {cause}" if isinstance(cause, DataError) else str(error)


def _checked(edited: np.ndarray, pixels: np.ndarray, *, reshapes: bool) -> np.ndarray:
    kept = slice(2, None) if reshapes else slice(None)
    if edited.shape[kept] != pixels.shape[kept] or edited.dtype != pixels.dtype:
        raise DataError(
            f"The edit made {edited.shape} {edited.dtype} of {pixels.shape} {pixels.dtype}. An edit keeps shape and type."
        )
    if edited.dtype.kind == "f" and not (np.isfinite(edited).all() and edited.min() >= 0 and edited.max() <= 1):
        raise DataError("The edit made samples that are NaN, infinite or outside [0, 1].")
    return _frozen(edited)
