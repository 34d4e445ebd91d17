"""The command that a page prints is what a shell understands, and from Python it is a call."""

import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest

from crossgraft.audit.options import AuditOptions
from crossgraft.rank.options import RankOptions
from crossgraft.running.command_line import said_again, typed_command
from crossgraft.tune.options import TuneOptions


@dataclass
class SomeObject:
    """What only a program has."""

    inside: list[int] = field(default_factory=list)


def line(options, *inputs, kind=TuneOptions, verb="tune", out="run", whole=False, **values):
    with typed_command():
        return said_again(verb, "fine_tune", inputs, values, kind, out=out, whole=whole)


@pytest.mark.parametrize("name", ["my images", "it's mine", 'a "b"', "$HOME; rm -rf", "ä\\b", "-600,1500"])
def test_a_shell_reads_every_name_as_it_was_typed(name):
    words = shlex.split(line(None, name, model=name, label_column=name, out=name))
    assert words == ["crossgraft", "tune", name, "--label-column", name, "--model", name, "--out", name] or words == [
        "crossgraft", "tune", name, "--model", name, "--label-column", name, "--out", name,
    ]  # fmt: skip


def test_only_what_was_said_is_said_again():
    values = {"model": "a", "epochs": 3, "flip": False, "store": True, "workers": 2, "device": "auto", "overwrite": True}
    said = line(None, "data", **values)
    assert set(shlex.split(said)[3:]) == {"--model", "a", "--epochs", "3", "--no-flip", "--workers", "2", "--out", "run"}


def test_several_values_are_one_word_or_several_flags():
    said = line(None, "data", kind=RankOptions, verb="rank", scores=["logme", "nce"], allow_code=["a b.py", "c.py"])
    assert "--scores logme,nce" in said
    assert "--code 'a b.py' --code c.py" in said


def test_folders_of_absolute_paths_are_left_out():
    said = line(None, "in here/images", model="/home/jane/w.safetensors", out=Path("/home/jane/run"))
    assert shlex.split(said) == ["crossgraft", "tune", "in here/images", "--model", "…/w.safetensors", "--out", "…/run"]


def test_the_terminal_that_paths_were_typed_at_has_them_whole():
    given = {"model": Path("/home/jane/w.safetensors"), "allow_code": ["/a/x.py", "/b/x.py"], "split": "/a b/s.json"}
    said = line(None, "/home/jane/my images", out="/runs/x", whole=True, **given)  # two files have one name
    assert "--code /a/x.py --code /b/x.py" in said
    assert sorted(shlex.split(said)[2:]) == sorted(
        [
            *("/home/jane/my images", "--model", "/home/jane/w.safetensors", "--out", "/runs/x"),
            *("--code", "/a/x.py", "--code", "/b/x.py", "--split", "/a b/s.json"),
        ]
    )


def test_from_python_it_is_a_call():
    values = {"model": Path("w's.safetensors"), "epochs": 3, "grid": {"learning_rate": [0.1, 0.01]}, "workers": 1}
    values |= {"regularizer": [SomeObject()], "overwrite": True, "label_column": None}
    said = said_again("tune", "fine_tune", [SomeObject()], values, TuneOptions, out=Path("a b"))
    called = {}
    some_object = SomeObject()
    regularizer = {"list": [some_object]}

    class Crossgraft:
        @staticmethod
        def fine_tune(*inputs, **keywords):
            called.update(keywords, inputs=inputs)

    eval(said, {"crossgraft": Crossgraft, "some_object": some_object, **regularizer})
    assert called["inputs"] == (some_object,)
    assert (called["model"], called["epochs"], called["out"]) == ("w's.safetensors", 3, "a b")
    assert called["grid"] == {"learning_rate": [0.1, 0.01]} and called["workers"] == 1
    assert "overwrite" not in called and "label_column" not in called


def test_data_that_a_program_holds_are_no_path():
    values = {"data": pd.DataFrame({"image": ["a.png"]}), "confounders": "gamma"}
    assert (
        line(None, "m", kind=AuditOptions, verb="audit", **values)
        == "crossgraft audit m --data DATA --confounder gamma --out run"
    )
    call = said_again("audit", "audit_model", ["m"], values, AuditOptions, out="run")
    assert call == "crossgraft.audit_model('m', data=data_frame, confounders='gamma', out='run')"
