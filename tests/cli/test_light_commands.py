"""Commands that train nothing import none of the packages that take seconds."""

import subprocess
import sys

import pytest

from support.tiny import make_images

HEAVY = ("torch", "timm", "torchvision", "pandas", "sklearn", "scipy.stats")
SAY = """
import sys
from crossgraft.cli.main import main
code = main(sys.argv[2:])
print(code, *(name for name in sys.argv[1].split(",") if name in sys.modules), file=sys.stderr)
"""

SAY_FROZEN = """
import gc, sys
from crossgraft.cli.main import main
main(sys.argv[1:])
print(gc.isenabled(), gc.get_freeze_count(), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("light")
    make_images(made / "images", {"benign": 6, "malignant": 6})
    assert run(made, ["check", "images", "--out", "run"]).returncode == 0
    return made


def run(folder, words, heavy=HEAVY):
    words = [sys.executable, "-c", SAY, ",".join(heavy), *words]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def test_what_a_command_imports_is_not_searched_for_cycles(folder):
    words = [sys.executable, "-c", SAY_FROZEN, "check", "images", "--out", "frozen"]
    is_on, number = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stderr.split()[-2:]
    assert is_on == "True"
    assert int(number) > 10_000


OTHER_PAGES = ("crossgraft.audit.page", "crossgraft.tune.page", "crossgraft.rank.page")
"""A command writes a page of its own kind, and imports no other."""


@pytest.mark.parametrize(
    "words",
    [
        ["check", "images", "--out", "another"],
        ["report", "run"],
        ["split", "images", "--holdout", "0.2", "--out", "split.json"],
        ["edit", "images", "--with", "tag:0.5", "--out", "edited"],
    ],
    ids=lambda words: words[0],
)
@pytest.mark.xdist_group("light commands")
def test_no_heavy_package_is_imported(folder, words):
    done = run(folder, words, HEAVY + OTHER_PAGES + (() if words[0] == "edit" else ("matplotlib",)))
    assert done.stderr.splitlines()[-1] == "0", done.stderr


def test_what_to_type_next_knows_every_command_where_the_command_line_was_not_imported():
    ask = "from crossgraft.options.command import COMMANDS\nprint(*COMMANDS.names())"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert {"rank", "report", "list", "completion"} <= set(done.stdout.split())
