"""Letters that are too small for a network to see, and how large they would have to be."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from crossgraft.choice import spell
from crossgraft.edit.confounders._drawing import Lettering
from crossgraft.edit.edits import choose_edits
from crossgraft.errors import CrossgraftError

LEAST_LETTER_PIXELS = 6.0
"""Smaller letters are a gray spot."""
TOO_SMALL = f"Letters are {{high}} pixels high at the input of the network; below {LEAST_LETTER_PIXELS:g} they are a spot."
"""Begins the reason why an artefact cannot be assessed."""
_LARGEST_LETTERS = 0.5
"""A share of the shorter side; larger ones hide what the image shows."""
_BEGINNING = re.compile(re.escape(TOO_SMALL.partition("{high}")[0]) + r"(\d+\.\d+)")


def are_too_small(reason: str) -> bool:
    """Whether this reason of an outcome is that letters cannot be seen.

    >>> are_too_small(TOO_SMALL.format(high="4.0"))
    True
    """
    return _BEGINNING.match(reason) is not None


def large_enough(confounder: str, reason: str) -> str | None:
    """The same artefact with letters that can be seen; None where these can, or none would fit.

    Args:
        confounder: The artefact with its options, as it was typed.
        reason: Reason of the outcome.

    >>> large_enough("tag", TOO_SMALL.format(high="4.0"))
    'tag:size=0.125'
    """
    found = _BEGINNING.match(reason)
    if found is None or float(found[1]) <= 0:
        return None
    try:
        (edit,) = choose_edits(confounder)
    except CrossgraftError:  # a plug-in that is not here any more
        return None
    if not isinstance(edit, Lettering):
        return None
    size = edit.size * 2 ** max(1, math.ceil(math.log2(LEAST_LETTER_PIXELS / float(found[1]))))
    return spell(replace(edit, size=size)) if size <= _LARGEST_LETTERS else None
