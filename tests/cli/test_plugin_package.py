"""Plug-ins from an installable package of their own are listed and used without a change to crossgraft."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crossgraft.cli.main import main

pytestmark = pytest.mark.xdist_group("plug-in package")  # it is built and installed once
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


def crossgraft(environment, *arguments):
    command = [sys.executable, "-m", "crossgraft", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_the_score_is_listed_with_its_origin(installed, capsys):
    rows = json.loads(crossgraft(installed, "list", "scores", "--json"))["scores"]
    stranger = next(row for row in rows if row["score"] == "class_spread")
    assert stranger["from"] == "crossgraft-stranger"
    assert stranger["needs"] == "features, labels"
    assert main(["list", "scores", "--json"]) == 0
    without = json.loads(capsys.readouterr().out)["scores"]
    assert "logme" in [row["score"] for row in without] and "class_spread" not in [row["score"] for row in without]


@pytest.mark.slow
def test_the_score_takes_part_in_a_ranking(installed, workspace):
    environment = {**installed, "PYTHONPATH": os.pathsep.join([installed["PYTHONPATH"], str(workspace)])}
    flags = [
        "--models",
        "zoo.yaml",
        "--code",
        "tiny_models.py",
        "--scores",
        "logme,class_spread",
        "--by",
        "class_spread",
        "--json",
        "--quiet",
    ]
    record = json.loads(crossgraft(environment, "rank", "images", *flags, "--workers", "1"))
    cells = [cell for cell in record["cells"] if cell["score"] == "class_spread"]
    assert len(cells) == 4  # two models, two random-weight controls
    assert all(0 <= cell["value"] <= 1 and cell["low"] is not None for cell in cells)
    assert record["primary_score"] == "class_spread"


@pytest.mark.slow
def test_plugins_of_fine_tuning_are_listed_keep_their_promises_and_train(installed, workspace):
    in_one_process = (
        "from crossgraft.cli.main import main\n"
        "for slot in ('regularizers', 'augmentations'):\n"
        "    assert main(['list', slot, '--json']) == 0\n"
        "from crossgraft.testing import check_augmentation, check_regularizer\n"
        "from crossgraft.tune import AUGMENTATIONS, REGULARIZERS\n"
        "check_regularizer(REGULARIZERS.get('quiet_logits')(0.5))\n"
        "check_augmentation(AUGMENTATIONS.get('dimming')())\n"
    )
    command = [sys.executable, "-c", in_one_process]
    out = subprocess.run(command, env=installed, capture_output=True, text=True, check=True).stdout
    for slot, name in (("regularizers", "quiet_logits"), ("augmentations", "dimming")):
        listed, end = json.JSONDecoder().raw_decode(out)
        out = out[end:].lstrip()
        assert next(row for row in listed[slot] if row["name"] == name)["from"] == "crossgraft-stranger"
    environment = {**installed, "PYTHONPATH": os.pathsep.join([installed["PYTHONPATH"], str(workspace)])}
    flags = ["--regularizer", "quiet_logits:0.5", "--augmentation", "dimming:0.2", "--epochs", "1", "--json", "--quiet"]
    record = json.loads(
        crossgraft(environment, "tune", "images", "--model", "tiny_models:tiny", *flags, "--workers", "1")
    )
    assert {"quiet_logits:strength=0.5", "dimming:depth=0.2"} <= {plugin["spelling"] for plugin in record["plugins"]}
    assert all(row["terms"]["quiet_logits/logits"] > 0 for row in record["history"])
