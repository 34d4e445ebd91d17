"""PALETTE COLOR: the stored value is the number of a colour (DICOM PS3.3 C.7.6.3.1.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crossgraft.data.decoding import composite_on_black
from crossgraft.data.medical._problem import UnreadableFileError
from crossgraft.data.medical.dicom_header import word_type

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

_COLOURS = ("Red", "Green", "Blue")


def palette_colours(numbers: np.ndarray, dataset: Dataset) -> np.ndarray:
    """(height, width, 3) uint8 or uint16.

    Args:
        numbers: (height, width) stored values.
        dataset: Holds the palette, plain or in segments.

    Raises:
        UnreadableFileError: The palette is missing or damaged.
    """
    descriptor = dataset.get("RedPaletteColorLookupTableDescriptor")
    if descriptor is None or len(descriptor) != 3:
        raise UnreadableFileError("it has no palette, which its PhotometricInterpretation announces")
    length, first, bits = int(descriptor[0]) or 2**16, int(descriptor[1]), int(descriptor[2])
    if "RedPaletteColorLookupTableData" in dataset:
        colours = _plain_palette(dataset, length)
    else:
        colours = _segmented_palette(dataset, length, first, bits)
    places = np.clip(numbers.astype(np.int64) - first, 0, length - 1)
    return composite_on_black(colours[places])


def _plain_palette(dataset: Dataset, length: int) -> np.ndarray:
    """(length, 3 or 4): how many bits an entry really has follows from the number of bytes."""
    names = (*_COLOURS, "Alpha") if "AlphaPaletteColorLookupTableData" in dataset else _COLOURS
    columns: list[np.ndarray] = []
    for name in names:
        data = dataset.get(f"{name}PaletteColorLookupTableData")
        if not isinstance(data, bytes) or len(data) not in (length, length + length % 2, 2 * length):
            raise UnreadableFileError(f"its palette of {length} colours is damaged")
        columns.append(np.frombuffer(data, dtype=word_type(dataset) if len(data) == 2 * length else np.uint8)[:length])
    if len({column.dtype for column in columns}) > 1:
        raise UnreadableFileError(f"its palette of {length} colours is damaged")
    return np.stack([column.astype(column.dtype.newbyteorder("=")) for column in columns], axis=-1)


def _segmented_palette(dataset: Dataset, length: int, first: int, bits: int) -> np.ndarray:
    from pydicom.pixels.processing import apply_color_lut

    if bits == 8 and length > 2**8:
        raise UnreadableFileError(f"its palette has {length} colours in segments of 8 bits, which is not read")
    return apply_color_lut(np.arange(first, first + length), dataset)
