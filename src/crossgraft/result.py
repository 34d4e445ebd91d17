"""What every verb returns: a record, and the same ways to look at it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from crossgraft.errors import UsageError
from crossgraft.records.base import Record

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.formats.style import Styler

    from crossgraft.words.notebook import Plot

RecordT = TypeVar("RecordT", bound=Record, covariant=True)
EXIT_PARTIAL = 6
"""What the command line ends with where some trainings failed, and the others are done."""


@dataclass(frozen=True, eq=False, repr=False)
class Result(ABC, Generic[RecordT]):
    """What a verb returns: ``record`` holds every number.

    Attributes:
        found: The record; None where only a plan was made.
        out: Run directory, or None.
        report: The HTML report, if one was written.
        command_line: The command that gives it again, typed in the current folder, with whole paths; for the terminal, never
            written.
    """

    found: RecordT | None = None
    out: Path | None = None
    report: Path | None = None
    command_line: str | None = field(default=None, kw_only=True)

    @property
    def record(self) -> RecordT:
        """Every number.

        Raises:
            UsageError: Only a plan was made.
        """
        if self.found is None:
            raise UsageError("Only the plan was made (plan=True), so there is no result. Look at .summary().")
        return self.found

    @property
    def shown(self) -> Record:
        """What is printed: the record (or the plan), with names of files that no file may hold."""
        return self.record

    @abstractmethod
    def summary(self) -> str:
        """The answer (or the plan) in a few sentences."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """The rows of the record as a table."""

    @property
    def primary(self) -> Mapping[str, object]:
        """The number that stands for the whole, which a study compares where nobody names another.

        Its ``metric``, ``value`` and, where it has an interval, ``low`` and ``high``; and what else its row of ``to_frame`` says
        where several rows have this metric. Empty: the first number of ``to_frame``.
        """
        return {}

    def as_text(self, *, in_lines: int | None = None) -> str:
        """What was found, and where the rest is; only the summary of a plan, or where a record has no page.

        Args:
            in_lines: The answer, its biggest caveat and the next command in so many lines, as far as the command to copy allows,
                and no table; None: everything, the answer last.
        """
        from crossgraft.report.source import Source
        from crossgraft.report.terminal import USE, in_brief, record_as_text, verdict_of
        from crossgraft.words.text_table import place

        written, body = self.places(), None
        if self.found is not None:  # a plan has no page in any room, so that none is looked into
            if in_lines is not None:
                verdict = verdict_of(Source(self.shown, out=self.out, command_line=self.command_line))
                if verdict is not None:
                    return in_brief(verdict, written, num_lines=in_lines)
            body = record_as_text(self.shown, out=self.out, command_line=self.command_line)
        text = self.summary() if body is None else f"{body}\n\n{USE}"
        return "\n".join([text, *(place(what, path) for what, path in written.items())])

    def to_json(self) -> str:
        """The record (or the plan) as one JSON document."""
        return self.shown.model_dump_json()

    @property
    def exit_code(self) -> int:
        """What the command line ends with; see ``crossgraft --help``."""
        return 0

    def places(self) -> Mapping[str, object]:
        """Where what was written lies, by what it is."""
        return {} if self.report is None else {"Report": self.report}

    def __repr__(self) -> str:
        """One line: a record may hold thousands of numbers."""
        return f"{type(self).__name__}({self.summary().splitlines()[0]!r})"

    def plot(self) -> Plot:
        """The first figure of its page; the last line of a cell shows it, and ``.save("figure.svg")`` keeps it.

        Raises:
            NotApplicable: Its page has none.
        """
        from crossgraft.report.notebook import plot_of

        return plot_of(self.shown)

    def styled(self) -> Styler:
        """``to_frame`` for a notebook: three decimals, a dash for what is not there, numbers to the right, no index."""
        frame = self.to_frame()
        numbers = [name for name in frame.columns if frame[name].dtype.kind in "iuf"]
        shown = frame.style.hide(axis="index")
        shown.format(precision=3, na_rep="—", escape="html")
        return shown.set_properties(subset=numbers, **{"text-align": "right"})

    def _repr_html_(self) -> str:
        """Verdict, figure and the most important rows, for notebooks."""
        from crossgraft.report.notebook import record_as_html

        frame = None if self.found is None else self._most_important()
        return record_as_html(self.shown, summary=self.summary(), frame=frame)

    def _most_important(self) -> pd.DataFrame:
        """Rows and columns of ``to_frame`` that a notebook shows."""
        return self.to_frame()
