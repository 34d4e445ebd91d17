"""The verdict of every page: the answer, its biggest caveat, and the next command.

A caveat is a function of a source that says it, or None where it does not apply. Each kind of report lists its own in one
tuple; ``caveats_of`` decides which stands first, by the ``Gravity`` that each has, and by the tuple among equals. A new caveat
is one function and one name in the tuple of its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

import yaml

from crossgraft.options.command import DATA
from crossgraft.records.base import MOST_SEVERE_FIRST, CheckRecord, Record, RunRecord, Severity
from crossgraft.report.blocks import Block, Checks, Code, Facts, Folded, Items, Literature, Paragraph, Section, Verdict
from crossgraft.report.source import Source, configuration_without_absolute_paths, without_absolute_paths
from crossgraft.report.tables import Column, Table, number, table_of, words
from crossgraft.words.formatting import MISSING, NumberFormat, counted, duration, rounded_time, short_fingerprint


def checks_section(source: Source[Any]) -> Section:
    """The checks of the record, the most urgent first."""
    checks = [*_unfinished(source.run), *source.record.checks]
    ordered = sorted(checks, key=lambda check: MOST_SEVERE_FIRST.index(check.severity))
    blocks = [Checks(ordered)] if ordered else [Paragraph("No checks were recorded.", tone="quiet")]
    return Section(name="checks", title="What was checked", part="checks", blocks=blocks)


def _unfinished(run: RunRecord | None) -> list[CheckRecord]:
    if run is not None and run.state in ("interrupted", "failed"):
        text = f"This run is marked as {run.state}; numbers may be missing. The same command again finishes it."
        return [CheckRecord(title="Run not finished", severity="warning", text=text)]
    return []


def references_section(source: Source[Any]) -> Section | None:
    """One entry a paper; None when the record names none."""
    if not source.record.references:
        return None
    return Section(name="references", title="References", part="references", blocks=[Literature(source.record.references)])


_FOLDERS_LEFT_OUT = "…/ stands for the folders of an absolute path, which are not kept; put yours there to run it again."


def provenance_section(source: Source[Record]) -> Section | None:
    """Command, configuration, versions, machine, fingerprints and seconds; None for what is no run."""
    run = source.run
    if run is None:
        return None
    configuration = yaml.safe_dump(
        configuration_without_absolute_paths(run.config), sort_keys=True, allow_unicode=True, width=100
    )
    line = without_absolute_paths(run.command_line)
    left_out = [Paragraph(_FOLDERS_LEFT_OUT)] if "…/" in line else []
    title = "Call in Python" if line.startswith("crossgraft.") else "Command"
    blocks: list[Block] = [
        Folded(title, [Code(line), *left_out, _run_facts(run)]),
        Folded("Configuration", [Code(configuration)]),
        Folded("Versions and machine", [_facts(run.versions), _facts(run.machine)]),
        Folded("Fingerprints", [_fingerprints(run)]),
    ]
    if run.stages:
        total = sum(stage.seconds for stage in run.stages)
        blocks.append(Folded(f"Time spent: {duration(total)}", [_stages(run)]))
    return Section(name="how", title="How it was made", part="how it was made", blocks=blocks)


def _run_facts(run: RunRecord) -> Facts:
    return Facts(
        [
            ("crossgraft", run.crossgraft_version),
            ("Seed", str(run.seed)),
            ("Started", run.started_at),
            ("Finished", run.finished_at or MISSING),
        ]
    )


def _facts(values: Mapping[str, str]) -> Facts:
    return Facts([(name, without_absolute_paths(value)) for name, value in values.items()])


def _fingerprints(run: RunRecord) -> Facts:
    data = short_fingerprint(run.data_fingerprint) if run.data_fingerprint else MISSING
    weights = [(name, short_fingerprint(value)) for name, value in run.weights_fingerprints.items()]
    return Facts([("Configuration", short_fingerprint(run.config_hash)), ("Data", data), *weights])


def _stages(run: RunRecord) -> Table:
    seconds = NumberFormat.for_column([max(stage.seconds for stage in run.stages)])
    return table_of(
        run.stages,
        [
            (Column("Stage"), lambda stage: words(stage.name)),
            (Column("Seconds", numeric=True), lambda stage: number(stage.seconds, seconds)),
        ],
        caption="Seconds of each stage",
        file_name="stages",
    )


RecordT = TypeVar("RecordT", bound=Record)
PREDICT_IMAGES = "NEW_IMAGES"


class Following(NamedTuple):
    """What to type next.

    Attributes:
        line: To be copied.
        purpose: What it is for, after "Next, ": ``to fine-tune it``.
        seconds: How long it takes, where this run tells; None: not known.
    """

    line: str
    purpose: str
    seconds: float | None = None

    @property
    def said(self) -> str:
        """The purpose, with the time beside it."""
        return self.purpose if self.seconds is None else f"{self.purpose} (about {rounded_time(self.seconds)})"


BEGIN = Following(f"crossgraft check {DATA}", "to begin with your own images")
"""After what was about the images or the numbers of others; needs no model."""


class Gravity(IntEnum):
    """How much a caveat takes from an answer, the worst first: what was seen before what was not looked for."""

    WRONG = 1
    """Numbers are wrong: unsound data, images that the model has seen."""
    EMPTY = 2
    """They say nothing: intervals that contain what guessing gives, a control that does as well."""
    HARM = 3
    """A harm that was measured: a class that is missed or taken for another, files and parts that failed, wrong risks."""
    FLATTERED = 4
    """They are too high: the best of many looks at the same images, val far above test, copies."""
    LIMITED = 5
    """They hold for less than it seems: few images, other images than in training."""
    UNCHECKED = 6
    """Nobody looked: no groups, a question left open."""


class Caveat(NamedTuple):
    """What limits an answer.

    Attributes:
        text: One or two sentences, the most important first: a terminal may have room for that one alone.
        gravity: Its place among others.
        remedy: What to type to do something about it, where that comes before the usual next command.
    """

    text: str
    gravity: Gravity
    remedy: Following | None = None


CaveatOf = Callable[[Source[RecordT]], Caveat | None]


def caveats_of(source: Source[RecordT], order: Sequence[CaveatOf[RecordT]]) -> list[Caveat]:
    """Those that apply, the gravest first; of equal ones the one that ``order`` has first."""
    return sorted((note for caveat in order if (note := caveat(source)) is not None), key=lambda note: note.gravity)


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
            purpose="" if then is None else then.said,
        )
    ]
    if others := [caveat.text for caveat in caveats[1:]]:
        blocks.append(Folded(counted(len(others), "further caveat"), [Items(others)]))
    return blocks


def verdict_section(answer: str, caveats: Sequence[Caveat], following: Following | None, *more: Block) -> Section:
    """What a page begins with: ``verdict_blocks``, and ``more`` below them."""
    return Section(name="verdict", title="Verdict", part="verdict", blocks=[*verdict_blocks(answer, caveats, following), *more])


def in_one_line(answer: str, caveats: Sequence[Caveat]) -> str:
    """Answer and biggest caveat for the table of several runs."""
    return answer if not caveats else f"{answer} Caveat: {caveats[0].text}"


def found_by_checks(checks: Sequence[CheckRecord], *severities: Severity) -> CheckRecord | None:
    """The first check with the first of ``severities`` that any of them has."""
    ordered = (check for severity in severities for check in checks if check.severity == severity)
    return next(ordered, None)


def of_check(check: CheckRecord | None) -> Caveat | None:
    """What a check found as a caveat, as grave as the check says."""
    return None if check is None else Caveat(f"{check.title}: {check.text}", _GRAVITY[check.severity])


_GRAVITY: Mapping[Severity, Gravity] = {
    "unsound": Gravity.WRONG,
    "warning": Gravity.FLATTERED,
    "notice": Gravity.LIMITED,
    "not assessed": Gravity.UNCHECKED,
    "passed": Gravity.UNCHECKED,
}


def unsound_data(source: Source[Any]) -> Caveat | None:
    """What makes every number wrong."""
    return of_check(found_by_checks(source.record.checks, "unsound"))


def warned_of_data(source: Source[Any]) -> Caveat | None:
    """The first warning of the checks."""
    return of_check(found_by_checks(source.record.checks, "warning"))


def leakage_not_checked(source: Source[Any]) -> Caveat | None:
    """Without groups, images of one patient may be in two parts."""
    return None if source.record.leakage_checked else Caveat(source.record.leakage, Gravity.UNCHECKED)
