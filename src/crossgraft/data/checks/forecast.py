"""How long a check will take: some images are looked at first, and near duplicates are searched among made-up ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from crossgraft.data.checks.near_duplicates import find_near_duplicates
from crossgraft.data.checks.survey import LOOKING
from crossgraft.data.inspection import THUMBNAIL_SIDE, inspect_images
from crossgraft.progress import Piece, Reporter, TypicalClock
from crossgraft.seeding import generator
from crossgraft.words.formatting import counted

CHECKING = "checking"
"""The part of the work that follows."""

_SHARE, _MOST_IMAGES = 32, 64
_FEW = 1000
_EXPONENT = 1.3
"""The search grows like n at first and like n² in the end; see Checking data in docs/results/benchmarks.md."""


def foresee(names: Sequence[str], decode: Callable[[int], np.ndarray], *, num_threads: int | None, reporter: Reporter) -> None:
    """Say how long the check of these images will take.

    Args:
        names: Name of each row.
        decode: Pixels of one row.
        num_threads: As in ``inspect_images``.
        reporter: Reporter of the estimate.

    Cost: about 3 % of looking at all images, and some hundredths of a second.
    """
    if not reporter.wants_forecast:
        return
    number = len(names)
    rows = np.linspace(0, number - 1, max(1, min(_MOST_IMAGES, number // _SHARE)), dtype=int)
    now = TypicalClock()
    start = now()
    inspect_images(
        [names[int(row)] for row in rows],
        lambda number: decode(int(rows[number])),
        for_check=True,
        num_threads=num_threads,
        reporter=Reporter(quiet=True),
    )
    looking = (now() - start) / len(rows) * number
    pieces = [Piece((LOOKING,), looking, LOOKING), Piece((CHECKING,), _seconds_of_search(number), CHECKING)]
    reporter.expect(pieces, f"{counted(number, 'image')}, each looked at once and compared with the others")


def _seconds_of_search(number: int) -> float:
    few = min(number, _FEW)
    thumbnails = generator(0, "made-up thumbnails").integers(0, 256, (few, THUMBNAIL_SIDE, THUMBNAIL_SIDE), np.uint8)
    now = TypicalClock()
    start = now()
    find_near_duplicates(thumbnails)
    return (now() - start) * (number / few) ** _EXPONENT
