"""One name has one meaning: no two classes of the package share theirs, and no file is too long to read."""

import ast
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "crossgraft"
MOST_LINES = 500


def test_no_class_name_is_used_twice():
    names = Counter(
        node.name
        for path in SOURCE.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    assert len(names) > 200
    assert [name for name, number in names.items() if number > 1] == []


def test_no_file_is_too_long():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE.rglob("*.py")}
    assert {str(path.relative_to(SOURCE)): lines for path, lines in lengths.items() if lines > MOST_LINES} == {}
