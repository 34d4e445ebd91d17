"""How long something will take, in words and on a clock: rounded, because it is an estimate."""

from __future__ import annotations


def rounded_time(seconds: float) -> str:
    """Seconds in words, with as many digits as an estimate has.

    >>> [rounded_time(seconds) for seconds in (0.2, 14.4, 42.3, 130, 1000, 9000)]
    ['1 s', '14 s', '40 s', '2 min 10 s', '17 min', '2.5 h']
    """
    if seconds < 60:
        step = 5 if seconds >= 20 else 1
        return f"{max(1, round(seconds / step) * step)} s"
    if seconds < 600:
        minutes, rest = divmod(round(seconds / 10) * 10, 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def clock_time(seconds: float) -> str:
    """Seconds as a clock shows them.

    >>> clock_time(5), clock_time(95.4), clock_time(3725)
    ('0:05', '1:35', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
