"""How far an artefact reaches into a network: what is left of it at the input, and whether the features show it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from crossgraft.audit.detectability import Detectability
from crossgraft.data.rows import ImageRows
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import DataError
from crossgraft.types import LARGEST_INPUT_PIXELS, Preprocessing

_AT_ONCE = 64


class Reach(NamedTuple):
    """How far an artefact reaches into a network.

    Attributes:
        detectability: Whether a probe sees it in the features of the frozen network.
        input_rms: Root mean square of what it changes at the input, in units of the normalised input.
    """

    detectability: Detectability
    input_rms: float


def input_rms(clean: ImageRows, edited: ImageRows, preprocessing: Preprocessing) -> float:
    """Root mean square of what an edit changes in prepared images, in units of the normalised input.

    Raises:
        DataError: There are no images, or other ones.

    Cost: each image is prepared twice.
    """
    if len(clean) != len(edited) or not len(clean):
        raise DataError(f"The same images are needed without and with the edit; there are {len(clean)} and {len(edited)}.")
    squares, samples = 0.0, 0
    for first in range(0, len(clean), _AT_ONCE):
        rows = range(first, min(first + _AT_ONCE, len(clean)))
        before, after = (prepare_batch([each.read(row) for row in rows], preprocessing) for each in (clean, edited))
        squares += float((after - before).double().square().sum())
        samples += before.numel()
    return math.sqrt(squares / samples)


_FEW_IMAGES = 16
_TIMES_AS_MUCH = 1.5


def larger_input(clean: ImageRows, edited: ImageRows, preprocessing: Preprocessing) -> int | None:
    """Side of an input that half as much again of an artefact reaches: 2, 4, 8 … times as long, and no longer than the images.

    None where no such size helps, since it is not by resizing that the artefact is lost.

    Args:
        clean: Images as they are.
        edited: The same with the artefact.
        preprocessing: That of the network, at whose input too little is left of it.

    Raises:
        DataError: There are no images, or other ones.

    Cost: 16 images, prepared twice for each size.
    """
    few = np.arange(min(len(clean), _FEW_IMAGES))
    clean, edited = clean.take(few), edited.take(few)
    left = input_rms(clean, edited, preprocessing)
    native = min(float(np.median([min(fact.height, fact.width) for fact in clean.facts])), LARGEST_INPUT_PIXELS)
    side = 2 * min(preprocessing.height_pixels, preprocessing.width_pixels)
    while side <= native:
        if input_rms(clean, edited, replace(preprocessing, height_pixels=side, width_pixels=side)) > _TIMES_AS_MUCH * left:
            return side
        side *= 2
    return None
