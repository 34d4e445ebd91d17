"""What a measure of two sets of features returns: a number that says how it came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import SupportsFloat, TypeVar

T = TypeVar("T", bound="Similarity")


class Similarity(float):
    """Value of a measure: a float with what it was computed from.

    Attributes:
        estimator: Name of the measure, with its variant.
        n: Number of rows (images, or positions) that it is of.
        seed: Random seed of what was drawn; None where nothing was.
        parts: Named intermediate numbers.
        warnings: Warnings about the value, each a sentence.
    """

    estimator: str
    n: int
    seed: int | None
    parts: dict[str, float]
    warnings: tuple[str, ...]

    def __new__(
        cls: type[T],
        value: float,
        *,
        estimator: str,
        n: int,
        seed: int | None = None,
        parts: Mapping[str, SupportsFloat] | None = None,
        warnings: Sequence[str] = (),
    ) -> T:
        self = float.__new__(cls, value)
        self.estimator, self.n, self.seed = estimator, n, seed
        self.parts = {name: float(part) for name, part in (parts or {}).items()}
        self.warnings = tuple(warnings)
        return self

    def __copy__(self: T) -> T:
        return self

    def __deepcopy__(self: T, memo: dict[int, object]) -> T:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (type(self), float(self), vars(self))


def _again(kind: type[Similarity], value: float, state: dict[str, object]) -> Similarity:
    """A value that was pickled."""
    again = kind(value, estimator="", n=0)
    vars(again).update(state)
    return again
