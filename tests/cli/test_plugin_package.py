"""Plug-ins from an installable package of their own are listed and used without a change to crossgraft."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
def test_the_score_is_listed_with_its_origin(installed):
    rows = json.loads(crossgraft(installed, "list", "scores", "--json"))["scores"]
    stranger = next(row for row in rows if row["score"] == "class_spread")
    assert stranger["from"] == "crossgraft-stranger"
    assert stranger["needs"] == "features, labels"
    without = json.loads(crossgraft(os.environ, "list", "scores", "--json"))["scores"]
    assert "class_spread" not in [row["score"] for row in without]


@pytest.mark.slow
def test_the_score_takes_part_in_a_ranking(installed, workspace):
    environment = {**installed, "PYTHONPATH": os.pathsep.join([installed["PYTHONPATH"], str(workspace)])}
    flags = [
        "--models",
        "zoo.yaml",
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
    for slot, name in (("regularizers", "quiet_logits"), ("augmentations", "dimming")):
        rows = json.loads(crossgraft(installed, "list", slot, "--json"))[slot]
        assert next(row for row in rows if row["name"] == name)["from"] == "crossgraft-stranger"
    promises = (
        "from crossgraft.testing import check_augmentation, check_regularizer\n"
        "from crossgraft.tune import AUGMENTATIONS, REGULARIZERS\n"
        "check_regularizer(REGULARIZERS.get('quiet_logits')(0.5))\n"
        "check_augmentation(AUGMENTATIONS.get('dimming')())\n"
    )
    subprocess.run([sys.executable, "-c", promises], env=installed, check=True)
    environment = {**installed, "PYTHONPATH": os.pathsep.join([installed["PYTHONPATH"], str(workspace)])}
    flags = ["--regularizer", "quiet_logits:0.5", "--augmentation", "dimming:0.2", "--epochs", "1", "--json", "--quiet"]
    record = json.loads(
        crossgraft(environment, "tune", "images", "--model", "tiny_models:tiny", *flags, "--workers", "1")
    )
    assert {"quiet_logits:strength=0.5", "dimming:depth=0.2"} <= {plugin["spelling"] for plugin in record["plugins"]}
    assert all(row["terms"]["quiet_logits/logits"] > 0 for row in record["history"])
