"""Progress on stderr: bars on a terminal, few lines otherwise, nothing when quiet.

On a terminal a brief reporter writes every line over the one before, so that none is left when the result comes, and holds
warnings back until then.

In a pipe, a log file or a notebook a stage is one line when it ends. A stage of more than a minute also says where it is
after one minute, two, four and so on. In a notebook, whose output stays in the document, lines about short work are left
out while others are coming in, so that a hundred models do not make hundreds of lines. Where nobody reads any more (a pipe
that was closed), nothing is said, and the work goes on.
"""

from __future__ import annotations

import io
import math
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol, TextIO, runtime_checkable

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType

from crossgraft.progress.bar import BarStage
from crossgraft.progress.forecast import Forecast, Piece
from crossgraft.progress.rates import describe_rate
from crossgraft.stopping import ending_if_asked
from crossgraft.words.formatting import rounded_time
from crossgraft.words.text_table import wrap_in
from crossgraft.words.visible import visible

_OF_THIS_THREAD = Path("/proc/thread-self/schedstat")
_NANOSECONDS = 1e-9
_FEWEST_SECONDS = 0.5
"""A thread that has computed for less has not waited often enough to say how much it waits."""


class ThreadTimes(NamedTuple):
    """Times of one thread since it began.

    Attributes:
        computing_seconds: Time that it had a core.
        waiting_seconds: Time that it could have gone on, but others had the core.
    """

    computing_seconds: float
    waiting_seconds: float


def thread_times() -> ThreadTimes | None:
    """Times of the calling thread; None where the system does not say (it does on Linux).

    Source: Documentation/scheduler/sched-stats.rst of Linux, ``/proc/<pid>/schedstat``.
    """
    try:
        _, waiting, *_ = _OF_THIS_THREAD.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return None
    return ThreadTimes(time.thread_time(), int(waiting) * _NANOSECONDS)  # the file's first number is some ms old


