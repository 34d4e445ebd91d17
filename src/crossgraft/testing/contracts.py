"""What every score promises, as checks that authors of scores run on their own.

With pytest, one test a promise::

    import pytest
    from crossgraft.testing import SCORE_CONTRACTS
    from my_package import my_score

    @pytest.mark.parametrize("contract", SCORE_CONTRACTS, ids=lambda contract: contract.__name__)
    def test_my_score(contract):
        contract(my_score)

A score that needs a model passes what the examples here cannot make: ``contract(my_score, model=net, images=batch)``,
with ``NUM_IMAGES`` images.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from crossgraft import seeding
from crossgraft.errors import DataError
from crossgraft.scores import Score as _Score
from crossgraft.scores import ScoreInputs, ScoreValue, ZooScore
from crossgraft.testing.promises import Contract, ContractError, promise, require

Score = _Score[...]

NUM_IMAGES = 60
"""Rows of the example arrays."""
_NUM_FEATURES = 8
_NUM_CLASSES = 3
_NUM_SOURCE_CLASSES = 6
_ROUNDING = 1e-6
"""Relative difference (absolute below 1) that rounding may make in float64."""
_ROUNDING_FLOAT32 = 1e-4
AWKWARD: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "constant features": lambda arrays: {"features": np.full_like(arrays["features"], 0.1)},
    "tiny features": lambda arrays: {"features": 1e-6 * arrays["features"]},
    "a class of one image": lambda arrays: {"labels": np.minimum(np.arange(len(arrays["labels"])), 1) + (arrays["labels"] > 0)},
    "one image per class": lambda arrays: {"labels": np.arange(len(arrays["labels"]))},
}
"""What a score may say that it has no value for, or warns of → what of the arrays is changed for it."""
_OTHER_SEED = 0.1
"""Difference that a new draw may make in a seeded score, where rows in another order are a new draw."""


@promise
def declares_its_facts(score: Score, **extra: Any) -> None:
    """It has a name, a title, a reference and a docstring, and says what it needs."""
    del extra
    facts = {"title": score.title, "reference": score.reference, "docstring": score.__doc__}
    missing = [name for name, fact in facts.items() if not (fact or "").strip()]
    require(not missing, score, f"it has no {', no '.join(missing)}")
    require(bool(score.inputs), score, "it declares no input")
    require(score.name.isidentifier() and score.name == score.name.lower(), score, "its name is not in snake_case")


@promise
def gives_a_finite_value(score: Score, **extra: Any) -> None:
    """On harmless inputs the value is finite."""
    numbers = _numbers(score, _example(score, extra))
    require(all(np.isfinite(list(numbers.values()))), score, f"harmless inputs give {numbers}")


@promise
def is_repeatable(score: Score, **extra: Any) -> None:
    """The same inputs give the same value, to the last bit."""
    first, second = (_numbers(score, _example(score, extra)) for _ in range(2))
    require(first == second, score, f"the same inputs give {first}, then {second}")


@promise
def leaves_its_inputs_alone(score: Score, **extra: Any) -> None:
    """It does not write into the caller's arrays."""
    arrays = _example(score, extra)
    before = {name: np.copy(array) for name, array in arrays.items() if isinstance(array, np.ndarray)}
    _numbers(score, arrays)
    changed = [name for name, array in before.items() if not np.array_equal(array, arrays[name])]
    require(not changed, score, f"it overwrites {', '.join(changed)}")


@promise
def ignores_the_order_of_rows(score: Score, **extra: Any) -> None:
    """Images in another order give the same value (a seeded score: nearly)."""
    arrays = _in_double(_example(score, extra))
    order = seeding.generator(0, "order").permutation(NUM_IMAGES)
    _require_same(score, arrays, _rows(arrays, order), "another order of the images", _tolerance(score))


@promise
def ignores_the_names_of_classes(score: Score, **extra: Any) -> None:
    """Labels may be any names, in any alphabetical order."""
    arrays = _example(score, extra)
    names = np.array(["c", "a", "b"])
    renamed = {**arrays, "labels": names[arrays["labels"]]} if "labels" in arrays else arrays
    _require_same(score, arrays, renamed, "classes renamed", _tolerance(score))


