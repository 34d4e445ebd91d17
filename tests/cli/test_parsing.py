"""How words become values, and what is said about words that cannot."""

from pathlib import Path

import pytest

from crossgraft.cli.call import parse
from crossgraft.errors import UsageError
from crossgraft.options.command import COMMANDS


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        ("x", {}),
        ("--quiet x --json", {"quiet": True, "json": True}),
        ("x --epochs 3 --epochs=4", {"epochs": 4}),
        ("x --flip --no-flip", {"flip": False}),
        ("x --no-store", {"store": False}),
        ("x --code a.py --allow-code b.py,c.py", {"allow_code": ["a.py", "b.py,c.py"]}),
        ("x --regularizer l2_sp:alpha=0.1 --regularizer bss", {"regularizer": ["l2_sp:alpha=0.1", "bss"]}),
        ("x --grid learning_rate=1e-3,1e-4", {"grid": ["learning_rate=1e-3,1e-4"]}),
        ("x --learning-rate -1e-3", {"learning_rate": -1e-3}),
        ("x --window -160,240", {"window": "-160,240"}),
        ("x --class-weights -1", {"class_weights": "-1"}),
        ("x --group-column=--site", {"group_column": "--site"}),
        ("x --out runs/a --config c.yaml", {"out": Path("runs/a"), "config": Path("c.yaml")}),
        ("x --class-names ./names.txt", {"class_names": Path("names.txt")}),
        ("x --subgroups a,b --precision 32", {"subgroups": "a,b", "precision": "32"}),
        ("x --optimizer sgd --resize-policy pad", {"optimizer": "sgd", "resize_policy": "pad"}),
    ],
)
def test_words_become_values(words, typed):
    assert parse(COMMANDS.get("tune"), words.split()) == {"data": "x", **typed}


def test_a_flag_that_is_on_has_an_opposite_of_its_own_name():
    assert parse(COMMANDS.get("export"), ["run", "--public"]) == {"run": Path("run"), "private": False}
    assert parse(COMMANDS.get("export"), ["run", "--private"])["private"] is True


def test_inputs_are_words_without_flags():
    assert parse(COMMANDS.get("predict"), ["run", "--quiet", "images"]) == {"run": Path("run"), "images": "images", "quiet": True}
    assert parse(COMMANDS.get("report"), ["a", "b", "--out", "c"])["runs"] == [Path("a"), Path("b")]
    assert parse(COMMANDS.get("check"), ["--", "-5"]) == {"data": "-5"}
    assert parse(COMMANDS.get("check"), ["@file"]) == {"data": "@file"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("tune", "Missing argument DATA."),
        ("predict run", "Missing argument IMAGES."),
        ("report", "Missing argument RUNS."),
        ("tune x y", "Unexpected argument: y."),
        ("tune x --eposh 3", "Unknown option: --eposh. Did you mean --epochs"),
        ("tune x --no-flp", "Unknown option: --no-flp. Did you mean --no-flip"),
        ("tune x --no-quiet", "Unknown option: --no-quiet."),
        ("check x --private", "Unknown option: --private."),
        ("tune x --epochs three", "--epochs must be a whole number, not 'three'."),
        ("tune x --epochs 1.5", "--epochs must be a whole number, not '1.5'."),
        ("tune x --epochs", "--epochs needs a value."),
        ("tune x --model --quiet", "--model needs a value, but --quiet follows."),
        ("tune x --learning-rate fast", "--learning-rate must be a number, not 'fast'."),
        ("tune x --devices 0", "--devices must be at least 1, not 0."),
        ("tune x --folds 1", "--folds must be at least 2, not 1."),
        ("tune x --fold -1", "--fold must be at least 0, not -1."),
        ("tune x --optimizer SGD", "Unknown value of --optimizer: SGD. Did you mean sgd?"),
        ("list score", "Unknown value of WHAT: score. Did you mean scores"),
        ("tune x --quiet=perhaps", "Invalid value for --quiet"),
    ],
)
def test_wrong_words_are_usage_errors_that_say_where_to_look(words, message):
    name, *rest = words.split()
    with pytest.raises(UsageError) as raised:
        parse(COMMANDS.get(name), rest)
    assert str(raised.value).startswith(message)
    assert str(raised.value).endswith(f" Try: crossgraft {name} --help.")


def test_a_file_that_says_several_seeds_needs_several_ways(tmp_path, crossgraft):
    (tmp_path / "c.yaml").write_text("model: resnet18\nseeds: 2\n")
    outcome = crossgraft("tune", "digits", "--config", tmp_path / "c.yaml")
    assert (outcome.code, "Give --compare too" in outcome.err) == (2, True)


def test_a_layer_is_drawn_for_a_comparison_only(crossgraft):
    outcome = crossgraft("tune", "digits", "--model", "x", "--layer-pca", "auto")
    assert (outcome.code, "in each way of --compare" in outcome.err) == (2, True)


def test_published_results_take_no_configuration(tmp_path, crossgraft):
    (tmp_path / "c.yaml").write_text("seed: 1\n")
    outcome = crossgraft("rank", "--published", "itm", "--config", tmp_path / "c.yaml")
    assert (outcome.code, "cannot be used with --config" in outcome.err) == (2, True)
