"""How much of an edit is left at the input of a network."""

from __future__ import annotations

import math
from typing import NamedTuple

from crossgraft.audit.detectability import Detectability
from crossgraft.data.rows import ImageRows
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import DataError
from crossgraft.types import Preprocessing

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

    Args:
        clean: Images as they are.
        edited: The same images with the edit.
        preprocessing: How images become inputs.

    Raises:
        DataError: There are no images, or other ones.

    Cost: each image is prepared twice.
    """
    if len(clean) != len(edited) or not len(clean):
        raise DataError(
            f"The same images are needed without and with the edit; there are {len(clean)} and {len(edited)}."
        )
    squares, samples = 0.0, 0
    for first in range(0, len(clean), _AT_ONCE):
        rows = range(first, min(first + _AT_ONCE, len(clean)))
        before, after = (prepare_batch([each.read(row) for row in rows], preprocessing) for each in (clean, edited))
        squares += float((after - before).double().square().sum())
        samples += before.numel()
    return math.sqrt(squares / samples)
