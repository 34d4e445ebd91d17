"""What every score does with every awkward input: a value, a value with a warning, or a named error."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from crossgraft.errors import DataError
from crossgraft.scores import SCORES, ScoreInputs, ZooScore, _statistics
from unit.scores.conftest import make_problem

ALL = [name for name, score in SCORES if SCORES.origin(name) == "crossgraft" and "model" not in score.inputs]
ON_FEATURES = [name for name in ALL if "source_logits" not in SCORES.get(name).inputs]
IN_FLOAT32 = [name for name in ON_FEATURES if SCORES.get(name).sees_reduced and not SCORES.get(name).is_seeded]
"""Shared products of features stay in float32 where that is accurate enough; a draw turns rounding into another value."""

every_score = pytest.mark.parametrize("name", ALL)
every_score_of_features = pytest.mark.parametrize("name", ON_FEATURES)


@contextmanager
def case(*facts):
    """A test goes through several cases; the one that fails is told at the end of its message."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case: {', '.join(map(str, facts))}")
        raise


def problem(num_samples=60, num_features=8, num_classes=3):
    features, labels = make_problem(num_samples, num_features, num_classes)
    rng = np.random.default_rng(1)
    return {"features": features, "labels": labels, "source_logits": rng.standard_normal((num_samples, 5)) + labels[:, None]}


def evaluate(name, given):
    return SCORES.get(name).evaluate(ScoreInputs(**given))


def concerns(name, result):
    """Warnings about these numbers: those that harmless ones do not bring."""
    return set(result.warnings) - set(evaluate(name, problem()).warnings)


def numbers(name, given):
    """What can be compared: the value, or the parts of a score whose value needs a zoo."""
    score = SCORES.get(name)
    if isinstance(score, ZooScore):
        return score.parts(ScoreInputs(**given))
    return {"value": float(score.evaluate(ScoreInputs(**given)))}


@every_score
def test_nan_and_infinity_name_the_array(name):
    array = "features" if name in ON_FEATURES else "source_logits"
    for bad in (np.nan, np.inf):
        given = problem()
        given[array][7, 2] = bad
        with case(bad), pytest.raises(DataError, match=f"`{array}` contains NaN or infinity"):
            evaluate(name, given)


@every_score_of_features
def test_dead_columns(name):
    given = problem()
    padded = {**given, "features": np.column_stack([given["features"], np.zeros((60, 5))])}
    before, after = numbers(name, given), numbers(name, padded)
    if "padding" in SCORES.get(name).invariances:
        assert after == pytest.approx(before, abs=1e-9)
    else:  # it shrinks towards, or averages over, all features
        assert all(np.isfinite(value) for value in after.values())


@every_score_of_features
def test_all_features_constant(name):
    score = SCORES.get(name)
    for value in (0.0, 0.1):
        with case(value):
            result = evaluate(name, {**problem(), "features": np.full((60, 8), value)})
            assert np.isnan(result) == ("constant features" in score.no_value_for)
            assert bool(concerns(name, result)) == ("constant features" in (*score.no_value_for, *score.warns_of))


@every_score
def test_a_class_with_one_image(name):
    given = problem()
    given["labels"] = np.array([0] * 30 + [1] * 29 + [2])
    result = evaluate(name, given)
    assert np.isfinite(result)
    assert bool(concerns(name, result)) == ("a class of one image" in SCORES.get(name).warns_of)


@every_score
def test_fewer_images_than_features_and_very_few_images(name):
    for shape in ((30, 80, 3), (4, 50, 2), (2, 5, 2), (2, 1, 2)):
        with case(shape):
            result = evaluate(name, problem(*shape))
            every_class_is_one_image = shape[0] == shape[2]
            if every_class_is_one_image and "one image per class" in SCORES.get(name).no_value_for:
                assert np.isnan(result) and result.warnings
            else:
                assert np.isfinite(result)


@every_score_of_features
def test_large_in_both_directions(name, monkeypatch):
    monkeypatch.setattr(_statistics, "LARGE", 20)
    monkeypatch.setattr(_statistics, "NUM_DIRECTIONS", 15)
    result = evaluate(name, problem(60, 40, 3))
    assert np.isfinite(result)
    assert any("randomised PCA" in warning for warning in result.warnings) == SCORES.get(name).sees_reduced


@every_score_of_features
def test_every_row_twice(name):
    given = problem(30)
    doubled = {key: np.concatenate([values, values]) for key, values in given.items()}
    result = evaluate(name, doubled)
    assert np.isfinite(result) and not concerns(name, result)


@every_score_of_features
def test_very_large_and_very_small_features(name):
    for shape in ((60, 8, 3), (30, 80, 3), (200, 60, 2)):
        given = problem(*shape)
        score, plain = SCORES.get(name), evaluate(name, given)
        for scale in (1e6, 1e-6):
            with case(shape, scale):
                result = evaluate(name, {**given, "features": (given["features"] * scale).astype(np.float32)})
                assert np.isfinite(result)
                assert (set(result.warnings) > set(plain.warnings)) == (scale < 1 and "tiny features" in score.warns_of)
                assert "scale" not in score.invariances or result == pytest.approx(plain, rel=1e-4, abs=0.04)


