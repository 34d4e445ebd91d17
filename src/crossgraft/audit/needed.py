"""How many images a verdict needs: what can be said before anything is asked, and what an undecided verdict says itself."""

from __future__ import annotations

import math

import numpy as np

from crossgraft.audit.attributes import CELLS, BinaryAttribute, by_cell, cell_in_words
from crossgraft.audit.record import ImagesNeeded
from crossgraft.audit.trained import LARGEST_DROP
from crossgraft.metrics import MetricValue
from crossgraft.types import Groups

UNCHANGED = math.floor(math.log(0.025) / math.log(1 - LARGEST_DROP)) + 1
"""Patients, or images, of each class from which on a drop of 0 is told from ``LARGEST_DROP``: where none of n changes its place,
``auc_difference`` says that up to 1 − 0.025^(1/n) of all such may."""
SUPPOSED_AUC = 0.8
_Z_INTERVAL, _Z_OF_80_PERCENT = 1.959964, 1.281552
_MOST_TIMES = 100.0


def cell_size(auc: float = SUPPOSED_AUC) -> int:
    """Images of each cell of class and attribute with which 80 % of models that pay no heed to the attribute pass.

    Half the difference of two areas of m positives and m negatives lies within ± ``LARGEST_DROP``, with its interval of 95 %, if
    (1.96 + 1.28) · SE(m) / √2 does.

    Args:
        auc: Supposed area of each, in [0.5, 1].

    Source: Hanley and McNeil, Radiology 143, 1982, for SE(m).

    >>> cell_size(0.8), cell_size(0.95)
    (207, 55)
    """
    q1, q2 = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    for m in range(2, 100_000):
        variance = (auc * (1 - auc) + (m - 1) * (q1 + q2 - 2 * auc**2)) / m**2
        if (_Z_INTERVAL + _Z_OF_80_PERCENT) * math.sqrt(variance / 2) <= LARGEST_DROP:
            return m
    return 100_000


def needed_of_artefact(confounder: str, is_positive: np.ndarray, groups: Groups | None, positive: str) -> list[ImagesNeeded]:
    """Images of each class, as patients where these are known.

    Args:
        confounder: The artefact as it was written.
        is_positive: (n,) of the images that are measured on.
        groups: Patient of each.
        positive: The class in question.
    """
    unit = np.arange(len(is_positive)) if groups is None else groups
    what = "images" if groups is None else "groups"
    sides = ((f"{what} of {positive}", is_positive), (f"{what} of other classes", ~is_positive))
    return [
        ImagesNeeded(confounder=confounder, what=which, available=len(np.unique(unit[side])), needed=UNCHANGED)
        for which, side in sides
    ]


def needed_of_attribute(confounder: str, is_positive: np.ndarray, attribute: BinaryAttribute) -> list[ImagesNeeded]:
    """Images of each cell of class and attribute.

    Args:
        confounder: The attribute as it was written.
        is_positive: (n,) of the images that are measured on.
        attribute: Who of these has it, and of whom that is known.
    """
    cells = by_cell(is_positive, attribute.flags.astype(bool), attribute.known)
    return [
        ImagesNeeded(
            confounder=confounder,
            what=cell_in_words(cell, attribute.in_words),
            available=int(cells[cell].sum()),
            needed=cell_size(),
        )
        for cell in CELLS
    ]


def times_as_many(measured: MetricValue, *, both_sides: bool) -> float | None:
    """How many times as many images would decide, if the value stayed what it is: half-widths shrink as 1 / √n.

    None without an interval, or where it cannot be told: the value is at a limit, or more than a hundred times are needed.

    Args:
        measured: The number and its interval, of which 0 or the limit lies inside.
        both_sides: Whether the limits are ± ``LARGEST_DROP``; else only above 0 counts.
    """
    if measured.low is None or measured.high is None:
        return None
    size = abs(measured.value) if both_sides else measured.value
    below = LARGEST_DROP - size
    above = size if not both_sides or size > LARGEST_DROP else 0.0
    margin, half = max(below, above), (measured.high - measured.low) / 2
    times = (half / margin) ** 2 if margin > 0 else math.inf
    return times if times <= _MOST_TIMES else None


def more_images(measured: MetricValue, fewest: int, *, both_sides: bool, what: str) -> str:
    """A sentence for an undecided verdict.

    Args:
        measured: The number that does not decide.
        fewest: Patients or images of the smallest class or cell.
        both_sides: As of ``times_as_many``.
        what: What ``fewest`` counts: "patients of each class".
    """
    least = fewest + 1 if both_sides else max(UNCHANGED, fewest + 1)
    if measured.low is None or (measured.value == 0 and not both_sides):  # the width of the latter shrinks as 1 / n
        return f"About {least} {what} are needed; there are {fewest}."
    times = times_as_many(measured, both_sides=both_sides)
    if times is None:
        return f"The value is so near to a limit that more than {_MOST_TIMES:g} times as many images would be needed."
    return f"About {max(math.ceil(times * fewest), least)} {what} are needed; there are {fewest}."
