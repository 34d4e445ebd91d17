"""The verdict of every page: the answer, its biggest caveat, and the next command.

A caveat is a function of a source that says it, or None where it does not apply. Each kind of report lists its own in one
tuple, the most severe first, by the same order everywhere:

1. what makes the numbers wrong: unsound data, images that the model has seen;
2. what makes them say nothing: intervals that contain what guessing gives, a control that does as well;
3. what they hide: a class that is missed, parts that failed;
4. what makes them too high: the best of many looks at the same images, val far above test;
5. what limits them: few images, no groups, other images than in training.

A new caveat is one function and one line in the tuple of its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from crossgraft.options.typed_command import DATA
from crossgraft.records.base import CheckRecord, Record, Severity
from crossgraft.report.blocks import Block, Folded, Items, Verdict
from crossgraft.report.source import Source
from crossgraft.words.formatting import counted

RecordT = TypeVar("RecordT", bound=Record)
PREDICT_IMAGES = "NEW_IMAGES"


class Following(NamedTuple):
    """What to type next.

    Attributes:
        line: To be copied.
        purpose: What it is for, after "Next, ": ``to fine-tune it``.
    """

    line: str
    purpose: str


BEGIN = Following(f"crossgraft check {DATA}", "to begin with your own images")
"""After what was about the images or the numbers of others; needs no model."""


class Caveat(NamedTuple):
    """What limits an answer.

    Attributes:
        text: In one or two sentences.
        remedy: What to type to do something about it, where that comes before the usual next command.
    """

    text: str
    remedy: Following | None = None


CaveatOf = Callable[[Source[RecordT]], Caveat | None]


def caveats_of(source: Source[RecordT], order: Sequence[CaveatOf[RecordT]]) -> list[Caveat]:
    """Those that apply, the most severe first."""
    return [found for caveat in order if (found := caveat(source)) is not None]


def verdict_blocks(answer: str, caveats: Sequence[Caveat], following: Following | None) -> list[Block]:
    """The verdict with the first of ``caveats``; a page has the others folded below it.

    Args:
        answer: In one or two sentences.
        caveats: The most severe first.
        following: What to type next, where the first caveat does not say it.
    """
    first = caveats[0] if caveats else None
    then = first.remedy if first is not None and first.remedy is not None else following
    blocks: list[Block] = [
        Verdict(
            answer,
            caveat=None if first is None else first.text,
            following=None if then is None else then.line,
            purpose="" if then is None else then.purpose,
        )
    ]
    if others := [caveat.text for caveat in caveats[1:]]:
        blocks.append(Folded(counted(len(others), "further caveat"), [Items(others)]))
    return blocks


def in_one_line(answer: str, caveats: Sequence[Caveat]) -> str:
    """Answer and biggest caveat for the table of several runs."""
    return answer if not caveats else f"{answer} Caveat: {caveats[0].text}"


def found_by_checks(checks: Sequence[CheckRecord], *severities: Severity) -> CheckRecord | None:
    """The first check with the first of ``severities`` that any of them has."""
    ordered = (check for severity in severities for check in checks if check.severity == severity)
    return next(ordered, None)


def of_check(check: CheckRecord | None) -> Caveat | None:
    """What a check found as a caveat."""
    return None if check is None else Caveat(f"{check.title}: {check.text}")


def unsound_data(source: Source[Any]) -> Caveat | None:
    """What makes every number wrong."""
    return of_check(found_by_checks(source.record.checks, "unsound"))


def leakage_not_checked(source: Source[Any]) -> Caveat | None:
    """Without groups, images of one patient may be in two parts."""
    return None if source.record.leakage_checked else Caveat(source.record.leakage)
