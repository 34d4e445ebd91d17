"""Progress on stderr: rich bars on a terminal, few lines otherwise, nothing when quiet.

In a pipe, a log file or a notebook a stage is one line when it ends. A stage of more than a minute also says where it is
after one minute, two, four and so on. In a notebook, whose output stays in the document, lines about short work are left
out while others are coming in, so that a hundred models do not make hundreds of lines.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol, TextIO, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from crossgraft.words.visible import visible

SHORT_SECONDS = 1.0
"""In a notebook, stages of less than this are told only when it was silent for a while."""

SILENT_SECONDS = 10.0
"""After so long without a line, the next one is told however short its stage was."""

FIRST_UPDATE_SECONDS = 60.0
"""When a long stage first says where it is; then after twice as long, and so on."""


@runtime_checkable
class Stage(Protocol):
    """One piece of work that the user can name."""

    def advance(self, amount: int = 1) -> None:
        """Report ``amount`` more units as done."""
        ...

    def note(self, text: str) -> None:
        """How it goes, in a few words: beside the bar, or as a line after some silence."""
        ...


class Reporter:
    """Tells the user what is happening, in the user's words; every message is one line, and steers no terminal.

    Args:
        stream: Stream that is written to; stderr by default, because stdout carries results only.
        quiet: Whether to show nothing but warnings.
        sparing: Leave out lines about short work while others are coming in; by default in a notebook only.
        clock: Seconds of a clock that never goes back.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        quiet: bool = False,
        sparing: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # A program without a console (pythonw on Windows) has no stderr at all.
        self.stream = stream if stream is not None else sys.stderr or io.StringIO()
        self.quiet = quiet
        self.sparing = sparing if sparing is not None else _is_notebook(self.stream)
        # In a notebook rich would push a display object for every line; plain text is kept as one output.
        self.console = Console(
            file=self.stream, highlight=False, markup=False, emoji=False, soft_wrap=True, force_jupyter=False
        )
        self._clock = clock
        self._last_line = -SILENT_SECONDS

    @contextmanager
    def stage(self, title: str, *, total: int | None = None, unit: str = "images") -> Generator[Stage]:
        """Announce a stage and report its rate and the time left; ``total`` counts ``unit``."""
        if self.quiet:
            yield _SilentStage()
        elif self.console.is_terminal and total is not None:
            with Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(compact=True),
                TextColumn("{task.fields[note]}", markup=False),
                console=self.console,
                transient=True,
            ) as bars:
                yield _BarStage(bars, title, total, unit)
        else:
            stage = _LineStage(title, total, unit, say=self.say, note=self._after_silence, clock=self._clock)
            yield stage
            seconds = self._clock() - stage.start
            rate = f", {describe_rate(stage.done, seconds, unit)}" if stage.done and seconds > 0 else ""
            (self.say if seconds >= SHORT_SECONDS else self.mention)(f"{title}: {seconds:.1f} s{rate}")

    def say(self, message: str) -> None:
        """One line of information."""
        if not self.quiet:
            self._write(message)

    def mention(self, message: str) -> None:
        """One line about short work, which a sparing reporter leaves out where others came shortly before."""
        if not self.sparing or self._clock() - self._last_line >= SILENT_SECONDS:
            self.say(message)

    def _after_silence(self, message: str) -> None:
        if self._clock() - self._last_line >= SILENT_SECONDS:
            self.say(message)

    def warn(self, message: str) -> None:
        """A warning; shown even when quiet."""
        self._write(f"Warning: {message}")

    def _write(self, message: str) -> None:
        self._last_line = self._clock()
        self.console.print(visible(message))


def _is_notebook(stream: TextIO) -> bool:
    """Whether this is the stream of a notebook's cell."""
    return type(stream).__module__.startswith("ipykernel")


def describe_rate(done: int, seconds: float, unit: str) -> str:
    """How fast, in words that suit slow and quick work.

    >>> describe_rate(500, 10, "images"), describe_rate(3, 2, "rounds"), describe_rate(2, 60, "models")
    ('50 images/s', '1.5 rounds/s', '30 s each')
    """
    rate = done / max(seconds, 1e-9)
    if rate >= 10:
        return f"{rate:.0f} {unit}/s"
    return f"{rate:.1f} {unit}/s" if rate >= 0.5 else f"{1 / rate:.0f} s each"


class _SilentStage:
    def advance(self, amount: int = 1) -> None:
        """Nothing to tell."""

    def note(self, text: str) -> None:
        """Nothing to tell."""


class _LineStage:
    """Says where a long stage is, each time after twice as long."""

    def __init__(
        self,
        title: str,
        total: int | None,
        unit: str,
        *,
        say: Callable[[str], None],
        note: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self.title = title
        self.total = total
        self.unit = unit
        self.done = 0
        self.start = clock()
        self._say = say
        self._note = note
        self._clock = clock
        self._next_update = FIRST_UPDATE_SECONDS

    def note(self, text: str) -> None:
        """One line, if there was none for a while."""
        self._note(f"{self.title}: {text}")

    def advance(self, amount: int = 1) -> None:
        self.done += amount
        seconds = self._clock() - self.start
        if self.total is None or seconds < self._next_update or self.done >= self.total:
            return
        while self._next_update <= seconds:
            self._next_update *= 2
        left = seconds / self.done * (self.total - self.done)
        time_left = f"{left:.0f} s" if left < 90 else f"{left / 60:.0f} min"
        rate = describe_rate(self.done, seconds, self.unit)
        self._say(f"{self.title}: {self.done} of {self.total}, {rate}, about {time_left} left")


class _BarStage:
    def __init__(self, bars: Progress, title: str, total: int, unit: str) -> None:
        self.bars = bars
        self.unit = unit
        self.start = time.monotonic()
        self.done = 0
        self.task = bars.add_task(visible(title), total=total, rate="", note="")

    def advance(self, amount: int = 1) -> None:
        self.done += amount
        rate = describe_rate(self.done, time.monotonic() - self.start, self.unit) if self.done else ""
        self.bars.update(self.task, advance=amount, rate=rate)

    def note(self, text: str) -> None:
        self.bars.update(self.task, note=visible(text))
