"""From stored values to brightness: physical units, then a window, then black to white.

Stored values of at most 16 bits go through a table with one entry a possible value: exact, and one look-up a pixel
whatever the window is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from crossgraft.errors import UsageError, nearest_names

HOUNSFIELD_WINDOWS: dict[str, tuple[float, float]] = {
    "lung": (-600.0, 1500.0),
    "mediastinum": (50.0, 350.0),
    "soft-tissue": (50.0, 400.0),
    "abdomen": (50.0, 400.0),
    "liver": (30.0, 150.0),
    "brain": (40.0, 80.0),
    "stroke": (40.0, 40.0),
    "subdural": (75.0, 215.0),
    "spine": (50.0, 250.0),
    "bone": (400.0, 1800.0),
    "temporal-bone": (600.0, 2800.0),
}
"""Name → centre and width in Hounsfield units, as radiology teaches them for CT."""


@dataclass(frozen=True)
class Window:
    """A range of intensities in the units of the file, and how it is spread from black to white.

    Attributes:
        center: The middle of the range.
        width: Above 0.
        function: ``LINEAR_EXACT`` spreads ``center ± width/2``; ``LINEAR`` and ``SIGMOID`` are those of DICOM
            PS3.3 C.11.2.1.
    """

    center: float
    width: float
    function: Literal["LINEAR", "LINEAR_EXACT", "SIGMOID"] = "LINEAR_EXACT"


@dataclass(frozen=True)
class WindowPolicy:
    """What the user wants to see.

    Attributes:
        kind: ``file``: the file's own window if it has one, else its full range; ``full``: stored values
            of up to 16 bits apart from each other; ``given``: the window below.
        window: Window, for ``given`` only.
        name: Name as the user wrote it.
        is_hounsfield: Whether the window only makes sense for CT.
    """

    kind: Literal["file", "full", "given"] = "file"
    window: Window | None = None
    name: str = "file"
    is_hounsfield: bool = False


def parse_window(text: str | None) -> WindowPolicy:
    """The policy that ``--window`` names; None is ``file``.

    Raises:
        UsageError: It is neither ``file`` nor ``full``, nor the name of a window, nor CENTER,WIDTH.
    """
    name = "file" if text is None else text.strip().casefold()
    if name == "file" or name == "full":
        return WindowPolicy(name, name=name)
    if name in HOUNSFIELD_WINDOWS:
        center, width = HOUNSFIELD_WINDOWS[name]
        return WindowPolicy("given", Window(center, width), name=name, is_hounsfield=True)
    numbers = _numbers(name)
    if len(numbers) != 2:
        near = nearest_names(name, ["file", "full", *HOUNSFIELD_WINDOWS])
        advice = f"Did you mean {' or '.join(near)}?" if near else f"Known names: {', '.join(HOUNSFIELD_WINDOWS)}."
        raise UsageError(f"--window is file, full, a name, or CENTER,WIDTH such as -600,1500; not {text}. {advice}")
    center, width = numbers
    if not (math.isfinite(center) and math.isfinite(width) and width > 0):
        raise UsageError(f"The width of --window must be above 0, and both numbers finite; not {text}.")
    return WindowPolicy("given", Window(center, width), name=f"{center:g},{width:g}")


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return []


_WHITE = 65535
_WHITE_8_BIT = 255
_STEPS_PER_8_BIT_STEP = _WHITE // _WHITE_8_BIT
WIDEST_TABLE_BITS = 16


@dataclass(frozen=True)
class LookupTable:
    """A table of the file: value ``first`` becomes ``entries[0]``; values beyond either end take the nearest entry.

    Attributes:
        first: The value of the first entry.
        bits: Bits of an entry.
        entries: Little-endian uint16.
    """

    first: int
    bits: int
    entries: bytes

    def of(self, values: np.ndarray) -> np.ndarray:
        """The entry of each value, as float64."""
        entries = np.frombuffer(self.entries, dtype="<u2")
        indices = np.clip(np.rint(values) - self.first, 0, len(entries) - 1).astype(np.int64)
        return entries[indices].astype(np.float64)


@dataclass(frozen=True)
class Span:
    """From black to white, in physical units."""

    low: float
    high: float


@dataclass(frozen=True)
class Display:
    """How stored values become brightness.

    Attributes:
        slope: Physical = slope · stored + intercept; not 0.
        intercept: See ``slope``.
        modality_table: Takes the place of slope and intercept where a file has one.
        shown: A window, a table or a span of physical values; None: all values that can be stored.
        inverted: Low values are white.
        padding: Stored values from … to that lie outside the picture and are black.
    """

    slope: float = 1.0
    intercept: float = 0.0
    modality_table: LookupTable | None = None
    shown: Window | LookupTable | Span | None = None
    inverted: bool = False
    padding: tuple[float, float] | None = None

    def physical(self, stored: np.ndarray) -> np.ndarray:
        """In the units of the file (Hounsfield units for CT), float64."""
        if self.modality_table is not None:
            return self.modality_table.of(stored)
        return stored.astype(np.float64) * self.slope + self.intercept

    def brightness(self, stored: np.ndarray, possible: Span) -> np.ndarray:
        """0 (black) … 1 (white) of each stored value, float64.

        Args:
            stored: Stored values, of any shape.
            possible: The lowest and the highest value that can be stored, which ``shown=None`` spreads.
        """
        physical = self.physical(stored)
        if isinstance(self.shown, Window):
            bright = _through_window(physical, self.shown)
        elif isinstance(self.shown, LookupTable):
            bright = self.shown.of(physical) / (2**self.shown.bits - 1)
        else:
            span = self.shown if self.shown is not None else self._physical_span(possible)
            width = span.high - span.low
            bright = np.clip((physical - span.low) / width, 0, 1) if width > 0 else np.zeros_like(physical)
        bright = 1 - bright if self.inverted else bright
        if self.padding is not None:
            bright = np.where((stored >= self.padding[0]) & (stored <= self.padding[1]), 0, bright)
        return bright

    def _physical_span(self, possible: Span) -> Span:
        if self.modality_table is not None:
            return Span(0.0, 2.0**self.modality_table.bits - 1)
        ends = (possible.low * self.slope + self.intercept, possible.high * self.slope + self.intercept)
        return Span(min(ends), max(ends))


def _through_window(values: np.ndarray, window: Window) -> np.ndarray:
    """DICOM PS3.3 C.11.2.1.2 (LINEAR), C.11.2.1.3.1 (SIGMOID) and C.11.2.1.3.2 (LINEAR_EXACT)."""
    if window.function == "SIGMOID":
        exponent = np.clip(-4 * (values - window.center) / window.width, -700, 700)
        return 1 / (1 + np.exp(exponent))
    if window.function == "LINEAR" and window.width == 1:
        return (values > window.center - 0.5).astype(np.float64)
    # The standard has no LINEAR window narrower than 1; files of small physical values have, and mean the exact one.
    if window.function == "LINEAR" and window.width > 1:
        return np.clip((values - (window.center - 0.5)) / (window.width - 1) + 0.5, 0, 1)
    return np.clip((values - window.center) / window.width + 0.5, 0, 1)


@lru_cache(maxsize=64)
def display_table(display: Display, bits: int, signed: bool) -> np.ndarray:
    """The pixel of each possible stored value; index: the value's bits, read as an unsigned number.

    Returns:
        (2^bits,) uint16; uint8 where no more than 8 bits are stored and every entry is one of the 256 steps.
    """
    codes = np.arange(2**bits)
    stored = np.where(codes >= 2 ** (bits - 1), codes - 2**bits, codes) if signed else codes
    possible = Span(float(stored.min()), float(stored.max()))
    table = to_uint16(display.brightness(stored, possible))
    if bits <= 8 and not (table % _STEPS_PER_8_BIT_STEP).any():
        table = (table // _STEPS_PER_8_BIT_STEP).astype(np.uint8)
    table.setflags(write=False)
    return table


def look_up(table: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """``table[codes]`` for codes that are all in range, at a fraction of the time: nothing is checked again."""
    return np.take(table, codes, mode="clip")


def show_wide(stored: np.ndarray, display: Display, found: Span) -> np.ndarray:
    """Pixels of values that are floats or wider than 16 bits.

    Args:
        stored: Stored values, of any shape.
        display: Display of the values.
        found: The lowest and the highest value of the whole file, black and white where the display names no others.

    Returns:
        uint16 where the file holds whole numbers so close together that each keeps a step of its own, else float32.
    """
    bright = display.brightness(stored, found)
    if stored.dtype.kind in "iu" and display.shown is None and found.high - found.low <= _WHITE:
        return to_uint16(bright)
    return bright.astype(np.float32)


def to_uint16(bright: np.ndarray) -> np.ndarray:
    """0 … 1 as 0 … 65535."""
    return np.rint(bright * _WHITE).astype(np.uint16)
