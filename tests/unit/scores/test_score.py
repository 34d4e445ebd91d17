from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

from crossgraft.errors import NotApplicable, UsageError
from crossgraft.registry import Registry
from crossgraft.scores import Score, ScoreInputs, ScoreValue, ZooScore, scale_over_zoo, score, zoo_score

from .conftest import make_problem


@score(title="Spread", reference="These tests", cost="nothing")
def spread(features, labels, *, power: int = 2) -> float:
    """Doc of spread."""
    return float((np.abs(features) ** power).mean()) + 0 * len(labels)


@score(title="Distance to the source", reference="These tests")
def source_distance(features, source_features):
    """Made up."""
    return -float(np.linalg.norm(features.mean(axis=0) - source_features.mean(axis=0)))


@score(title="Model output", reference="These tests")
def model_output(model, images, labels, groups=None):
    """Made up."""
    return ScoreValue(model(images).mean(), parts={"groups": 0 if groups is None else len(groups)}, warnings=["made up"])


@zoo_score(title="Scaled spread", reference="These tests", combine=lambda parts: scale_over_zoo([p["s"] for p in parts]))
def scaled_spread(features, labels, *, factor: float = 1.0):
    """Made up."""
    return {"s": factor * float(features.std()), "n": float(len(labels))}


FEATURES, LABELS = make_problem(20, 3, 2)


def test_value_is_a_float_with_parts_and_warnings():
    value = ScoreValue(1.5, parts={"a": np.float32(2)}, warnings=["careful"])
    assert value == 1.5 and value + 1 == 2.5 and isinstance(value, float) and repr(value) == "1.5"
    assert value.parts == {"a": 2.0} and value.warnings == ("careful",)
    for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert (other, other.parts, other.warnings) == (1.5, {"a": 2.0}, ("careful",))


def test_facts_and_signature_survive_decoration():
    assert (spread.name, spread.title, spread.inputs, spread.cost) == ("spread", "Spread", ("features", "labels"), "nothing")
    assert spread.__doc__ == "Doc of spread." and spread.__name__ == "spread"
    assert list(inspect.signature(spread).parameters) == ["features", "labels", "power"]
    assert repr(spread) == "<score spread>"
    assert model_output.inputs == ("model", "images", "labels", "groups")
    assert model_output.optional_inputs == ("groups",)


def test_kinds():
    assert spread.kind == "arrays"
    assert source_distance.kind == "arrays and source features"
    assert model_output.kind == "model and images"
    assert scaled_spread.kind == "zoo"


def test_arrays():
    direct = spread(features=FEATURES, labels=LABELS, power=1)
    assert direct == spread(FEATURES, LABELS, power=1) == spread.evaluate(ScoreInputs(features=FEATURES, labels=LABELS), power=1)
    assert isinstance(direct, ScoreValue) and direct.parts == {}


def test_source_features():
    assert source_distance(features=FEATURES, source_features=FEATURES[:5]) < source_distance(FEATURES, FEATURES) == 0


def test_model_and_images():
    value = model_output(model=lambda batch: batch * 2, images=np.ones((20, 4)), labels=LABELS)
    assert value == 2.0 and value.parts == {"groups": 0.0} and value.warnings == ("made up",)
    assert model_output(lambda batch: batch, np.ones((20, 4)), LABELS, np.arange(20)).parts == {"groups": 20.0}


def test_zoo():
    zoo = [scaled_spread.parts(features=factor * FEATURES, labels=LABELS) for factor in (1, 3, 2)]
    assert zoo[1] == scaled_spread.parts(ScoreInputs(features=3 * FEATURES, labels=LABELS))
    assert scaled_spread.parts(features=FEATURES, labels=LABELS, factor=3.0)["s"] == pytest.approx(zoo[1]["s"])
    values = scaled_spread.combine(zoo)
    assert values == pytest.approx([0.0, 1.0, 0.5])
    assert values[2].parts == zoo[2]
    assert scaled_spread(features=FEATURES, labels=LABELS) == 0.0
    assert scaled_spread.evaluate(ScoreInputs(features=FEATURES, labels=LABELS), factor=2.0).parts["n"] == 20
    assert isinstance(scaled_spread, ZooScore) and isinstance(scaled_spread, Score)


def test_scaling_over_a_zoo_keeps_equal_and_missing_values_defined():
    assert scale_over_zoo([2.0, 2.0]) == [0.0, 0.0]
    assert scale_over_zoo([2.0], when_equal=0.5) == [0.5]
    scaled = scale_over_zoo([1.0, np.nan, 3.0])
    assert scaled[0] == 0 and np.isnan(scaled[1]) and scaled[2] == 1
    assert np.isnan(scale_over_zoo([np.nan])[0])


@pytest.mark.parametrize(
    ("plugin", "given", "reason"),
    [
        (spread, {"labels": LABELS}, "needs features"),
        (source_distance, {"features": FEATURES}, "needs features of source-domain images"),
        (model_output, {"labels": LABELS}, "needs the model itself.*needs the images"),
        (scaled_spread, {"features": FEATURES}, "needs labels"),
    ],
)
def test_missing_inputs_are_an_answer_with_a_reason(plugin, given, reason):
    inputs = ScoreInputs(**given)
    with pytest.raises(NotApplicable, match=reason):
        plugin.evaluate(inputs)
    assert plugin.missing_inputs(inputs) is not None
    assert spread.missing_inputs(ScoreInputs(features=FEATURES, labels=LABELS)) is None


def test_unknown_option_lists_the_known_ones():
    with pytest.raises(UsageError, match=r"spread has no option exponent\. Its options: power"):
        spread.evaluate(ScoreInputs(features=FEATURES, labels=LABELS), exponent=3)


def test_a_score_must_ask_for_known_inputs_and_give_defaults():
    def unknown_input(features, pixels):
        return 0.0

    def swallows_everything(*arrays):
        return 0.0

    def no_default(features, *, power):
        return 0.0

    for function, message in (
        (unknown_input, "input pixels"),
        (swallows_everything, r"input \*arrays"),
        (no_default, "setting power without a default"),
    ):
        with pytest.raises(UsageError, match=message):
            score(title="Bad", reference="These tests")(function)


def test_statistics_are_shared_between_scores():
    seen = []

    def looks(features, labels, *, statistics=None):
        seen.append(statistics)
        return 0.0

    plugin = score(title="Looks", reference="These tests")(looks)
    inputs = ScoreInputs(features=FEATURES, labels=LABELS)
    plugin.evaluate(inputs)
    plugin.evaluate(inputs)
    plugin.evaluate(inputs.with_labels(LABELS[::-1]))
    assert seen[0] is seen[1] is inputs.statistics
    assert seen[2] is not seen[0] and seen[2].label_free is seen[0].label_free


def test_every_kind_fits_the_registry():
    registry = Registry("score", group="crossgraft.tests.none", plugin_type=Score)
    for plugin in (spread, source_distance, model_output, scaled_spread):
        registry.add(plugin.name, plugin)
    assert registry.names() == ["spread", "source_distance", "model_output", "scaled_spread"]
    with pytest.raises(UsageError, match="expected Score"):
        registry.add("plain_function", len)


def test_a_score_that_is_drawn_again_has_a_seed():
    with pytest.raises(UsageError, match="num_redraws=2 and no setting seed"):
        score(title="Made up", reference="These tests", num_redraws=2)(lambda features: 0.0)
