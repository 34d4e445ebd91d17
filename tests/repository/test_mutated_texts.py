"""Each text that ``tests/mutations.py`` breaks stands once in its file, and the tests that must notice are there."""

import runpy
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TABLES = sorted((TESTS / "broken_lines").glob("*.py"))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
def test_every_mutation_finds_its_text_and_its_tests(table):
    for named, mutations in runpy.run_path(str(table))["MUTATIONS"].items():
        assert [name for name in named.split() if not (TESTS / name.partition("::")[0]).exists()] == []
        for file, old, _ in mutations:
            text = (TESTS.parent / "src/crossgraft" / file).read_text(encoding="utf-8")
            assert text.count(old) == 1, (file, old)
