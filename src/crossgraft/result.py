"""What every verb returns: a record, and the same ways to look at it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from crossgraft.errors import UsageError
from crossgraft.records.base import Record
from crossgraft.words.visible import visible

if TYPE_CHECKING:
    import pandas as pd

RecordT = TypeVar("RecordT", bound=Record, covariant=True)
_ROWS_SHOWN = 10
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

    def _repr_html_(self) -> str:
        """The answer and the most important rows, for notebooks."""
        answer = f'<p style="white-space: pre-wrap">{escape(self.summary())}</p>'
        if self.found is None:
            return visible(answer, keep="\n")
        frame = self._most_important()
        table = frame.head(_ROWS_SHOWN).to_html(index=False, escape=True, na_rep="—", float_format="{:.3f}".format)
        more = f"<p>… and {len(frame) - _ROWS_SHOWN} more</p>" if len(frame) > _ROWS_SHOWN else ""
        return visible(answer + table + more, keep="\n")

    def _most_important(self) -> pd.DataFrame:
        """Rows and columns of ``to_frame`` that a notebook shows."""
        return self.to_frame()
