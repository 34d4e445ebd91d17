"""What limits a check of the data, and what to type next."""

from __future__ import annotations

from crossgraft.data.checks.record import DataCheckRecord
from crossgraft.models.on_this_machine import with_models_here
from crossgraft.options.typed_command import DATA
from crossgraft.report.source import Source
from crossgraft.report.verdict import (
    Caveat,
    CaveatOf,
    Following,
    found_by_checks,
    of_check,
)


def worst_finding(source: Source[DataCheckRecord]) -> Caveat | None:
    """What to do about the first unsound finding, or the first warning in its own words: the answer names it alone."""
    findings = [finding for finding in source.record.findings if finding.severity in ("unsound", "warning")]
    if not findings:
        return None
    worst = findings[0]
    said = (
        (worst.advice or worst.title) if worst.severity == "unsound" else f"{worst.title}: {worst.text} {worst.advice}"
    )
    return Caveat(said.rstrip())


def left_open(source: Source[DataCheckRecord]) -> Caveat | None:
    """The first question that was left open."""
    found = found_by_checks(source.record.findings, "not assessed")
    return of_check(found)


CHECK_CAVEATS: tuple[CaveatOf[DataCheckRecord], ...] = (worst_finding, left_open)
"""The most severe first, in the order of ``sections._verdict``."""


def after_check(source: Source[DataCheckRecord]) -> Following:
    """To rank models where nothing is unsound, else to check again."""
    typed = source.typed
    if not source.record.is_sound:
        again = typed.again() if typed.verb == "check" else typed.then("check", DATA)
        return Following(again, "when that is repaired")
    line = typed.then("rank", typed.data)
    return with_models_here(line, "for these images")
