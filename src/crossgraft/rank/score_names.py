"""Scores that a program gives as objects, by the names that records and command lines have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.scores import SCORES, Score


def score_names(scores: object) -> str | list[str]:
    """Names of what was given, one or several.

    Raises:
        UsageError: An object is no score, or none that is registered under its name.
    """
    if isinstance(scores, Sequence) and not isinstance(scores, str):
        return [score_name(each) for each in cast("Sequence[object]", scores)]
    return score_name(scores)


def score_name(score: object) -> str:
    """The name of one score.

    Raises:
        UsageError: The object is no score, or none that is registered under its name.
    """
    if isinstance(score, str):
        return score
    if not isinstance(score, Score):
        what = f"the {type(score).__name__} {getattr(score, '__name__', '')}".rstrip()
        raise UsageError(
            f"{what} is no score. Give names (see `crossgraft list scores`) or scores such as crossgraft.scores.logme; a "
            "function of your own becomes one under the decorator crossgraft.scores.score."
        )
    if score.name not in SCORES:
        raise UnknownNameError(
            "score",
            score.name,
            SCORES.names(),
            hint=f"A score of your own is registered first: crossgraft.scores.SCORES.add({score.name!r}, {score.name}).",
        )
    if SCORES.get(score.name) is not score:
        raise UsageError(
            f"Another score is registered as {score.name}, from {SCORES.origin(score.name)}. Rename the function."
        )
    return score.name
