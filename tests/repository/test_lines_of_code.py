"""recipes/lines_of_code.py counts what it says."""

import importlib
import subprocess
from collections import Counter
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

with pytest.MonkeyPatch.context() as on_path:
    on_path.syspath_prepend(REPOSITORY / "recipes")
    RECIPE = importlib.import_module("lines_of_code")

SOURCE = '''"""Of the module.

Two paragraphs.
"""

# a comment
LIMIT = 3  # code
"""Of the constant."""
TEXT = """
# no comment

"""


def double(x):
    """Of the function."""
    return 2 * x
'''


def git(folder, *arguments):
    identity = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_docstrings_and_comments_are_words_and_a_used_string_is_code():
    assert RECIPE.count(SOURCE) == Counter(code=7, words=7, blank=3)


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("src/crossgraft/data/medical/dicom.py", "crossgraft.data"),
        ("src/crossgraft/errors.py", "crossgraft"),
        ("tests/unit/data/test_dataset.py", "tests"),
    ],
)
def test_a_package_is_a_folder_of_crossgraft_or_the_first_folder(path, package):
    assert RECIPE.package_of(path) == package


def test_a_change_is_counted_against_a_revision_and_long_files_are_listed(tmp_path, monkeypatch, capsys):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_one.py").write_text("x = 1\n" * 500)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "First")
    (tmp_path / "tests" / "test_one.py").write_text("x = 1\n" * 499 + "\n# gone\n")
    (tmp_path / "tests" / "unknown.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    RECIPE.main(["HEAD"])
    head, *rows, long = capsys.readouterr().out.splitlines()
    assert head.split() == ["package", "code", "words", "blank"]
    assert [row.split() for row in rows] == [
        ["tests", "499", "(-1)", "1", "(+1)", "1", "(+1)"],
        ["all", "499", "(-1)", "1", "(+1)", "1", "(+1)"],
    ]
    assert long == "501 lines: tests/test_one.py"
    RECIPE.main([])
    assert capsys.readouterr().out.splitlines()[1].split() == ["tests", "499", "1", "1"]