@promise
def agrees_between_precisions(score: Score, **extra: Any) -> None:
    """float32 and float64 inputs give the same value to 1e-4."""
    single = _example(score, extra)
    _require_same(score, single, _in_double(single), "float64 in place of float32", _ROUNDING_FLOAT32)


@promise
def prefers_classes_that_separate(score: Score, **extra: Any) -> None:
    """Features whose classes lie apart score higher than the same features with shuffled labels.

    Not asked of a score of the model's gradients, which says how the model would move, not how far classes lie apart.
    """
    arrays = _example(score, extra)
    if "labels" not in arrays or "model" in score.inputs:
        return
    shuffled = {**arrays, "labels": seeding.generator(0, "shuffle").permutation(arrays["labels"])}
    true_value, shuffled_value = _values(score, [arrays, shuffled])
    require(true_value > shuffled_value, score, f"true labels give {true_value:.4g}, shuffled labels {shuffled_value:.4g}")


@promise
def refuses_what_has_no_value(score: Score, **extra: Any) -> None:
    """NaN, a single class and labels that do not match raise ``DataError``."""
    arrays = _example(score, extra)
    bad: dict[str, dict[str, Any]] = {}
    for name, array in arrays.items():
        if _is_float(array) and name != "images":  # what is wrong with an image is the model's to say
            bad[f"NaN in {name}"] = {**arrays, name: _with_nan(array)}
    if "labels" in arrays:
        bad["a single class"] = {**arrays, "labels": np.zeros(NUM_IMAGES, dtype=int)}
        bad["one label too few"] = {**arrays, "labels": arrays["labels"][:-1]}
    for case, arguments in bad.items():
        try:
            numbers = _numbers(score, arguments)
        except DataError:
            continue
        raise ContractError(f"{score.name}: {case} gives {numbers}; expected a DataError.")


@promise
def shares_statistics_faithfully(score: Score, **extra: Any) -> None:
    """Rows left out of shared inputs, and other labels on them, give what fresh inputs give."""
    arrays = _in_double(_example(score, extra))
    shared = ScoreInputs(**arrays)
    _numbers(score, shared)  # what it may remember, it now remembers
    kept = np.arange(6, NUM_IMAGES)
    fresh = _rows(arrays, kept)
    _require_same(score, fresh, shared.without(np.arange(6)), "rows left out of shared inputs", _tolerance(score))
    if "labels" in arrays:
        mixed = seeding.generator(0, "shuffle").permutation(arrays["labels"])
        _require_same(score, {**arrays, "labels": mixed}, shared.with_labels(mixed), "other labels on shared inputs", _ROUNDING)


@promise
def keeps_its_invariances(score: Score, **extra: Any) -> None:
    """Padding, rotating, scaling or shifting the features changes nothing where the score says so."""
    arrays = _in_double(_example(score, extra))
    rng = seeding.generator(0, "rotation")
    rotation = np.linalg.qr(rng.standard_normal((_NUM_FEATURES, _NUM_FEATURES)))[0]
    changes: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "padding": lambda features: np.column_stack([features, np.zeros((NUM_IMAGES, 3))]),
        "rotation": lambda features: features @ rotation,
        "scale": lambda features: features * 3.0,
        "shift": lambda features: features + 1.0,
    }
    for name in score.invariances:
        changed = {**arrays, "features": changes[name](arrays["features"])}
        _require_same(score, arrays, changed, f"a {name} of the features", _tolerance(score))


@promise
def meets_awkward_inputs_as_it_says(score: Score, **extra: Any) -> None:
    """It gives NaN and a warning for what ``no_value_for`` names, a value and a warning for what ``warns_of`` names."""
    arrays = _in_double(_example(score, extra))
    usual = _result(score, arrays).warnings
    for awkward in (*score.no_value_for, *score.warns_of):
        value = _result(score, {**arrays, **AWKWARD[awkward](arrays)})
        has_value, warned = bool(np.isfinite(value)), set(value.warnings) > set(usual)
        given = f"{awkward} give{'' if warned else ' no warning and'} {float(value):g}"
        require(warned and has_value == (awkward in score.warns_of), score, given)


