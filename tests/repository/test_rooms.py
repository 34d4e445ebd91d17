"""Every folder has its place among the layers; a new room on top of all others needs none."""

import re
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "src" / "crossgraft"
CONTRACTS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def without_a_place(source, layers):
    """Folders and files that the layers do not name, and that are no room that nobody else imports."""
    named = {name.strip("() ") for layer in layers for name in layer.split("|")}
    there = {path.stem for path in source.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    left = []
    for name in sorted(there - named - {"__init__"}):
        others = [path for path in source.rglob("*.py") if path.parts[len(source.parts)] != name]
        uses = re.compile(rf"crossgraft\.{name}\b")
        imported = [path for path in others if path != source / "__init__.py" and uses.search(path.read_text("utf-8"))]
        options = source / name / "options.py"
        if imported or not options.exists() or "COMMAND = " not in options.read_text("utf-8"):
            left.append(name)
    return left


@pytest.fixture
def layers():
    return CONTRACTS[0]["layers"]


def test_every_folder_has_its_place(layers):
    assert without_a_place(SOURCE, layers) == []


def test_a_noun_and_a_room_that_others_use_need_one(tmp_path):
    for name, text in {"describe": "COMMAND = 1", "noun": "", "used": "COMMAND = 1", "user": "COMMAND = 1"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
        (tmp_path / name / "options.py").write_text(text)
    (tmp_path / "user" / "verb.py").write_text("from crossgraft.used.verb import use\n")
    assert without_a_place(tmp_path, ["user"]) == ["noun", "used"]


def test_no_contract_has_an_exception():
    assert [contract["name"] for contract in CONTRACTS if "ignore_imports" in contract] == []
