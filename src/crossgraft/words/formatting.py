"""How numbers look in words and tables, for the report and the terminal alike.

A column of numbers shows the same decimals in every row, and no more than its intervals justify: the width of
the median interval keeps two significant digits.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


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


MISSING = "—"
NARROW_SPACE = "\N{NARROW NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"

_DIGITS_OF_WIDTH = 2  # significant digits of an interval's width: the usual rule for an uncertainty
_MOST_DECIMALS = 6
_LARGEST_PLAIN = 1e7
_MOST_JOINED = 6
_SMALLEST_PLAIN = 1e-3  # larger values stay plain, also where their intervals are narrower than the last decimal


@dataclass(frozen=True)
class NumberFormat:
    """The decimals of one column; call it with a value to get the text.

    >>> as_text = NumberFormat.for_column([0.4123, 0.3981], interval_widths=[0.064, 0.074])
    >>> as_text(0.4123), as_text(-0.39805), as_text(None)
    ('0.412', '−0.398', '—')
    """

    decimals: int
    scientific: bool = False

    @classmethod
    def for_column(
        cls, values: Iterable[float | None], *, interval_widths: Iterable[float | None] = (), digits: int = 3
    ) -> NumberFormat:
        """Choose the decimals for ``values``.

        Args:
            values: The numbers of the column.
            interval_widths: Widths of their intervals; the median one decides.
            digits: Significant digits of the largest value, for a column without intervals.
        """
        sizes = [abs(value) for value in _finite(values) if value != 0]
        widths = [width for width in _finite(interval_widths) if width > 0]
        if widths:
            decimals = _DIGITS_OF_WIDTH - 1 - _exponent(statistics.median(widths))
        elif sizes:
            decimals = digits - 1 - _exponent(max(sizes))
        else:
            decimals = 0
        too_small = decimals > _MOST_DECIMALS and (not sizes or max(sizes) < _SMALLEST_PLAIN)
        if too_small or (sizes and max(sizes) >= _LARGEST_PLAIN):
            return cls(decimals=digits - 1, scientific=True)
        return cls(decimals=min(max(decimals, 0), _MOST_DECIMALS))

    def __call__(self, value: float | None) -> str:
        """The text of ``value``; a dash for None, words for NaN and the infinities."""
        if value is None:
            return MISSING
        if math.isnan(value):
            return "not a number"
        if math.isinf(value):
            return "∞" if value > 0 else MINUS + "∞"
        text = f"{value:.{self.decimals}{'e' if self.scientific else 'f'}}"
        if float(text) == 0:
            text = text.removeprefix("-")
        return text.replace("-", MINUS)

    def interval(self, low: float | None, high: float | None) -> str:
        """``[low, high]``, or a dash when either end is missing."""
        if low is None or high is None:
            return MISSING
        return f"[{self(low)}, {self(high)}]"


def count(number: int) -> str:
    """A whole number with narrow spaces between groups of three digits.

    >>> count(3206976).split(NARROW_SPACE)
    ['3', '206', '976']
    """
    return f"{number:,}".replace(",", NARROW_SPACE)


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """A count and its noun.

    >>> counted(1, "class", "classes"), counted(2, "class", "classes"), counted(3, "model")
    ('1 class', '2 classes', '3 models')
    """
    return f"{count(number)} {singular if number == 1 else plural or singular + 's'}"


def joined(names: Sequence[str]) -> str:
    """Names in running text; of more than six, the first five and how many more."""
    if len(names) > _MOST_JOINED:
        return f"{', '.join(names[: _MOST_JOINED - 1])} and {len(names) - _MOST_JOINED + 1} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names in running text; of many, the first ones and how many more.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def compress_ranks(ranks: Sequence[int]) -> str:
    """Ranks with runs joined.

    >>> compress_ranks([1, 3, 4, 5, 8])
    '1, 3–5, 8'
    """
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def percent(share: float) -> str:
    """A share of 1 in whole percent; no line breaks before the sign.

    >>> percent(0.333).split("\N{NO-BREAK SPACE}")
    ['33', '%']
    """
    return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"


def small_percent(share: float) -> str:
    """A share of 1 in percent with two digits that count.

    >>> [small_percent(share).replace("\N{NO-BREAK SPACE}", " ") for share in (0.00041, 0.0333, 0.5, 1.0)]
    ['0.041 %', '3.3 %', '50 %', '100 %']
    """
    return f"{100 * share:.{2 if share < 0.995 else 3}g}\N{NO-BREAK SPACE}%"


def duration(seconds: float) -> str:
    """Seconds in words of a useful size.

    >>> duration(0.0421), duration(21.4), duration(185), duration(3725)
    ('0.042 s', '21 s', '3 min 05 s', '1 h 02 min')
    """
    if seconds < 0.0005:
        return "< 1 ms"
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def size(num_bytes: int) -> str:
    """Bytes in the unit that leaves few digits.

    >>> size(900), size(75_000), size(5_300_000), size(3 * 2**30)
    ('900 B', '73 KiB', '5 MiB', '3.0 GiB')
    """
    if num_bytes < 2**10:
        return f"{num_bytes} B"
    if num_bytes < 2**20:
        return f"{round(num_bytes / 2**10)} KiB"
    return f"{num_bytes / 2**30:.1f} GiB" if num_bytes >= 2**30 else f"{round(num_bytes / 2**20)} MiB"


def magnitude(number: int) -> str:
    """A whole number with three digits that count and the prefix of its size.

    >>> [magnitude(number).replace("\N{NO-BREAK SPACE}", " ") for number in (960, 41_213_952, 4_089_184_256)]
    ['960', '41.2 M', '4.09 G']
    """
    for factor, prefix in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= 0.9995 * factor:
            return f"{number / factor:#.3g}\N{NO-BREAK SPACE}{prefix}".replace(".\N{NO-BREAK SPACE}", "\N{NO-BREAK SPACE}")
    return str(number)


def short_fingerprint(fingerprint: str) -> str:
    """The first characters of a fingerprint, without the name of its algorithm."""
    return fingerprint.rpartition(":")[2][:12]


def _exponent(size: float) -> int:
    return math.floor(math.log10(size))


def _finite(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]
