"""A clock for what a forecast is made of: waiting for a core counts as much as it usually did, not as much as it did just now."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

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
        self,
        *,
        clock: Callable[[], float] = time.perf_counter,
        times: Callable[[], ThreadTimes | None] = thread_times,
    ) -> None:
        self._clock, self._times = clock, times
        before = times()
        is_known = before is not None and before.computing_seconds >= _FEWEST_SECONDS
        self._waiting_share = (
            before.waiting_seconds / before.computing_seconds if before is not None and is_known else 0.0
        )
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
