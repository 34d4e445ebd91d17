"""What was typed, and the next command with the same arguments."""

import pytest

from crossgraft.options.command import TypedCommand

RANKED = TypedCommand.read(
    "crossgraft rank 'my images' --models zoo.yaml --label-column 'a b' --batch-size 8 --allow-download --seed 3 --out runs/r"
)


def test_a_line_is_taken_apart():
    assert (RANKED.verb, RANKED.data, RANKED.out) == ("rank", "my images", "runs/r")
    assert RANKED.value("--label-column") == "a b"
    assert (RANKED.has("--allow-download"), RANKED.value("--allow-download")) == (True, None)
    assert TypedCommand.read("crossgraft demo --out d").data == "DATA"


@pytest.mark.parametrize("line", ["", "crossgraft", "echo x", "crossgraft rank 'x", "rank x"])
def test_what_is_no_command_is_nothing(line):
    assert TypedCommand.read(line) == TypedCommand()


def test_the_next_command_gets_what_means_the_same_to_both():
    line = RANKED.then("tune", RANKED.data, flags=[("--model", "m"), ("--seed", "4")])
    assert line == "crossgraft tune 'my images' --model m --seed 4 --label-column 'a b' --allow-download"
    assert "--batch-size" not in line  # images of a training step, not of a pass
    assert RANKED.then("check", "x").startswith("crossgraft check x --label-column 'a b'")
    assert RANKED.then("rank", "x", carried=[]) == "crossgraft rank x"


def test_the_same_command_goes_into_a_directory_of_its_own():
    assert RANKED.again(("--seed", "9"), without=["--models"]) == (
        "crossgraft rank 'my images' --label-column 'a b' --batch-size 8 --allow-download --seed 9"
    )


@pytest.mark.parametrize(
    ("models", "name", "typed"),
    [
        ("a,b", "b", "b"),
        ("weights/b.safetensors,a", "b", "weights/b.safetensors"),
        ("package.networks:small,a", "small", "package.networks:small"),
        ("zoo.yaml", "b", "zoo.yaml:b"),
        ("zoo.yaml:b,a", "b", "zoo.yaml:b"),
        ("one.yaml,two.yml", "b", "ZOO.yaml:b"),
        ("zoo.yaml,b", "b", "b"),
        (None, "b", "b"),
    ],
)
def test_a_model_is_called_as_it_was_typed(models, name, typed):
    flags = () if models is None else (("--models", models),)
    assert TypedCommand("rank", ("x",), flags).model_called(name) == typed


@pytest.mark.parametrize(
    ("models", "name", "typed"),
    [
        ("weights", "b", "weights:b"),
        ("a,weights", "b", "weights:b"),
        ("a,weights", "a", "a"),
        ("c.safetensors,weights", "b", "weights:b"),
        ("weights,zoo.yaml", "b", "ZOO.yaml:b"),
    ],
)
def test_a_model_of_a_folder_is_called_by_both(models, name, typed):
    command = TypedCommand("rank", ("x",), (("--models", models),))
    assert command.model_called(name, among=["a", "b", "c"]) == typed


def test_a_path_that_begins_like_an_option_stays_a_path():
    typed = TypedCommand("check", ("-my images",))
    assert typed.then("rank", typed.data) == "crossgraft rank './-my images'"
    assert typed.again() == "crossgraft check './-my images'"
