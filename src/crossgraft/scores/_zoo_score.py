"""A score whose parts are scaled over all models of a zoo before they become one value per model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, SupportsFloat, Unpack, cast

from crossgraft.scores._inputs import ScoreInputs
from crossgraft.scores._score import Kind, P, Score, ScoreFacts, ScoreValue


class Parts(dict[str, float]):
    """The parts of one model for a zoo-level score, with warnings like those of a ``ScoreValue``."""

    def __init__(self, parts: Mapping[str, SupportsFloat], *, warnings: Sequence[str] = ()) -> None:
        super().__init__({name: float(part) for name, part in parts.items()})
        self.warnings = tuple(warnings)


class ZooScore(Score[P]):
    """A score that scales its parts over all models of a zoo; made by the decorator ``zoo_score``.

    The decorated function gives the parts of one model; ``combine`` turns the parts of all models into values. Calling
    the score, or ``evaluate``, scores a zoo of one.
    """

    def __init__(
        self,
        function: Callable[P, Mapping[str, float]],
        *,
        combine: Callable[..., Sequence[float]],
        **facts: Unpack[ScoreFacts],
    ) -> None:
        super().__init__(cast(Callable[P, float], function), **facts)
        self._combine = combine

    @property
    def kind(self) -> Kind:
        """Always ``zoo``."""
        return "zoo"

    def parts(self, inputs: ScoreInputs | None = None, /, **arguments: Any) -> Parts:
        """The parts of one model, from checked inputs or directly from arrays by keyword; with their warnings.

        Raises:
            NotApplicable: An input is missing.
        """
        options = {name: value for name, value in arguments.items() if name not in self.inputs}
        if inputs is None:
            inputs = ScoreInputs(**{name: value for name, value in arguments.items() if name in self.inputs})
        parts = self._apply(inputs, options)
        return parts if isinstance(parts, Parts) else Parts(cast(Mapping[str, float], parts))

    def combine(self, parts: Sequence[Mapping[str, float]], **options: Any) -> list[ScoreValue]:
        """One value for each model, in the order of ``parts``; ``options`` are those of the score's own ``combine``."""
        return [
            value if isinstance(value, ScoreValue) else ScoreValue(value, parts=part)
            for value, part in zip(self._combine(parts, **options), parts, strict=True)
        ]

    def evaluate(self, inputs: ScoreInputs, **options: Any) -> ScoreValue:
        """The value in a zoo of this one model."""
        parts = self.parts(inputs, **options)
        value = self.combine([parts])[0]
        return ScoreValue(value, parts=value.parts, warnings=(*parts.warnings, *value.warnings))


def zoo_score(
    *, combine: Callable[..., Sequence[float]], **facts: Unpack[ScoreFacts]
) -> Callable[[Callable[P, Mapping[str, float]]], ZooScore[P]]:
    """Make a zoo-level score of a function that gives the parts of one model.

    Args:
        combine: Parts of all models → one value each; must accept a single model. May have keyword-only options.
        **facts: The facts described at ``Score``.
    """
    return lambda function: ZooScore(function, combine=combine, **facts)


def scale_over_zoo(values: Sequence[float], *, when_equal: float = 0.0) -> list[float]:
    """Min–max scale one part over the zoo to [0, 1]; all-equal (or single) values become ``when_equal``.

    >>> scale_over_zoo([2.0, 4.0, 3.0])
    [0.0, 1.0, 0.5]
    """
    finite = [value for value in values if math.isfinite(value)]
    if not finite or max(finite) == min(finite):
        return [when_equal if math.isfinite(value) else math.nan for value in values]
    low, span = min(finite), max(finite) - min(finite)
    return [(value - low) / span for value in values]
