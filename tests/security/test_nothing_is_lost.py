"""Commands that are killed, stopped or meet a full disk at random points: the same command again gives the same bits.

``CROSSGRAFT_POINTS`` is how many points the slow test draws; 30 by default.
"""

import json
import os
import random
import re
import signal

import pandas as pd
import pytest

from support import forked
from support.tiny import make_workspace

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group(forked.GROUP),  # all of them are run at once, for all tests of this file
    pytest.mark.skipif(not hasattr(os, "fork"), reason="disturbs forks of one process"),
]

DRAWN = random.Random("nothing is lost")
POINTS = int(os.environ.get("CROSSGRAFT_POINTS", "30"))
COMMON = ["--workers", "1", "--device", "cpu", "--quiet"]
OWN = ["--code", "tiny_models:tiny"]
TUNE = ["tune", "images", "--model", "tiny_models:tiny", "--epochs", "2", *COMMON]
FINISHED = [[*TUNE, "--out", "full", "--no-store"], [*TUNE, "--method", "linear", "--out", "linear", "--no-store"]]
COMMANDS = {
    "tune": [*TUNE, "--regularizer", "repsim:preset=paper", "--checkpoint-every", "1", "--out", "run"],
    "rank": ["rank", "images", "--models", "zoo.yaml", *OWN, "--cache-dir", "cache", "--out", "run", *COMMON],
    "export": ["export", "full", "--format", "torch", *OWN, "--out", "run", "--quiet"],
    "interpolate": ["interpolate", "full", "linear"],
}
SHARES = {"tune": 12, "rank": 9, "export": 6, "interpolate": 3}
KINDS = ("kill", "stop", "full")
STATES = {  # of run.json, where the command has come as far as writing one
    "kill": (None, "running", "done"),
    "stop": (None, "interrupted", "done"),
    "full": (None, "running", "failed", "done"),
}
STORES = (None, None, "read-only", "full")
COSTS = re.compile("second|_at$|peak_bytes|resumed|from_cache")
CACHES = ("cache/", "store/moments/")


def drawn(number):
    """So many scenarios by name: a command, how its first attempt is disturbed, and perhaps its second."""
    names = [name for name, share in SHARES.items() for _ in range(share)]
    return {
        f"{place:02d}": {
            "command": name,
            "attempts": [
                (KINDS[(place + again) % len(KINDS)], DRAWN.random(), DRAWN.choice(STORES))
                for again in range(DRAWN.choice((1, 1, 2)))
            ],
        }
        for place, name in enumerate(names[round(place * len(names) / number)] for place in range(number))
    }


SCENARIOS = drawn(POINTS)


def disturbances(kind, share, store):
    return [(".", kind, share), *([] if store is None else [("store", store, 0.0)])]


def plan(root):
    """What is run: what all begin with, each command undisturbed, then every scenario and its command again."""
    base = str(root / "base")
    yield from ({"name": "base", "folder": base, "command": command, "warm up": True} for command in FINISHED)
    for name, command in COMMANDS.items():
        folder = str(root / f"warm {name}")
        yield {"name": "warm", "folder": folder, "copy": base, "command": command, "warm up": True}
        folder = str(root / f"whole {name}")
        yield {"name": f"whole {name}", "folder": folder, "copy": base, "command": command, "disturbances": [(".", None, 0)]}
    for name, scenario in SCENARIOS.items():
        common = {"name": name, "folder": str(root / name), "command": COMMANDS[scenario["command"]]}
        for number, attempt in enumerate(scenario["attempts"]):
            yield {**common, "copy": None if number else base, "disturbances": disturbances(*attempt)}
        yield {**common, "disturbances": []}


@pytest.fixture(scope="session")  # other files may come between the tests of this one
def outcomes(tmp_path_factory):
    """How each attempt ended, by name of its scenario; all of them in forks of one process that imports torch once."""
    root = tmp_path_factory.mktemp("disturbed")
    modules, base = root / "modules", root / "base"
    modules.mkdir()
    base.mkdir()
    make_workspace(base)
    (base / "tiny_models.py").rename(modules / "tiny_models.py")  # one module for the copies of the folder
    scenarios = list(plan(root))
    (root / "scenarios.json").write_text(json.dumps(scenarios))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(modules)}
    words = ("support.disturbed_commands", str(root / "scenarios.json"))
    done = forked.run(*words, environment=environment, cwd=root, timeout=580)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    by_name = {}
    for scenario, outcome in zip(scenarios, found, strict=True):
        by_name.setdefault(scenario["name"], []).append(outcome)
    return root, by_name


def content(path):
    """What has to be the same: everything but what it cost and where it was gone on with, and pages, which show that."""
    if path.suffix == ".json":
        return without_costs(json.loads(path.read_text()))
    if path.suffix == ".csv":
        table = pd.read_csv(path)
        return table[[name for name in table if not COSTS.search(name)]].to_csv()
    return "" if path.suffix == ".html" else path.read_bytes()


def without_costs(value):
    if isinstance(value, dict):
        return {name: without_costs(each) for name, each in value.items() if not COSTS.search(name)}
    return [without_costs(each) for each in value] if isinstance(value, list) else value


def tree(folder):
    """Results and caches: files by their names."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    caches = {name for name in files if name.startswith(CACHES)}
    return {name: path for name, path in files.items() if name not in caches}, caches


def test_the_commands_end_well_when_nothing_disturbs_them(outcomes):
    _, found = outcomes
    for name in COMMANDS:
        (outcome,) = found[f"whole {name}"]
        assert (outcome["signal"], outcome["code"]) == (0, 0), outcome["said"]
        assert outcome["points"][0] >= 10


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_same_command_again_makes_up_for_everything(outcomes, name):
    root, found = outcomes
    command = SCENARIOS[name]["command"]
    *attempts, last = found[name]
    for (kind, _, _), outcome in zip(SCENARIOS[name]["attempts"], attempts, strict=True):
        ends_well(kind, outcome, command)
        assert outcome["state"] in STATES[kind], outcome
    (undisturbed,) = found[f"whole {command}"]
    if command == "interpolate":
        assert without_costs(json.loads(last["said"])) == without_costs(json.loads(undisturbed["said"]))
    elif command != "export" or not is_refused_as_done(last):
        assert (last["signal"], last["code"]) == (0, 0), last["said"]
    (whole, cached), (again, cached_again) = tree(root / f"whole {command}"), tree(root / name)
    assert again.keys() == whole.keys()
    assert cached_again <= cached, "a leftover"
    for file in whole:
        assert content(again[file]) == content(whole[file]), file


def is_refused_as_done(outcome):
    """The attempt was disturbed after the export had taken its place."""
    return outcome["code"] == 2 and "holds an export already" in outcome["said"]


def ends_well(kind, outcome, command):
    """In order, in one of the ways that docs/errors.md knows; a disturbance may also come too late to be met."""
    said, ended = outcome["said"], (outcome["signal"], outcome["code"])
    if is_refused_as_done(outcome):
        return
    assert "Traceback" not in said and "Internal error" not in said, said
    if kind == "kill":
        assert ended in ((signal.SIGKILL, None), (0, 0)), said
    elif kind == "stop" and command == "interpolate":  # a function of the library sets no handlers
        assert ended in ((signal.SIGTERM, None), (0, 0)), said
    elif kind == "stop":
        assert ended in ((0, 128 + signal.SIGTERM), (0, 0)), said
    else:
        assert ended in ((0, 0), (0, 1)), said
        assert ended == (0, 0) or "No space left" in said or "Read-only" in said, said