SCORE_CONTRACTS: tuple[Contract, ...] = (
    declares_its_facts,
    gives_a_finite_value,
    is_repeatable,
    leaves_its_inputs_alone,
    ignores_the_order_of_rows,
    ignores_the_names_of_classes,
    agrees_between_precisions,
    prefers_classes_that_separate,
    refuses_what_has_no_value,
    shares_statistics_faithfully,
    keeps_its_invariances,
    meets_awkward_inputs_as_it_says,
)
"""All promises of a score; each is called with the score and raises ``ContractError`` when it is broken."""


def check_score(score: Score, **extra: Any) -> None:
    """Check all promises of one score.

    Args:
        score: Score that the decorator ``score`` or ``zoo_score`` made.
        extra: Inputs that the examples cannot make: ``model`` and ``images``.

    Raises:
        ContractError: The first promise that is broken.
    """
    if not isinstance(score, _Score):  # pyright: ignore[reportUnnecessaryIsInstance]  # what a decorator was forgotten on
        name = getattr(score, "__name__", type(score).__name__)
        raise ContractError(f"{name} is no score. Put the decorator crossgraft.scores.score above the function.")
    for contract in SCORE_CONTRACTS:
        contract(score, **extra)


def _example(score: Score, extra: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs that the score declares: 60 images of three classes that lie apart, two images per group."""
    rng = seeding.generator(0, "contract example")
    labels = np.arange(NUM_IMAGES) % _NUM_CLASSES
    centres = 2.0 * rng.standard_normal((_NUM_CLASSES, _NUM_FEATURES))
    logits = rng.standard_normal((NUM_IMAGES, _NUM_SOURCE_CLASSES))
    logits[np.arange(NUM_IMAGES), labels] += 2.0
    arrays = {
        "features": (centres[labels] + rng.standard_normal((NUM_IMAGES, _NUM_FEATURES))).astype(np.float32),
        "labels": labels,
        "groups": np.arange(NUM_IMAGES) // _NUM_CLASSES // 2 * _NUM_CLASSES + labels,
        "source_logits": logits.astype(np.float32),
        "source_features": rng.standard_normal((NUM_IMAGES, _NUM_FEATURES)).astype(np.float32),
        **extra,
    }
    return {name: arrays[name] for name in score.inputs if name in arrays}


def _rows(arrays: Mapping[str, Any], rows: np.ndarray) -> dict[str, Any]:
    fixed = ("model", "source_features")
    return {name: array if name in fixed else array[rows] for name, array in arrays.items()}


def _is_float(array: object) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind == "f"


def _in_double(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """In float64, where rounding tells nothing of how a processor sums."""
    return {name: array.astype(np.float64) if _is_float(array) else array for name, array in arrays.items()}


def _with_nan(array: np.ndarray) -> np.ndarray:
    broken = array.copy()
    broken[-1, -1] = np.nan
    return broken


def _tolerance(score: Score) -> float:
    return _OTHER_SEED if score.is_seeded else _ROUNDING


def _values(score: Score, problems: list[dict[str, Any]]) -> list[float]:
    inputs = [ScoreInputs(**arrays) for arrays in problems]
    if isinstance(score, ZooScore):
        return [float(value) for value in score.combine([score.parts(item) for item in inputs])]
    return [float(score.evaluate(item)) for item in inputs]


def _result(score: Score, arrays: Mapping[str, Any]) -> ScoreValue:
    """The value, in a zoo of this one model, with its warnings."""
    return score.evaluate(ScoreInputs(**arrays))


def _numbers(score: Score, arguments: Mapping[str, Any] | ScoreInputs) -> dict[str, float]:
    """What one model's inputs determine: the value, or the parts of a zoo-level score."""
    inputs = arguments if isinstance(arguments, ScoreInputs) else ScoreInputs(**arguments)
    return score.parts(inputs) if isinstance(score, ZooScore) else {"value": float(score.evaluate(inputs))}


def _require_same(
    score: Score, plain: Mapping[str, Any] | ScoreInputs, changed: Mapping[str, Any] | ScoreInputs, change: str, tolerance: float
) -> None:
    before, after = _numbers(score, plain), _numbers(score, changed)
    far = [name for name, value in before.items() if abs(after[name] - value) > tolerance * max(1.0, abs(value))]
    require(not far, score, f"{change} turns {before} into {after} (allowed: {tolerance:g})")
