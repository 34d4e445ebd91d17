"""One validation of options for command line, files and Python: what can mean one thing only is taken, all else named."""

import functools
import itertools
import re
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
import torch

import crossgraft
from crossgraft.errors import CrossgraftError, UsageError
from crossgraft.options._option import options_of
from crossgraft.options._values import value_of
from crossgraft.options.command import COMMANDS
from crossgraft.options.data import OpenOptions
from crossgraft.options.running import PageOptions
from crossgraft.rank.options import RankOptions
from crossgraft.tune.options import CompareOptions, TuneOptions
from support.tiny import make_images

FUNCTIONS = [name for name in crossgraft.__all__ if getattr(getattr(crossgraft, name), "options", None) is not None]
NEVER = (object(), b"x", bytearray(b"x"), 1j, {1, 2}, frozenset("a"), int, lambda _: None, ..., memoryview(b"x"))
"""What no option means; a function that is called is one more exception, see below."""


def wrong_values(option):
    """At least ten."""
    often = [*NEVER, float("nan"), 10**400, True, [[object()]], {"a": object()}, np.array([[1.5]]), "no number", -(2**70)]
    if "Callable" in option.annotation:
        return [each for each in often if not callable(each)]
    return [*NEVER] if "bool" not in option.annotation else [*NEVER, 1, 0, "true", "", [True]]


def options_in(name):
    """Those of a function; a test of each function looks at all, as one of each option takes as long to begin as to be done."""
    return [*options_of(getattr(crossgraft, name).options).values()]


def refused(option, value, call):
    """The error of a call with a value that the option does not take."""
    try:
        call()
    except CrossgraftError as error:
        return error
    raise AssertionError(f"{option.name} takes {value!r}")


@functools.cache
def inputs_of(name):
    """How many inputs the function has; none of them is opened."""
    import inspect

    parameters = inspect.signature(getattr(crossgraft, name)).parameters.values()
    return sum(each.kind is not each.KEYWORD_ONLY for each in parameters)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_option_refuses_ten_wrong_values_by_a_named_error(name):
    function = getattr(crossgraft, name)
    needed = {each.name: "x" for each in options_in(name) if each.is_required}
    for option in options_in(name):
        wrong = wrong_values(option)
        assert len(wrong) >= 10
        for value in wrong:
            given = {**needed, option.name: value}
            error = refused(option, value, lambda given=given: function(*["no such data"] * inputs_of(name), **given))
            assert str(error).startswith((option.name, f"Unknown value of {option.name}")), (value, error)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_message_says_what_may_be_written(name):
    for option, value in itertools.product(options_in(name), (object(), 1j)):
        said = str(refused(option, value, lambda option=option, value=value: value_of(option, value)))
        assert "must be one of " in said or said.endswith(f"{option.name}: {option.about.help}")
        assert re.match(rf"{option.name} must be (?!,| or |text, a path, a list)\w.* not ", said), said
        assert "object of crossgraft" not in said and "an object" not in said


def test_a_message_names_the_objects_of_a_program():
    for name, value, said in (
        ("scores", 3, "scores must be text, a score of crossgraft.scores or a list of these, not 3. scores: default, all, or"),
        ("models", 3, "models must be text, a path or a list of texts or ModelSpecs, not 3. models: Names, checkpoints"),
        ("ground_truth", 3, "ground_truth must be text, a path or a dict of names and values, not 3."),
    ):
        with pytest.raises(UsageError, match=re.escape(said)):
            value_of(options_of(RankOptions)[name], value)


ARGUMENTS = [
    (function, option, required)
    for function, kind, required in (
        (crossgraft.open_dataset, OpenOptions, {"location": "no such data"}),
        (crossgraft.write_report, PageOptions, {"run_directory": "no such run"}),
    )
    for option in options_of(kind).values()
]


@pytest.mark.parametrize(("function", "option", "needed"), ARGUMENTS, ids=lambda each: getattr(each, "name", ""))
def test_every_argument_of_other_functions_refuses_ten_wrong_values(function, option, needed, monkeypatch):
    import inspect

    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # nobody checks the types of a user's call
    parameters = inspect.signature(function).parameters
    assert option.name in parameters
    assert set(parameters) == {each.name for other, each, _ in ARGUMENTS if other is function}
    for value in wrong_values(option):
        with pytest.raises(CrossgraftError) as caught:
            function(**{**needed, option.name: value})
        if not isinstance(value, str | bool | float | int):
            assert str(caught.value).startswith(option.name), (value, caught.value)


