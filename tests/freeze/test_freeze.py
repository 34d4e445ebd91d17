"""The comparison notices what changes, and the quick commands do what they did when they were frozen."""

import copy
import platform
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from freeze import commands
from freeze.collecting import MOST_VALUES, OUT, PROSE, collect, reduced
from freeze.commands import COMMANDS, FINISHED_RUN, RESUMED, command_named, untouched
from freeze.comparing import differences, fingerprint, processor
from freeze.freeze import main, read
from freeze.scene import make_scene
from support import forked

FROZEN = Path(__file__).parent / "frozen.json.gz"
HASH, OTHER_HASH = "0123456789abcdef" * 4, "f123456789abcdef" * 4
VALUES = {
    "exit": 0,
    "files": {
        "report.json": {"cells": [{"score": "logme", "value": 0.25, "rank": 1, "low": None}], "kind": "ranking"},
        "scores.csv": {"columns": ["model", "value"], "rows": 2, "cells": {"model": ["a", "b"], "value": ["0.5", "0.25"]}},
        "model/weights.safetensors": {"tensors": 2, "structure": HASH, "content": HASH},
        f"models/{HASH[:20]}.json": {"key": HASH[:20]},
        f"cache/features/01/{HASH}/manifest.json": {"key": HASH},
        "report.html": "<there>",
    },
}  # fmt: skip


def change_number(values):
    values["files"]["report.json"]["cells"][0]["value"] = 0.25000000000000006


def change_type(values):
    values["files"]["report.json"]["cells"][0]["rank"] = 1.0


def lose_interval(values):
    values["files"]["report.json"]["cells"][0]["low"] = 0.1


def change_cell(values):
    values["files"]["scores.csv"]["cells"]["value"][1] = "0.26"


def change_last_digits(values):
    values["files"]["scores.csv"]["cells"]["value"][1] = "0.2500000000000001"


def change_hash(values):
    values["files"]["model/weights.safetensors"]["content"] = OTHER_HASH


def lose_file(values):
    del values["files"]["scores.csv"]


def lose_page(values):
    del values["files"]["report.html"]


def lose_file_named_by_its_key(values):
    del values["files"][f"models/{HASH[:20]}.json"]


def rename_file(values):
    values["files"]["score.csv"] = values["files"].pop("scores.csv")


def add_key(values):
    values["files"]["report.json"]["cells"][0]["new"] = 1


def add_row(values):
    values["files"]["report.json"]["cells"].append({})


def change_name(values):
    values["files"]["report.json"]["kind"] = "tuning"


def change_exit(values):
    values["exit"] = 6


def change_key_of_a_file(values):
    values["files"][f"models/{OTHER_HASH[:20]}.json"] = values["files"].pop(f"models/{HASH[:20]}.json")


def change_key_of_features(values):
    values["files"][f"cache/features/f1/{OTHER_HASH}/manifest.json"] = {"key": OTHER_HASH}
    del values["files"][f"cache/features/01/{HASH}/manifest.json"]


ONLY_THERE = (change_number, change_last_digits, change_hash, change_key_of_a_file, change_key_of_features)
STRUCTURE = (lose_file, lose_page, lose_file_named_by_its_key, rename_file, add_key, add_row, change_exit)
EVERYWHERE = (*STRUCTURE, change_type, lose_interval, change_cell, change_name)


@pytest.mark.parametrize("change", [*ONLY_THERE, *EVERYWHERE])
def test_a_change_is_a_difference_on_the_machine_of_the_frozen_values(change):
    now = copy.deepcopy(VALUES)
    change(now)
    assert not differences("rank", VALUES, copy.deepcopy(VALUES), how="exact")
    assert differences("rank", VALUES, now, how="exact")


@pytest.mark.parametrize("change", EVERYWHERE)
def test_structure_and_large_changes_are_differences_on_any_machine(change):
    now = copy.deepcopy(VALUES)
    change(now)
    assert differences("rank", VALUES, now, how="close")


@pytest.mark.parametrize("change", ONLY_THERE)
def test_last_digits_and_hashes_are_not_compared_on_another_machine(change):
    now = copy.deepcopy(VALUES)
    change(now)
    assert not differences("rank", VALUES, now, how="close")


@pytest.mark.parametrize("change", STRUCTURE)
def test_shape_is_compared_where_rounding_is_no_small_change(change):
    now = copy.deepcopy(VALUES)
    change(now)
    assert differences("rank", VALUES, now, how="shape")


def test_a_difference_names_command_file_path_and_both_values():
    now = copy.deepcopy(VALUES)
    now["files"]["report.json"]["cells"][0]["value"] = 0.5
    (found,) = differences("rank", VALUES, now, how="exact")
    assert str(found) == "rank: report.json: cells[0].value: 0.25 → 0.5"


