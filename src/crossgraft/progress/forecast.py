"""What is left of a command, from what its pieces cost here: measured before the start, and put right by what was done since."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Piece:
    """One piece of work.

    Attributes:
        place: Names of the parts that lead to it, the largest first, see ``Reporter.part``.
        seconds: Expected duration on the clock.
        kind: Pieces of one kind are put right by each other.
        is_measured: Whether this machine said so as busy as it is; otherwise ``seconds`` are those of one that does nothing else.
    """

    place: tuple[str, ...]
    seconds: float
    kind: str
    is_measured: bool = True

    def under(self, *parts: str) -> Piece:
        """The same as a piece of a larger part."""
        return replace(self, place=(*parts, *self.place))

    def slowed_down(self, slowdown: float) -> Piece:
        """The same on a machine that takes so many times as long as an idle one."""
        return self if self.is_measured else replace(self, seconds=slowdown * self.seconds, is_measured=True)


class Forecast:
    """Seconds that are left, at any time.

    A piece that was found done already is never begun; it counts as done when one after it begins.

    Args:
        pieces: In the order in which they are done; each place once.
        clock: Seconds of a clock that never goes back.

    >>> now = [0.0]
    >>> forecast = Forecast([Piece(("one",), 10, "look"), Piece(("two",), 10, "look")], clock=lambda: now[0])
    >>> _ = forecast.begin(("one",))
    >>> now[0] = 20.0
    >>> forecast.end()
    >>> forecast.seconds_left()  # the first took twice as long as expected
    20.0
    """

    def __init__(self, pieces: Sequence[Piece], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.pieces = list(pieces)
        self._clock = clock
        self._numbers = {piece.place: number for number, piece in enumerate(self.pieces)}
        self._next = 0
        self._done: list[tuple[Piece, float]] = []
        self._current: Piece | None = None
        self._start, self._share = 0.0, 0.0

    @property
    def is_under_way(self) -> bool:
        """Whether a piece was begun and not ended."""
        return self._current is not None

    def covers(self, place: tuple[str, ...]) -> bool:
        """Whether this part of the work is in it, as one of its pieces or as several."""
        inside = any(piece.place[: len(place)] == place for piece in self.pieces)
        return self.is_under_way or (bool(place) and inside)

    def begin(self, place: tuple[str, ...]) -> bool:
        """Note that a piece begins; False where no such piece is to come."""
        number = self._numbers.get(place, -1)
        if self._current is not None or number < self._next:
            return False
        self._current, self._next = self.pieces[number], number + 1
        self._start, self._share = self._clock(), 0.0
        return True

    def advance(self, share: float) -> None:
        """Note that at least this share of the piece under way is done."""
        self._share = max(self._share, min(1.0, share))

    def end(self) -> None:
        """Note that the piece under way is done."""
        if self._current is not None:
            self._done.append((self._current, self._clock() - self._start))
            self._current = None

    def seconds_left(self) -> float:
        """Time left of the piece under way and of all after it."""
        current = self._current  # another thread, which draws a bar, may ask in the middle of a change
        left = sum(piece.seconds * self._factor(piece.kind) for piece in self.pieces[self._next :])
        if current is None:
            return left
        expected = current.seconds * self._factor(current.kind)
        spent = self._clock() - self._start
        if self._share > 0:  # the more of it is done, the more its own speed counts
            expected += self._share * (spent / self._share - expected)
        return left + max(0.0, expected - spent)

    def _factor(self, kind: str) -> float:
        """How much longer than expected pieces of one kind take.

        What is done counts, also of the piece under way, and what was expected of the rest, until a piece of this kind is done.
        Where none of it is even begun, others count by their share of the whole: a small piece says little.
        """
        current, share = self._current, self._share
        pairs = [(piece.kind, piece.seconds, seconds) for piece, seconds in self._done]
        to_come = sum(piece.seconds for piece in self.pieces) - sum(seconds for _, seconds, _ in pairs)
        unsure = 0.0 if any(of == kind for of, _, _ in pairs) else to_come
        if current is not None and share > 0:
            pairs.append((current.kind, share * current.seconds, self._clock() - self._start))
            unsure = min(unsure, (1 - share) * current.seconds) if current.kind == kind else unsure
        pairs = [pair for pair in pairs if pair[0] == kind] or pairs
        expected = unsure + sum(seconds for _, seconds, _ in pairs)
        return (unsure + sum(seconds for _, _, seconds in pairs)) / expected if expected > 0 else 1.0
