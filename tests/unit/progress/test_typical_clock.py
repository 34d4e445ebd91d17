"""A clock on which waiting for a core counts as it usually did."""

import sys

import pytest

from crossgraft.progress import TypicalClock
from crossgraft.progress.reporter import ThreadTimes, thread_times


class Thread:
    """Computes, waits and sleeps as the test says."""

    def __init__(self, computing, waiting):
        self.now, self.times = 0.0, ThreadTimes(computing, waiting)

    def spend(self, *, computing=0.0, waiting=0.0, sleeping=0.0):
        self.now += computing + waiting + sleeping
        self.times = ThreadTimes(self.times.computing_seconds + computing, self.times.waiting_seconds + waiting)

    def clock(self):
        return TypicalClock(clock=lambda: self.now, times=lambda: self.times)


@pytest.mark.parametrize("waiting", [0.0, 3.0, 50.0])
def test_waiting_counts_by_what_was_usual_before(waiting):
    thread = Thread(2.0, 6.0)
    clock = thread.clock()
    start = clock()
    thread.spend(computing=1.0, waiting=waiting, sleeping=0.5)
    assert clock() - start == pytest.approx(1.0 * 4 + 0.5)
    assert clock.slowdown == 4


def test_it_never_goes_back_where_the_thread_waits_between_two_looks():
    """A wait that the system knows of already, and the clock, which was looked at before, does not."""
    thread = Thread(2.0, 6.0)
    clock = thread.clock()
    start = clock()
    thread.times = ThreadTimes(2.0, 6.5)
    assert clock() == start
    thread.spend(computing=1.0)
    assert clock() == pytest.approx(start + 3.5)


@pytest.mark.parametrize("times", [None, ThreadTimes(0.1, 100.0)])
def test_where_nothing_is_known_it_is_the_clock(times):
    clock = TypicalClock(clock=lambda: 7.0, times=lambda: times)
    assert (clock(), clock.slowdown) == (7.0, 1.0)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say how long threads wait")
def test_linux_says_how_long_this_thread_computed():
    before = thread_times()
    assert before is not None and before.waiting_seconds >= 0
    while thread_times().computing_seconds < before.computing_seconds + 0.01:
        pass
