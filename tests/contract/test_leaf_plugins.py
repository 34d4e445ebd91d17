"""Leaf plug-ins never import each other: each can be read, changed or removed alone."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
FEWEST = {
    "crossgraft/scores": 4,
    "crossgraft/data/sources": 4,
    "crossgraft/losses": 3,
    "crossgraft/tune/methods": 4,
    "crossgraft/tune/objectives": 4,
    "crossgraft/tune/regularizers": 1,
    "crossgraft/tune/batch_transforms": 3,
    "crossgraft/tune/feature_transforms": 1,
    "crossgraft/tune/augmentations": 3,
}
"""Folder of leaf plug-ins → files that are there at least. Metrics are no leaves: they share checks and evaluate each other."""


def imported_modules(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def siblings_imported_by(file, siblings):
    package = ".".join(file.parent.relative_to(SOURCE).parts)
    return {name for name in siblings if f"{package}.{name}" in set(imported_modules(file)) and name != file.stem}


@pytest.mark.parametrize("folder", FEWEST)
def test_leaf_plugins_do_not_import_each_other(folder):
    files = [file for file in sorted((SOURCE / folder).glob("*.py")) if not file.name.startswith("_")]
    assert len(files) >= FEWEST[folder]
    siblings = {file.stem for file in files}
    assert {file.stem: found for file in files if (found := siblings_imported_by(file, siblings))} == {}


def test_an_import_of_a_sibling_would_be_found():
    package_init = SOURCE / "crossgraft/scores/__init__.py"
    assert siblings_imported_by(package_init, {"logme", "leep"}) == {"logme", "leep"}


@pytest.mark.parametrize("folder", FEWEST)
def test_every_leaf_file_is_exported(folder):
    init = (SOURCE / folder / "__init__.py").read_text(encoding="utf-8")
    for file in (SOURCE / folder).glob("[!_]*.py"):
        assert f".{file.stem} import" in init, f"{file.name} is not exported in {folder}/__init__.py"
