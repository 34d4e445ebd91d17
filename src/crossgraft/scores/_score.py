"""What a score is: a function of declared inputs with its facts, called directly or on shared inputs.

A score is written as a plain function. Its positional parameters are the inputs that it needs, by name (an input with
the default ``None`` is optional); its keyword-only parameters are settings with defaults. The decorator adds facts and
the front end, and keeps signature and docstring::

    @score(title="Nearest mean", reference="Own definition")
    def nearest_mean(features: Features, labels: Labels) -> float: ...

A keyword-only parameter called ``statistics`` receives the statistics that all scores of one model share, one called
``logit_rows`` what follows from the source logits of each image alone.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import (
    Any,
    Generic,
    Literal,
    NamedTuple,
    ParamSpec,
    Required,
    SupportsFloat,
    TypedDict,
    Unpack,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from crossgraft.errors import NotApplicable, UsageError
from crossgraft.scores._inputs import INPUT_NAMES, ScoreInputs

P = ParamSpec("P")
Kind = Literal["arrays", "arrays and source features", "model and images", "zoo"]
Invariance = Literal["padding", "rotation", "scale", "shift"]
"""``padding``: further features that are 0 for every image."""
WithoutValue = Literal["constant features", "one image per class"]
Warned = Literal["constant features", "a class of one image", "tiny features"]

_SHARED_NAMES = ("statistics", "logit_rows", "passes")
"""Parameters in whose place a score gets what all scores of one model share."""
_WHY_MISSING = {
    "features": "needs features",
    "labels": "needs labels",
    "groups": "needs a group (patient) for each image",
    "source_logits": "needs source logits, and this model has no classification head",
    "source_features": "needs features of source-domain images, and none were given",
    "model": "needs the model itself, and only arrays were given",
    "images": "needs the images, and only arrays were given",
}


class ScoreValue(float):
    """The value of a score: a float (higher = expected to transfer better) that says how it came about.

    Attributes:
        parts: Named intermediate numbers.
        warnings: Warnings about the value, each a sentence.
        arrays: Named intermediate arrays, of a score that was asked for them.
    """

    parts: dict[str, float]
    warnings: tuple[str, ...]
    arrays: dict[str, np.ndarray]

    def __new__(
        cls,
        value: float,
        *,
        parts: Mapping[str, SupportsFloat] | None = None,
        warnings: Sequence[str] = (),
        arrays: Mapping[str, np.ndarray] | None = None,
    ) -> ScoreValue:
        self = super().__new__(cls, value)
        self.parts = {name: float(part) for name, part in (parts or {}).items()}
        self.warnings = tuple(warnings)
        self.arrays = dict(arrays or {})
        return self

    def __copy__(self) -> ScoreValue:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> ScoreValue:
        return self


class ZooOption(NamedTuple):
    """An option that depends on the whole zoo: measured on each model first, then chosen for all together.

    Attributes:
        name: Name of the option.
        measure: Features (n, d) and class indices (n,) of one model → a number.
        choose: The numbers of a zoo → the option of each model, in the same order.
    """

    name: str
    measure: Callable[..., float]
    choose: Callable[[Sequence[float]], Sequence[float]]


class ScoreFacts(TypedDict, total=False):
    """What its author says of a score, as described at ``Score``."""

    title: Required[str]
    reference: Required[str]
    is_reference_probe: bool
    is_seeded: bool
    num_redraws: int
    invariances: tuple[Invariance, ...]
    no_value_for: tuple[WithoutValue, ...]
    warns_of: tuple[Warned, ...]
    sees_reduced: bool
    cost: str
    is_quadratic: bool
    zoo_option: ZooOption | None


class Score(Generic[P]):
    """One transferability score; made by the decorator ``score``.

    Attributes:
        name: Name of the function, and of the score in tables and on the command line.
        title: Name in print.
        reference: The paper or the code that defines it.
        inputs: Names of the inputs in order.
        optional_inputs: Those of them that may be absent.
        kind: Kind of input that it needs, one of four.
        is_reference_probe: Whether it trains or looks up a classifier, as a yardstick for the others.
        is_seeded: Whether the value depends on a seed (and so, slightly, on the order of the rows).
        num_redraws: Further evaluations with other seeds in a ranking, for a score whose values without a block of images do
            not show what the seed does; the spread over seeds is then part of the interval. Needs a setting ``seed``.
        invariances: Changes of the features that leave the value as it is.
        no_value_for: Awkward inputs for which it gives NaN and a warning that says why; for others it gives a value.
        warns_of: Awkward inputs for which it gives a value and a warning.
        sees_reduced: Whether its value is that of features that were reduced, where there are very many images of very many
            features; unless it is said, whether it takes the shared ``statistics``.
        cost: Computational cost, in words.
        is_quadratic: Whether its cost grows with the square of the images; where there are many, a ranking then computes it only
            when it is asked for by name.
        zoo_option: An option that a ranking sets from the whole zoo; a single evaluation leaves it at its default.
    """

    __doc__: str | None
    __name__: str
    __module__: str

    def __init__(
        self,
        function: Callable[P, float],
        *,
        title: str,
        reference: str,
        is_reference_probe: bool = False,
        is_seeded: bool = False,
        num_redraws: int = 0,
        invariances: tuple[Invariance, ...] = (),
        no_value_for: tuple[WithoutValue, ...] = (),
        warns_of: tuple[Warned, ...] = (),
        sees_reduced: bool | None = None,
        cost: str = "",
        is_quadratic: bool = False,
        zoo_option: ZooOption | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name: str = function.__name__
        self.title = title
        self.reference = reference
        self.is_reference_probe = is_reference_probe
        self.is_seeded = is_seeded
        self.num_redraws = num_redraws
        self.invariances = invariances
        self.no_value_for = no_value_for
        self.warns_of = warns_of
        self.cost = cost
        self.is_quadratic = is_quadratic
        self.zoo_option = zoo_option
        self.signature = inspect.signature(function)
        self.sees_reduced = "statistics" in self.signature.parameters if sees_reduced is None else sees_reduced
        self.inputs, self.optional_inputs = _declared_inputs(self.name, self.signature)
        if num_redraws and "seed" not in self.signature.parameters:
            raise UsageError(f"The score {self.name} has num_redraws={num_redraws} and no setting seed; give it one.")

    @property
    def needs(self) -> str:
        """Its inputs, those that may be absent in brackets."""
        return ", ".join(f"[{name}]" if name in self.optional_inputs else name for name in self.inputs)

    @property
    def kind(self) -> Kind:
        """Which of the four kinds of input the score needs."""
        if "model" in self.inputs or "images" in self.inputs:
            return "model and images"
        return "arrays and source features" if "source_features" in self.inputs else "arrays"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> ScoreValue:
        """Score arrays directly; the arguments are those of the function."""
        bound = self.signature.bind(*args, **kwargs).arguments
        chosen = {name: value for name, value in bound.items() if name in self.inputs}
        options = {name: value for name, value in bound.items() if name not in self.inputs}
        return self.evaluate(ScoreInputs(**chosen), **options)

    def missing_inputs(self, inputs: ScoreInputs) -> str | None:
        """Why the score has no meaning for these inputs, in words; None when nothing is missing."""
        missing = [name for name in self.inputs if name not in self.optional_inputs and getattr(inputs, name) is None]
        return "; ".join(_WHY_MISSING[name] for name in missing) or None

    def evaluate(self, inputs: ScoreInputs, **options: Any) -> ScoreValue:
        """Score inputs that were checked before, sharing their statistics with other scores.

        Args:
            inputs: Arrays, or the model and images.
            options: The keyword-only settings of the function.

        Raises:
            NotApplicable: An input is missing; the reason says which.
            UsageError: An option is unknown, or the score gives no number.
        """
        value = self._apply(inputs, options)
        if isinstance(value, ScoreValue):
            return value
        if np.ndim(cast(Any, value)) or not isinstance(value, SupportsFloat) or isinstance(value, complex):
            kind = type(value).__name__
            raise UsageError(
                f"The score {self.name} gave an object of type {kind}, not one number. Mend the package that brings it."
            )
        return ScoreValue(float(value))

    def _apply(self, inputs: ScoreInputs, options: Mapping[str, object]) -> object:
        if reason := self.missing_inputs(inputs):
            raise NotApplicable(f"{self.title} {reason}.")
        parameters = self.signature.parameters
        if unknown := [name for name in options if name not in parameters]:
            known = ", ".join(name for name in parameters if name not in (*self.inputs, *_SHARED_NAMES))
            raise UsageError(f"{self.name} has no option {unknown[0]}. Its options: {known or 'none'}.")
        self._require_known_choices(options)
        arguments: dict[str, object] = {name: getattr(inputs, name) for name in self.inputs}
        shared = {name: getattr(inputs, name) for name in _SHARED_NAMES if name in parameters and options.get(name) is None}
        function = cast(Callable[..., object], self.function)
        return function(**{**arguments, **options, **shared})

    @functools.cached_property
    def _choices(self) -> dict[str, tuple[object, ...]]:
        """The allowed values of each option that is annotated as a ``Literal``."""
        try:
            hints = get_type_hints(self.function)
        except NameError:  # a plug-in may import its annotations for the type checker only
            return {}
        return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}

    def _require_known_choices(self, options: Mapping[str, object]) -> None:
        for name, value in options.items():
            if name in self._choices and value not in self._choices[name]:
                known = " or ".join(map(str, self._choices[name]))
                raise UsageError(f"{self.name} has no {name} {value!r}. Use {known}.")

    def __repr__(self) -> str:
        return f"<score {self.name}>"


def score(**facts: Unpack[ScoreFacts]) -> Callable[[Callable[P, float]], Score[P]]:
    """Make a score of a function; the arguments are the facts described at ``Score``.

    Raises:
        UsageError: The function asks for an input that does not exist, or has a setting without a default.
    """
    return lambda function: Score(function, **facts)


def _declared_inputs(name: str, signature: inspect.Signature) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Positional parameters are inputs, keyword-only parameters are settings with a default."""
    inputs: list[str] = []
    optional: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            if parameter.default is inspect.Parameter.empty:
                raise UsageError(f"The score {name} has the setting {parameter.name} without a default; give it one.")
            continue
        if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD or parameter.name not in INPUT_NAMES:
            raise UsageError(
                f"The score {name} asks for the input {parameter}. Inputs are {', '.join(INPUT_NAMES)}; "
                "settings come after a star."
            )
        inputs.append(parameter.name)
        if parameter.default is not inspect.Parameter.empty:
            optional.append(parameter.name)
    return tuple(inputs), tuple(optional)


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
        self, function: Callable[P, Mapping[str, float]], *, combine: Callable[..., Sequence[float]], **facts: Unpack[ScoreFacts]
    ) -> None:
        super().__init__(cast(Callable[P, float], function), **facts)
        self._combine = combine

    @property
    def kind(self) -> Kind:
        """Always ``zoo``."""
        return "zoo"

    @property
    def combine_options(self) -> tuple[str, ...]:
        """Names of the options of ``combine``."""
        parameters = inspect.signature(self._combine).parameters.values()
        return tuple(parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY)

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
