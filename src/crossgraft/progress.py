"""Progress on stderr: rich bars on a terminal, one line a stage otherwise, nothing when quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol, TextIO, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@runtime_checkable
class Stage(Protocol):
    """One piece of work that the user can name."""

    def advance(self, amount: int = 1) -> None:
        """Report ``amount`` more units as done."""
        ...


class Reporter:
    """Tells the user what is happening, in the user's words.

    Args:
        stream: Where to write; stderr by default, because stdout carries results only.
        quiet: Say nothing but warnings.
    """

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self.stream = stream if stream is not None else sys.stderr
        self.quiet = quiet
        self.console = Console(file=self.stream, highlight=False, soft_wrap=True)

    @contextmanager
    def stage(self, title: str, *, total: int | None = None, unit: str = "images") -> Generator[Stage]:
        """Announce a stage and report its rate and the time left; ``total`` counts ``unit``."""
        if self.quiet:
            yield _SilentStage()
        elif self.console.is_terminal and total is not None:
            with Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(compact=True),
                console=self.console,
                transient=True,
            ) as bars:
                yield _BarStage(bars, title, total, unit)
        else:
            start = time.monotonic()
            stage = _SilentStage()
            yield stage
            seconds = time.monotonic() - start
            rate = f", {stage.done / seconds:.0f} {unit}/s" if stage.done and seconds > 0 else ""
            self._write(f"{title}: {seconds:.1f} s{rate}")

    def say(self, message: str) -> None:
        """One line of information."""
        if not self.quiet:
            self._write(message)

    def warn(self, message: str) -> None:
        """A warning; shown even when quiet."""
        self._write(f"Warning: {message}")

    def _write(self, message: str) -> None:
        self.console.print(message, markup=False)


class _SilentStage:
    def __init__(self) -> None:
        self.done = 0

    def advance(self, amount: int = 1) -> None:
        self.done += amount


class _BarStage:
    def __init__(self, bars: Progress, title: str, total: int, unit: str) -> None:
        self.bars = bars
        self.unit = unit
        self.start = time.monotonic()
        self.done = 0
        self.task = bars.add_task(title, total=total, rate="")

    def advance(self, amount: int = 1) -> None:
        self.done += amount
        seconds = max(time.monotonic() - self.start, 1e-9)
        self.bars.update(self.task, advance=amount, rate=f"{self.done / seconds:.0f} {self.unit}/s")
