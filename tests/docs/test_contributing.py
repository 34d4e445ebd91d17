"""CONTRIBUTING's steps for a plug-in of another package, followed to the letter."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.tiny import TINY_MODELS, make_workspace

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FOLLOW = """
import importlib, shlex, sys
from crossgraft.cli.main import main

tests = importlib.import_module("test_my_package")
for name in [name for name in vars(tests) if name.startswith("test_")]:
    getattr(tests, name)()
    print("passed", name)
for line in sys.stdin.read().splitlines():
    print(f"$ {line}", flush=True)
    assert main([*shlex.split(line)[1:], "--quiet"] if " list " not in line else shlex.split(line)[1:]) == 0, line
"""


@pytest.fixture(scope="module")
def blocks():
    return BLOCK.findall(CONTRIBUTING.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def said(blocks, tmp_path_factory):
    """What the commands print, and the record of the fine-tuning, in an environment in which the package counts as installed."""
    folder = tmp_path_factory.mktemp("contributor")
    for language, text in blocks:
        if language:
            path, content = re.match(r"# (\S+)\n(.*)", text, re.DOTALL).groups()
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(content, encoding="utf-8")
    install(folder)
    make_workspace(folder)
    (folder / "images").rename(folder / "my_images")
    (folder / "my_nets.py").write_text(TINY_MODELS)
    (folder / "zoo.yaml").write_text((folder / "zoo.yaml").read_text().replace("tiny_models", "my_nets"))
    (commands,) = [text for language, text in blocks if not language and "my_images" in text]
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "100"}
    options = {"env": environment, "cwd": folder, "capture_output": True, "text": True, "check": False}
    done = subprocess.run([sys.executable, "-c", FOLLOW], input=commands, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("$ crossgraft") == len(commands.splitlines())
    return done.stdout, json.loads((folder / "runs" / "tune-my_images" / "report.json").read_text())


def install(folder):
    """Write what `pip install` makes of the project file."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    facts = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in names.items())
        for group, names in project["entry-points"].items()
    ]
    (facts / "entry_points.txt").write_text("\n".join(points))


def test_every_file_is_written(blocks):
    assert [language for language, _ in blocks if language] == ["python", "python", "toml", "python"]


@pytest.mark.slow
def test_the_plugins_keep_their_promises(said):
    assert re.findall(r"^passed (\w+)", said[0], re.MULTILINE) == ["test_the_score", "test_the_regulariser"]


@pytest.mark.slow
def test_the_names_are_listed_ranked_by_and_trained_with(said):
    scores, regularizers, ranking, tuning = re.split(r"^\$ ", said[0], flags=re.MULTILINE)[1:]
    assert re.search(r"class_margin +Class margin +features, labels +no +my-package", scores)
    assert re.search(r"small_features +Small features +.*my-package", regularizers)
    assert "Class margin" in ranking and "narrow" in ranking
    assert "Balanced accuracy" in tuning
    assert "small_features:strength=0.5" in [plugin["spelling"] for plugin in said[1]["plugins"]]
    assert all(row["terms"]["small_features/size"] > 0 for row in said[1]["history"])