class TypicalClock:
    """Seconds in which what this thread waits for a core is put right by all that it did before, import of packages included.

    What is timed for a forecast takes a second; on a busy machine, how long it waits in that second is luck. Where the system
    does not say how long threads wait, it is the clock.

    Args:
        clock: Seconds of a clock that never goes back.
        times: Times of this thread.

    Attributes:
        slowdown: Usual time of this thread over that of one which never waits; 1 on an idle machine.

    >>> clock = TypicalClock(clock=lambda: 100.0, times=lambda: ThreadTimes(10.0, 30.0))
    >>> clock.slowdown
    4.0
    """

    def __init__(
        self, *, clock: Callable[[], float] = time.perf_counter, times: Callable[[], ThreadTimes | None] = thread_times
    ) -> None:
        self._clock, self._times = clock, times
        before = times()
        is_known = before is not None and before.computing_seconds >= _FEWEST_SECONDS
        self._waiting_share = before.waiting_seconds / before.computing_seconds if before is not None and is_known else 0.0
        self._is_known = is_known
        self._last = -math.inf
        self.slowdown = 1.0 + self._waiting_share

    def __call__(self) -> float:
        """Only differences mean something; it never goes back, though the thread may wait between two looks."""
        now, times = self._clock(), self._times() if self._is_known else None
        if times is not None:
            now += self._waiting_share * times.computing_seconds - times.waiting_seconds
        self._last = max(self._last, now)
        return self._last


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
        is_brief: Whether a terminal keeps no line of progress, and warnings come at the end.
        sparing: Leave out lines about short work while others are coming in; by default in a notebook only.
        clock: Seconds of a clock that never goes back.

    Attributes:
        began: When the command began, by that clock, before packages were imported; None in a call from Python.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        quiet: bool = False,
        is_brief: bool = False,
        sparing: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # A program without a console (pythonw on Windows) has no stderr at all.
        self.stream = stream if stream is not None else sys.stderr or io.StringIO()
        self.quiet = quiet
        is_notebook = _is_notebook(self.stream)
        self.sparing = sparing if sparing is not None else is_notebook
        # In a notebook rich would push a display object for every line, or draw each state of a bar below the one before, as
        # the stream of a kernel calls itself a terminal; plain lines are kept as one output.
        self.console = _Console(
            file=self.stream,
            highlight=False,
            markup=False,
            emoji=False,
            soft_wrap=True,
            force_jupyter=False,
            force_terminal=False if is_notebook else None,
        )
        self.clock = clock
        self.began: float | None = None
        self._passes = is_brief and self.console.is_terminal and not self.console.is_dumb_terminal
        self._bar: BarStage | None = None
        self._is_on_line = False
        self._held: list[str] = []
        self._last_line = -SILENT_SECONDS
        self._parts: tuple[str, ...] = ()
        self._forecast: Forecast | None = None
        self._afterwards: tuple[Piece, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts of the work that are under way, the largest first."""
        return self._parts

    @property
    def wants_forecast(self) -> bool:
        """Whether it is worth measuring how long something will take: somebody reads it, and was not told already."""
        return not self.quiet and not (self._forecast is not None and self._forecast.covers(self._parts))

    def expect(self, pieces: Sequence[Piece], what: str, *, at_most: bool = False) -> None:
        """Say once how long all of it will take, and from now on how much is left; a part of something expected says nothing.

        Args:
            pieces: In the order in which they are done, at places below the part under way.
            what: What is done, as the rest of a sentence.
            at_most: Whether it may end early.
        """
        if not self.wants_forecast:
            return
        slowdown = TypicalClock().slowdown
        all_pieces = (*pieces, *self._afterwards)
        here = [piece.slowed_down(slowdown).under(*self._parts) for piece in all_pieces]
        self._forecast = Forecast(here, clock=self.clock)
        limit = " at most" if at_most else ""
        self.say(f"About {rounded_time(self._forecast.seconds_left())}{limit}: {what}.")

    @contextmanager
    def followed_by(self, piece: Piece) -> Generator[None]:
        """What is expected inside ends with this piece, which whoever expects the rest need not know of."""
        before = self._afterwards
        self._afterwards = (piece, *before)
        try:
            yield
        finally:
            self._afterwards = before

    @contextmanager
    def part(self, name: str) -> Generator[None]:
        """A part of the work, perhaps one that ``expect`` knows a duration of."""
        outer, forecast = self._parts, self._forecast
        self._parts = (*outer, name)
        is_expected = forecast is not None and forecast.begin(self._parts)
        try:
            with ending_if_asked():
                yield
        finally:
            self._parts = outer
            if is_expected and forecast is not None:
                forecast.end()

    @contextmanager
    def stage(
        self, title: str, *, total: int | None = None, unit: str = "images", below: Callable[[], Sequence[str]] | None = None
    ) -> Generator[Stage]:
        """Announce a stage and report its rate and the time left.

        Args:
            title: What is done.
            total: Number of units; None: nobody knows.
            unit: What is counted.
            below: Gives lines that stand below the bar, whenever it is drawn, in a thread of its own; elsewhere it is not asked.

        Raises:
            KeyboardInterrupt: A signal asked the process to end while it was under way.
        """
        with ending_if_asked(), self._shown(title, total, unit, below) as stage:
            yield stage

    @contextmanager
    def _shown(self, title: str, total: int | None, unit: str, below: Callable[[], Sequence[str]] | None) -> Generator[Stage]:
        if self.quiet:
            yield _SilentStage()
        elif self.console.is_terminal and not self.console.is_dumb_terminal and total is not None:
            stage = BarStage(title, total, unit, left_in_all=lambda: self.seconds_left, below=below)
            self._wipe()
            outer, self._bar = self._bar, stage
            try:
                with Live(stage, console=self.console, transient=True, refresh_per_second=10):
                    yield _Counted(stage, total, self._forecast)
            finally:
                self._bar = outer
        else:
            stage = _LineStage(title, total, unit, self)
            yield stage if total is None else _Counted(stage, total, self._forecast)
            stage.end()

    @property
    def seconds_left(self) -> float | None:
        """Time left of all that is expected, while a part of it is under way."""
        forecast = self._forecast
        return forecast.seconds_left() if forecast is not None and forecast.is_under_way else None

    @property
    def seconds_of_silence(self) -> float:
        """Since the last line."""
        return self.clock() - self._last_line

    def say(self, message: str) -> None:
        """One line of information."""
        if self.quiet:
            return
        if self._passes:
            self._write_over(message)
        else:
            self._write(message)

    def mention(self, message: str) -> None:
        """One line about short work, which a sparing reporter leaves out where others came shortly before."""
        if not self.sparing or self.seconds_of_silence >= SILENT_SECONDS:
            self.say(message)

    def leave(self, message: str) -> None:
        """One line of many that stay, such as that of an epoch; a sparing reporter leaves out those that come too quickly."""
        if not self.sparing or self.seconds_of_silence >= SHORT_SECONDS:
            self.say(message)

    @contextmanager
    def spared(self) -> Generator[None]:
        """Inside, lines about short work are left out, as in a notebook."""
        before, self.sparing = self.sparing, True
        try:
            yield
        finally:
            self.sparing = before

    def warn(self, message: str) -> None:
        """A warning; shown even when quiet."""
        if self._passes:
            self._held.append(message)
            self.say(f"{_WARNING}{message}")
        else:
            self._write(f"{_WARNING}{message}")

    def say_in_brief(self, *, unless_in: str) -> bool:
        """The first warning that was held back in one line, and how many more there are; whether there was any.

        Args:
            unless_in: What is printed after it, and what its page says; a warning that stands there is not said twice.
        """
        printed = " ".join(unless_in.split())
        unsaid = [text for text in dict.fromkeys(self._held) if " ".join(visible(text).split())[:_COMPARED] not in printed]
        self._held.clear()
        self._wipe()
        if not unsaid:
            return False
        more = f" ({len(unsaid) - 1} more: --verbose)" if len(unsaid) > 1 else ""
        (line,) = wrap_in(1, f"{_WARNING}{unsaid[0]}", less=len(more))
        self._write(line + more)
        return True

    def say_what_was_held(self) -> None:
        """Warnings that were held back, whole, where no result came that ``say_in_brief`` stands above."""
        self._wipe()
        held, self._held = self._held, []
        for message in held:
            self._write(f"{_WARNING}{message}")

    def _write(self, message: str) -> None:
        self._last_line = self.clock()
        self._print(visible(message))

    def _write_over(self, message: str) -> None:
        """In place of the line before; beside the bar while there is one."""
        self._last_line = self.clock()
        if self._bar is not None:
            self._bar.note(message)
            return
        self._wipe()
        line = visible(message)
        most = self.console.width - 1
        self._print(line if cell_len(line) <= most else set_cell_size(line, most - 1).rstrip() + "…", end="")
        self._is_on_line = True

    def _wipe(self) -> None:
        if self._is_on_line:
            self._is_on_line = False
            self.console.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2)))

    def _print(self, text: str, end: str = "\n") -> None:
        try:
            self.console.print(text, end=end)
        except BrokenPipeError:  # from versions of rich that do not ask ``on_broken_pipe``
            self.console.on_broken_pipe()


_WARNING = "Warning: "
_COMPARED = 40
"""Characters by which a warning is found again in a text that quotes it, perhaps in part."""


def _is_notebook(stream: TextIO) -> bool:
    """Whether this is the stream of a notebook's cell."""
    return type(stream).__module__.startswith("ipykernel")


class _SilentStage:
    def advance(self, amount: int = 1) -> None:
        """Nothing to tell."""

    def note(self, text: str) -> None:
        """Nothing to tell."""


class _Counted:
    """A stage that also tells the forecast which share of the part under way is done."""

    def __init__(self, stage: Stage, total: int, forecast: Forecast | None) -> None:
        self._stage, self._total, self._forecast = stage, total, forecast
        self._done = 0

    def advance(self, amount: int = 1) -> None:
        """Count units."""
        self._done += amount
        self._stage.advance(amount)
        if self._forecast is not None:
            self._forecast.advance(self._done / max(self._total, 1))

    def note(self, text: str) -> None:
        """Passed on."""
        self._stage.note(text)


class _LineStage:
    """Says where a long stage is, each time after twice as long."""

    def __init__(self, title: str, total: int | None, unit: str, reporter: Reporter) -> None:
        self.title, self.total, self.unit = title, total, unit
        self.done = 0
        self._reporter, self._clock = reporter, reporter.clock
        self._start = self._clock()
        self._next_update = FIRST_UPDATE_SECONDS

    def note(self, text: str) -> None:
        """One line, if there was none for a while."""
        if self._reporter.seconds_of_silence >= SILENT_SECONDS:
            self._reporter.say(f"{self.title}: {text}")

    def advance(self, amount: int = 1) -> None:
        """Count units."""
        self.done += amount
        seconds = self._clock() - self._start
        if self.total is None or seconds < self._next_update or self.done >= self.total:
            return
        while self._next_update <= seconds:
            self._next_update *= 2
        left = rounded_time(seconds / self.done * (self.total - self.done))
        rate = describe_rate(self.done, seconds, self.unit)
        known = f", {rate}" if rate else f" {self.unit}"
        self._reporter.say(f"{self.title}: {self.done} of {self.total}{known}, about {left} left{self._in_all()}")

    def end(self) -> None:
        """How long it took; about short work, only what a sparing reporter passes on."""
        seconds = self._clock() - self._start
        rate = describe_rate(self.done, seconds, self.unit) if self.done and seconds > 0 else ""
        say = self._reporter.say if seconds >= SHORT_SECONDS else self._reporter.mention
        say(f"{self.title}: {seconds:.1f} s{rate and f', {rate}'}{self._in_all()}")

    def _in_all(self) -> str:
        left = self._reporter.seconds_left
        return f" ({rounded_time(left)} left in all)" if left is not None and left >= SILENT_SECONDS else ""


class _Console(Console):
    """Where nobody reads any more, nothing is said; rich itself would end the program."""

    def on_broken_pipe(self) -> None:
        """From now on nothing is written."""
        self.quiet = True


def default_reporter() -> Reporter:
    """What a call from Python without a reporter gets: progress in a notebook or a terminal, warnings alone elsewhere."""
    stream = sys.stderr
    is_seen = stream is not None and (_is_notebook(stream) or stream.isatty())
    return Reporter(quiet=not is_seen)
