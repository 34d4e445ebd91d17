"""The bar of a stage on a terminal: one line that fits its width."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions
from rich.text import Text

from crossgraft.progress.rates import describe_rate
from crossgraft.words.formatting import clock_time
from crossgraft.words.visible import visible

_WIDEST_BAR, _NARROWEST_BAR = 24, 6
_GAP = "  "


def bar_line(
    title: str,
    done: int,
    total: int,
    *,
    width: int,
    left: float | None = None,
    left_in_all: float | None = None,
    rate: str = "",
    note: str = "",
    only_ascii: bool = False,
) -> str:
    """How far a stage is, in at most ``width`` columns.

    Where they are few, the bar becomes shorter and goes first, then the note, the rate and the end of the title; count and
    time left stay.

    Args:
        title: What is done.
        done: Units that are done.
        total: All of them.
        width: Columns there are.
        left: Seconds until the stage ends; None where that is not known yet.
        left_in_all: Seconds until the command ends; None where that is not known.
        rate: How fast it goes.
        note: How it goes.
        only_ascii: Whether the terminal shows no other characters.

    >>> facts = {"left": 2, "left_in_all": 100, "rate": "6.1 rounds/s"}
    >>> print(bar_line("Scoring mobilenetv2_100", 13, 26, width=80, **facts))
    Scoring mobilenetv2_100  ━━━━━━───────  13/26  0:02 left, all 1:40  6.1 rounds/s
    >>> print(bar_line("Scoring mobilenetv2_100", 13, 26, width=40, **facts))
    Scoring mob…  13/26  0:02 left, all 1:40
    """
    times = [f"{clock_time(left)} left"] if left is not None else []
    times += [f"all {clock_time(left_in_all)}"] if left_in_all is not None else []
    kept = [f"{done}/{total}", *([", ".join(times)] if times else [])]
    for extras in ([rate, note], [rate], []):
        shown = [each for each in extras if each]
        room = width - cell_len(_GAP.join([title, *kept, *shown]))
        if room >= 0:
            break
    else:
        shown = []
        least = cell_len(_GAP.join(["", *kept]))
        title = _shortened(title, max(1, width - least), only_ascii=only_ascii)
        room = 0
    size = min(_WIDEST_BAR, room - len(_GAP))
    bar = [_bar(done / max(total, 1), size, only_ascii=only_ascii)] if size >= _NARROWEST_BAR else []
    return set_cell_size(_GAP.join([title, *bar, *kept, *shown]), width).rstrip()


def _bar(share: float, size: int, *, only_ascii: bool) -> str:
    filled = round(min(1.0, share) * size)
    full, empty = ("#", ".") if only_ascii else ("━", "─")
    return full * filled + empty * (size - filled)


def _shortened(title: str, width: int, *, only_ascii: bool) -> str:
    end = "." if only_ascii else "…"
    return title if cell_len(title) <= width else set_cell_size(title, width - 1).rstrip() + end


class BarStage:
    """A stage whose bar a ``Live`` of rich draws again and again.

    Args:
        title: What is done.
        total: Number of units.
        unit: What is counted.
        left_in_all: Seconds until the command ends, asked for whenever the bar is drawn.
        below: Lines below it, asked for likewise.
    """

    def __init__(
        self,
        title: str,
        total: int,
        unit: str,
        *,
        left_in_all: Callable[[], float | None],
        below: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        self.title, self.total, self.unit = visible(title), total, unit
        self.start = time.monotonic()
        self.done = 0
        self._note = ""
        self._left_in_all, self._below = left_in_all, below

    def advance(self, amount: int = 1) -> None:
        """Count units."""
        self.done += amount

    def note(self, text: str) -> None:
        """Shown beside the bar while there is room."""
        self._note = visible(text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """One line of the width that the terminal has now, and those below it."""
        seconds = time.monotonic() - self.start
        line = bar_line(
            self.title,
            self.done,
            self.total,
            width=options.max_width,
            left=seconds / self.done * (self.total - self.done) if self.done else None,
            left_in_all=self._left_in_all(),
            rate=describe_rate(self.done, seconds, self.unit) if self.done else "",
            note=self._note,
            only_ascii=options.ascii_only,
        )
        yield Text(line, no_wrap=True, overflow="crop")
        for more in () if self._below is None else self._below():
            yield Text(visible(more), no_wrap=True, overflow="crop")
