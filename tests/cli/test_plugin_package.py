"""Plug-ins from an installable package of their own are listed and used without a change to crossgraft."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crossgraft.cli.main import main
from support import forked
from support.tiny import make_workspace

pytestmark = pytest.mark.xdist_group(forked.GROUP)  # it is built and installed once
PACKAGE = Path(__file__).parents[1] / "plugin_package"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The stranger, installed into a folder of its own, not into the environment of the tests."""
    target = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source") / "stranger"
    subprocess.run(["cp", "-r", str(PACKAGE), str(source)], check=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*command, "--no-build-isolation", "--target", str(target), str(source)], check=True)
    path = [str(target), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


COMMANDS = {
    "scores": ("list", "scores"),
    "regularizers": ("list", "regularizers"),
    "objectives": ("list", "objectives"),
    "feature-transforms": ("list", "feature-transforms"),
    "augmentations": ("list", "augmentations"),
    "schedules": ("list", "schedules"),
    "presets": ("list", "presets"),
    "ranking": (
        *("rank", "images", "--models", "zoo.yaml", "--code", "tiny_models.py"),
        *("--scores", "logme,class_spread", "--by", "class_spread", "--quiet", "--workers", "1"),
    ),
    "tuning": (
        *("tune", "images", "--model", "tiny_models:tiny", "--epochs", "1", "--quiet", "--workers", "1"),
        *("--regularizer", "quiet_logits:0.5", "--augmentation", "dimming:0.2", "--preset", "gentle:1"),
        *("--objective", "hardest_half:0.25", "--feature-transform", "loud_blocks"),
    ),
}
IN_ONE_PROCESS = """
import json, sys
from crossgraft.cli.main import main

for words in json.loads(sys.argv[1]):
    assert main([*words, "--json"]) == 0, words
from crossgraft.testing import check_augmentation, check_feature_transform, check_objective, check_regularizer
from crossgraft.tune import AUGMENTATIONS, FEATURE_TRANSFORMS, OBJECTIVES, REGULARIZERS

check_regularizer(REGULARIZERS.get("quiet_logits")(0.5))
check_objective(OBJECTIVES.get("hardest_half")(0.5))
check_feature_transform(FEATURE_TRANSFORMS.get("loud_blocks")())
check_augmentation(AUGMENTATIONS.get("dimming")())
"""


@pytest.fixture(scope="module")
def told(installed, tmp_path_factory):
    """What each command says, all of them in one process that imports everything once."""
    folder = tmp_path_factory.mktemp("with the stranger")
    make_workspace(folder)
    (folder / "program.py").write_text(IN_ONE_PROCESS)
    words = (folder / "program.py", json.dumps(list(COMMANDS.values())))
    done = forked.run(*words, environment=installed, cwd=folder, timeout=500, own_copy=True)
    assert done.returncode == 0, done.stderr
    rest, answers = done.stdout, []
    while rest:
        answer, end = json.JSONDecoder().raw_decode(rest)
        answers.append(answer)
        rest = rest[end:].lstrip()
    return dict(zip(COMMANDS, answers, strict=True))


@pytest.mark.slow
def test_the_score_is_listed_with_its_origin(told, capsys):
    stranger = next(row for row in told["scores"]["scores"] if row["score"] == "class_spread")
    assert stranger["from"] == "crossgraft-stranger"
    assert stranger["needs"] == "features, labels"
    assert main(["list", "scores", "--json"]) == 0
    without = json.loads(capsys.readouterr().out)["scores"]
    assert "logme" in [row["score"] for row in without] and "class_spread" not in [row["score"] for row in without]


@pytest.mark.slow
def test_the_score_takes_part_in_a_ranking(told):
    record = told["ranking"]
    cells = [cell for cell in record["cells"] if cell["score"] == "class_spread"]
    assert len(cells) == 4  # two models, two random-weight controls
    assert all(0 <= cell["value"] <= 1 and cell["low"] is not None for cell in cells)
    assert record["primary_score"] == "class_spread"


@pytest.mark.slow
def test_plugins_of_fine_tuning_are_listed_keep_their_promises_and_train(told):
    own = {"regularizers": "quiet_logits", "augmentations": "dimming", "schedules": "halving", "presets": "gentle"}
    own |= {"objectives": "hardest_half", "feature-transforms": "loud_blocks"}
    for slot, name in own.items():
        assert next(row for row in told[slot][slot.replace("-", "_")] if row["name"] == name)["from"] == "crossgraft-stranger"
    record = told["tuning"]
    spelled = {"quiet_logits:strength=0.5", "dimming:depth=0.2", "hardest_half:share=0.25", "loud_blocks"}
    assert spelled <= {plugin["spelling"] for plugin in record["plugins"]}
    assert all(row["terms"]["quiet_logits/logits"] > 0 for row in record["history"])
    assert all(row["terms"]["hardest_half/largest"] > 0 for row in record["history"])
    assert all(row["train_loss"] == pytest.approx(sum(row["terms"].values())) for row in record["history"])
    settings = record["plan"]["settings"]
    assert settings["preset"] == "gentle:every=1" and settings["schedule"].startswith("halving:every=1")
    assert [row["learning_rate"] for row in record["history"]] == [2e-4 / 2]  # of the second and last step