@every_score
def test_labels_with_gaps_and_names(name):
    given = problem()
    plain = numbers(name, given)
    for names in ([10, -5, 70], ["benign", "malignant", "normal"]):
        order = np.argsort(names)
        with case(names):
            assert numbers(name, {**given, "labels": np.array(names)[order][given["labels"]]}) == plain


def frozen(values):
    values = values.copy()
    values.flags.writeable = False
    return values


LAYOUTS = {
    "by columns": np.asfortranarray,
    "every second row": lambda values: np.repeat(values, 2, axis=0)[::2],
    "every second column": lambda values: np.repeat(values, 2, axis=-1)[..., ::2],
    "backwards": lambda values: values[::-1].copy()[::-1],
    "read-only": frozen,
    "big-endian": lambda values: values.astype(values.dtype.newbyteorder(">")),
}


@every_score
def test_layout_in_memory(name):
    for shape, dtype in (((60, 8, 3), np.float64), ((30, 80, 3), np.float32)):
        given = {key: values.astype(dtype) if values.dtype.kind == "f" else values for key, values in problem(*shape).items()}
        plain = numbers(name, given)
        tolerance = 1e-9 if dtype == np.float64 else 1e-4
        for layout, change in LAYOUTS.items():
            laid_out = {key: change(values) for key, values in given.items()}
            before = {key: values.copy() for key, values in laid_out.items()}
            with case(shape, dtype.__name__, layout):
                assert numbers(name, laid_out) == pytest.approx(plain, rel=tolerance, abs=tolerance)
                for key, values in laid_out.items():
                    np.testing.assert_array_equal(values, before[key])


@every_score
def test_whole_numbers(name):
    given = problem()
    counts = {key: np.round(3 * values).astype(np.int16) for key, values in given.items() if key != "labels"}
    labels = {"labels": given["labels"].astype(np.uint8)}
    as_floats = {key: values.astype(np.float64) for key, values in counts.items()}
    assert numbers(name, {**counts, **labels}) == numbers(name, {**as_floats, **labels})


@every_score
def test_one_feature_and_two_images_a_class(name):
    for shape in ((40, 1, 3), (6, 8, 3), (6, 1, 3)):
        given = problem(*shape)
        given["source_logits"] = given["source_logits"][:, : shape[1]]
        with case(shape):
            result = evaluate(name, given)
            assert np.isfinite(result) or (np.isnan(result) and result.warnings)


@every_score
def test_float16_is_computed_in_float32(name):
    half = {key: values.astype(np.float16) if values.dtype.kind == "f" else values for key, values in problem().items()}
    single = {key: values.astype(np.float32) if values.dtype.kind == "f" else values for key, values in half.items()}
    assert numbers(name, half) == numbers(name, single)


REFUSED = {
    "one class": (lambda given: {**given, "labels": np.zeros(60)}, "at least 2 classes"),
    "measured targets": (lambda given: {**given, "labels": given["labels"] + 0.5}, "measured values"),
    "measured objects": (lambda given: {**given, "labels": (given["labels"] + 0.5).astype(object)}, "measured values"),
    "missing objects": (lambda given: {**given, "labels": np.array([np.nan, *given["labels"][1:]], dtype=object)}, "missing"),
    "a label too few": (lambda given: {**given, "labels": given["labels"][:-1]}, "`labels` has 59"),
    "one image": (lambda given: {key: values[:1] for key, values in given.items()}, "1 rows"),
}


@every_score
def test_refusals(name):
    for what, (change, message) in REFUSED.items():
        with case(what), pytest.raises(DataError, match=message):
            evaluate(name, change(problem()))


def without_full_rank(kind):
    """Features with directions that are empty, or filled by rounding only, of the kind that networks give."""
    rng = np.random.default_rng(3)
    features, labels = make_problem(70, 90 if "n<d" in kind else 40, 3)
    if "dead" in kind:
        features[:, rng.permutation(features.shape[1])[::3]] = 0.1
    if "rows twice" in kind:
        features[:35] = features[35:]
    if "few directions" in kind:
        features = features[:, :20] @ rng.standard_normal((20, features.shape[1]))
    return features, labels


KINDS = ("dead", "n<d, dead", "n<d, rows twice", "few directions", "n<d, few directions", "n<d, few directions, dead")


@pytest.mark.parametrize("name", IN_FLOAT32)
def test_float32_is_accurate_where_directions_are_empty(name):
    for kind in KINDS:
        features, labels = without_full_rank(kind)
        for scale in (1, 100):
            single = (scale * features).astype(np.float32)
            expected = numbers(name, {"features": single.astype(np.float64), "labels": labels})
            with case(kind, scale):
                found = numbers(name, {"features": single, "labels": labels})
                assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)
