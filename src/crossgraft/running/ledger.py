"""The ledger: how often the test images of a data set were looked at, so that a page can say when its result is the best of many.

One JSON line a look in a file of the user, with fingerprints and nothing else.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from crossgraft.progress import Reporter
from crossgraft.records.base import Look, LooksRecord
from crossgraft.running.json_lines import JsonLines, user_file
from crossgraft.running.verb import secondary
from crossgraft.statistics.selection_quality import expected_maximum

FILE_NAME = "test_looks.jsonl"
_LINES = JsonLines(
    Look,
    "the ledger of looks at test images",
    "a look at test images",
    key=lambda look: look.key,
    keeps_first=True,  # what looked first opened the images
)
_HALF_WIDTH = 1.959963984540054
"""Half the width of a 95 % interval, in standard errors."""


def add_look(look: Look, file: Path | None = None) -> list[Look]:
    """Add a look, unless it is there already; returns the looks at the same test images up to this one, oldest first.

    Raises:
        DataError: The ledger is damaged; it is left as it is.
        StorageError: The ledger cannot be written.
    """
    path = user_file(FILE_NAME) if file is None else file
    looks = [past for past in _LINES.add([look], path) if past.test == look.test]
    return looks[: [past.key for past in looks].index(look.key) + 1]


def count_looks(
    look: Look, *, low: float | None, high: float | None, reporter: Reporter, file: Path | None = None
) -> LooksRecord | None:
    """Add a look and say its place; None, with a warning, where the ledger cannot be used.

    Args:
        look: The look.
        low: Lower end of the 95 % interval of the primary metric, if there is one.
        high: Upper end.
        reporter: Reporter of the warning.
        file: Another file than the user's.
    """
    looks: list[Look] = []
    with secondary(
        "This look at the test images was not counted",
        reporter,
        advice="The result itself is complete; --no-ledger counts nothing.",
    ):
        looks = add_look(look, file)
    if not looks:
        return None
    error = None if low is None or high is None else (high - low) / (2 * _HALF_WIDTH)
    results = sum(look.is_result for look in looks)
    return LooksRecord(
        number=len(looks),
        by_command=dict(Counter(look.command for look in looks)),
        num_results=results,
        optimism=None if error is None else error * expected_maximum(max(results, 1)),
    )