def test_what_is_kept_of_a_document():
    document = {"seconds": 1.5, "checks": [{"text": "All is well.", "severity": "passed"}], "name": "a b", "versions": {"a": "1"}}
    kept = {"seconds": OUT, "checks": [{"text": PROSE, "severity": "passed"}], "name": "a b", "versions": OUT}
    assert reduced(document) == kept
    numbers = [float(number) for number in range(MOST_VALUES + 1)]
    long, other = (reduced({"values": values})["values"] for values in (numbers, [*numbers[:-1], 50.5]))
    assert (long["length"], long["mean"]) == (51, 25.0)
    assert long["content"] != other["content"]


def test_every_number_of_a_table_is_kept_but_its_seconds(tmp_path):
    (tmp_path / "history.csv").write_text("job,val_loss,seconds,reason\nonly,0.25,1.5,not defined here\n")
    cells = {"job": ["only"], "val_loss": ["0.25"], "seconds": [OUT], "reason": [PROSE]}
    table = {"columns": ["job", "val_loss", "seconds", "reason"], "rows": 1, "cells": cells}
    assert collect(tmp_path) == {"history.csv": table}


def test_weights_are_the_same_whatever_their_metadata_say(tmp_path):
    import numpy as np
    from safetensors.numpy import save_file

    weights = {"a": np.arange(3.0), "b": np.ones((2, 2), np.float32)}
    for name, array, words in (("a", weights["a"], "1"), ("b", weights["a"], "2"), ("c", weights["a"] + 1e-15, "1")):
        save_file({**weights, "a": array}, tmp_path / f"{name}.safetensors", metadata={"version": words})
    a, b, c = collect(tmp_path).values()
    assert a == b
    assert (a["structure"], a["content"] == c["content"]) == (c["structure"], False)


def test_processors_with_the_same_instructions_are_told_apart(tmp_path):
    described = tmp_path / "cpuinfo"
    lines = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: {}\nmodel name\t: AMD EPYC\n"
    described.write_text(lines.format(2), encoding="utf-8")
    assert processor(described) == "AuthenticAMD 26 2"
    described.write_text(lines.format(17), encoding="utf-8")
    assert processor(described) == "AuthenticAMD 26 17"
    assert processor(tmp_path / "none") == platform.processor()


def test_frozen_values_are_those_of_all_commands_that_ended_well():
    frozen = read(FROZEN)
    assert set(frozen["commands"]) == {command.name for command in COMMANDS}
    assert all(values["exit"] == 0 for values in frozen["commands"].values())
    assert frozen["commands"][RESUMED]["untouched"] == {"only/result.json": True, "only/weights.safetensors": True}
    assert set(frozen["fingerprint"]) == set(fingerprint())
    keys = {"run.json": "config_hash", "jobs/only/result.json": "key"}
    assert all(frozen["commands"]["tune-full"]["files"][file][key] for file, key in keys.items())


def run_forked(words, *, cwd, env, timeout, **_):
    assert words[1:3] == ["-m", "crossgraft"]
    return forked.run("crossgraft", *words[3:], environment=env, cwd=cwd, timeout=timeout, figures=True)


@pytest.mark.slow
@pytest.mark.xdist_group(forked.GROUP)
@pytest.mark.parametrize("command", [command.name for command in COMMANDS if command.is_quick])
def test_a_quick_command_does_what_it_did(command, monkeypatch, capsys):
    monkeypatch.setattr(commands, "subprocess", SimpleNamespace(run=run_forked))
    monkeypatch.setattr("sys.argv", ["freeze.py", "compare", str(FROZEN), "--only", command])
    assert main() == 0, capsys.readouterr().out


@pytest.fixture
def scene(tmp_path, monkeypatch):
    """The current folder, with all that a frozen command begins with."""
    make_scene(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "tiny_models", raising=False)
    yield tmp_path
    sys.modules.pop("tiny_models", None)


@pytest.mark.slow
def test_a_run_directory_of_the_frozen_code_is_gone_on_with(scene, capsys):
    """Its training is read back, not made again; in this process, which has imported everything already."""
    from crossgraft.cli.main import main as crossgraft

    shutil.copytree(FINISHED_RUN, scene / RESUMED)
    assert crossgraft([*command_named(RESUMED).words, "--out", RESUMED]) == 0, capsys.readouterr().err
    assert set(untouched(FINISHED_RUN / "jobs", scene / RESUMED / "jobs").values()) == {True}
    assert (scene / RESUMED / "model" / "weights.safetensors").is_file()