NO_NUMBERS = (True, np.True_, float("nan"), float("inf"), "nan", "three", "", [1], [], (1, 2), {}, np.ones(3), Path("1"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_number_is_no_word_truth_or_list(name):
    for option in options_in(name):
        if option.type not in (int, float, int | None, float | None):
            continue
        for value in NO_NUMBERS:
            error = refused(option, value, lambda option=option, value=value: value_of(option, value))
            assert isinstance(error, UsageError) and option.name in str(error), value
        for value in (10**400, "9" * 400, "9" * 5000):
            error = refused(option, value, lambda option=option, value=value: value_of(option, value))
            assert isinstance(error, UsageError), option.name
            assert re.search(f"{option.name} must be .{{1,600}}$", str(error)), option.name


@pytest.mark.parametrize(
    ("name", "given", "same"),
    [
        ("holdout", "0.2", 0.2),
        ("learning_rate", "1e-3", 1e-3),
        ("learning_rate", np.float64(0.5), 0.5),
        ("learning_rate", torch.tensor(0.5), 0.5),
        ("image_size", (32, 32), 32),
        ("image_size", np.array([32, 32]), 32),
        ("epochs", 3.0, 3),
        ("epochs", np.int32(3), 3),
        ("epochs", "3", 3),
        ("seed", np.array(7), 7),
        ("flip", np.False_, False),
        ("class_weights", np.array([1.0, 2.5]), [1.0, 2.5]),
        ("class_weights", torch.ones(2), [1.0, 1.0]),
        ("class_weights", (1, 2), (1, 2)),
        ("class_names", np.array(["a", "b"]), ["a", "b"]),
        ("grid", {"learning_rate": np.array([1e-3, 1e-4])}, {"learning_rate": [1e-3, 1e-4]}),
        ("regularizer", ["l2_sp"], ["l2_sp"]),
        ("slices", 3, "3"),
        ("precision", 32, "32"),
        ("weights_dir", Path("w"), Path("w")),
        ("split", None, None),
    ],
)
def test_what_can_mean_one_thing_only_is_accepted(name, given, same):
    found = value_of(options_of(TuneOptions)[name], given)
    assert found == same and type(found) is type(same)


@pytest.mark.parametrize("pair", [(32, 48), (32,), (32, 32, 3), ("a", "a"), (0, 0), (32.5, 32.5)])
def test_a_size_that_is_no_square_is_refused(pair):
    with pytest.raises(UsageError, match="image_size must be"):
        value_of(options_of(TuneOptions)["image_size"], pair)


def test_objects_of_a_program_are_left_as_they_are():
    from crossgraft.scores import SCORES
    from crossgraft.tune.regularizers import REGULARIZERS

    score, plugin = SCORES.get("logme"), REGULARIZERS.get("l2_sp")()
    assert value_of(options_of(RankOptions)["by"], score) is score
    assert value_of(options_of(TuneOptions)["regularizer"], plugin) is plugin
    entries = ["full", {"name": "x", "epochs": 3}]
    assert value_of(options_of(CompareOptions)["compare"], entries) is entries


def test_the_hash_of_a_whole_number_from_python_stays(monkeypatch):
    """1 is not made 1.0: folders of earlier runs would be those of another run."""
    from crossgraft.running.verb import verb

    seen = verb("tune", TuneOptions)(lambda data, options, run: options)("x", model="m", learning_rate=1)
    assert type(seen.learning_rate) is int


def test_words_of_the_command_line_and_of_python_are_refused_alike():
    from crossgraft.cli.call import parse

    with pytest.raises(UsageError) as typed:
        parse(COMMANDS.get("tune"), ["x", "--model", "m", "--epochs", "three"])
    with pytest.raises(UsageError) as called:
        crossgraft.fine_tune("x", model="m", epochs="three")
    assert str(typed.value).replace("--", "").startswith(str(called.value))


@pytest.mark.parametrize(
    ("name", "keywords", "said"),
    [
        ("fine_tune", {"model": "m", "edit_share": 0.5}, "--edit-share means nothing without --with"),
        ("rank_models", {"ground_truth_column": "auc"}, "--ground-truth-column means nothing without --ground-truth"),
        ("export_model", {"private": False}, "--public means nothing without --push-to"),
        ("audit_model", {"data": "digits", "epochs": 3}, "--epochs is about the fine-tunings of --mode full"),
        ("audit_model", {"data": "digits", "attributes": "height", "strength": 2}, "--strength is about artefacts"),
        ("audit_model", {"data": "digits", "attributes": "height", "unit": "patient"}, "--unit is about artefacts"),
        ("audit_model", {"data": "digits", "start": "m"}, "--start is for a model that is trained already"),
        ("audit_model", {"data": "digits", "micro_auc": True, "model": "OWN"}, "--micro-auc is for models that are trained"),
        ("audit_model", {"data": "digits", "audit_folds": 2, "model": "OWN"}, "--folds is for models that are trained"),
        ("audit_model", {"data": "digits", "batch_size": 2, "model": "OWN"}, "--batch-size is for models that are trained"),
        ("interpolate", {"linear": "x", "model": "m"}, "--model means nothing beside --linear"),
        ("interpolate", {"linear": "x", "weights_dir": "w"}, "--weights-dir means nothing without --model"),
        ("compare_models", {"linear_probe": True}, "--linear-probe is about images, and none are given"),
        ("compare_models", {"limit": 9}, "--limit is about images, and none are given"),
        ("split_data", {"val_fraction": 0.4}, "--val-fraction 0.4 is for data without val rows, and images has 4"),
        ("fine_tune", {"model": "resnet18", "val_fraction": 0}, "--val-fraction 0 is for data without val rows"),
        ("select_model", {"models": "resnet18", "val_fraction": 0.4}, "--val-fraction 0.4 is for data without val rows"),
        ("check_data", {"fold": 1}, "--fold says which of several folds"),
        ("rank_models", {"models": "resnet18", "fold": 1}, "--fold says which of several folds"),
    ],
)
def test_an_option_that_has_no_effect_is_refused(name, keywords, said, tmp_path):
    for part in ("train", "val", "test"):
        make_images(tmp_path / "images" / part, {"a": 2, "b": 2})
    model = keywords.get("model", "m")
    inputs = {0: [], 1: [tmp_path / "images"], 2: ["no such data"] * 2}[inputs_of(name)]
    if name == "audit_model":
        inputs = [(lambda images: images) if model == "OWN" else "no such model"]
        keywords = {key: value for key, value in keywords.items() if key != "model"}
    with pytest.raises(UsageError, match=said):
        getattr(crossgraft, name)(*inputs, **keywords)


@pytest.mark.parametrize("flags", [{"available": True}, {"weights_dir": "w"}])
def test_options_of_models_are_refused_with_other_lists(flags):
    from crossgraft.cli.listing import rows_of

    with pytest.raises(UsageError, match="is for models"):
        rows_of("scores", **{"available": False, "weights_dir": None, **flags})
