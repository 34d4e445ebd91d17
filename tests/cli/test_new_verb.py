"""A verb is one folder: command, keywords, record, report and terminal follow, here and in a package of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import crossgraft
from crossgraft.options.command import COMMANDS
from support import forked
from support.tiny import make_images

TOY = Path(__file__).parents[1] / "toy_verb"
GLUE = ("crossgraft_describe/verb.py", "crossgraft_describe/options.py", "entry_points.txt")
"""Everything but what the verb is about."""
MOST_LINES = 60
DOCS = Path(__file__).parents[2] / "docs"
SOURCE = Path(crossgraft.__file__).parent


def package_of_its_own(site):
    """Installed beside this one, with entry points."""
    facts = site / "crossgraft_describe-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: crossgraft-describe\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text((TOY / "entry_points.txt").read_text())
    return [str(site), str(TOY)]


def room_of_this_package(site):
    """A copy of this package with one folder more; no other file is touched."""
    copy = site / "crossgraft"
    copy.mkdir(parents=True)
    for path in SOURCE.iterdir():
        (copy / path.name).symlink_to(path)
    (copy / "describe").mkdir()
    for path in (TOY / "crossgraft_describe").glob("*.py"):
        text = path.read_text().replace("crossgraft_describe", "crossgraft.describe")
        (copy / "describe" / path.name).write_text(text)
    return [str(site)]


@pytest.fixture(params=[package_of_its_own, room_of_this_package])
def installed(request, tmp_path):
    """An environment that has the verb, and a folder with images."""
    make_images(tmp_path / "images", {"benign": 5, "malignant": 3, "odd": 1})
    path = [*request.param(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "COLUMNS": "100"}


@pytest.fixture
def python(installed, tmp_path):
    def run(*arguments):
        done = subprocess.run(
            [sys.executable, *arguments], env=installed, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_what_is_not_the_work_of_a_verb_is_short():
    lines = [line for name in GLUE for line in (TOY / name).read_text().splitlines() if line.strip()]
    assert len(lines) <= MOST_LINES, f"{len(lines)} lines"


def test_nothing_in_this_package_knows_it():
    assert "describe" not in COMMANDS
    named = [path for path in SOURCE.rglob("*.py") if "crossgraft_describe" in path.read_text(encoding="utf-8")]
    assert named == []


def test_help_names_it_and_imports_nothing_heavy(python):
    show = (
        "import sys; from crossgraft.cli.main import main; main(['--help']); main(['describe', '--help']);"
        "print(sorted({'numpy', 'torch', 'pandas', 'crossgraft_describe.verb', 'crossgraft.describe.verb'} & {*sys.modules}))"
    )
    page = python("-c", show)
    assert "describe     Count the images of each class." in page
    assert "--at-least N" in page and "[default: 0; at least 0]" in page
    assert page.splitlines()[-1] == "[]"


ALL_OF_IT = """
import json
import sys
from pathlib import Path

import crossgraft
from crossgraft.cli.main import main

END, page = chr(0), Path("runs/describe-images/report.html")
describe = ["describe", "images", "--at-least", "2", "--quiet"]
assert main(describe) == 0
written = page.read_text(encoding="utf-8")
print(end=END)
assert main(["report", "runs/describe-images"]) == 0
assert page.read_text(encoding="utf-8") == written
print(end=END)
assert main([*describe, "--json"]) == 0
print(end=END)
found = crossgraft.describe("images", at_least=4)
print(found, found.to_frame().shape, found.report, "<table" in found._repr_html_())
print(crossgraft.describe.__doc__, end=END)
sys.path.insert(0, sys.argv[1])
import generate

print(generate.commands_page())
"""


@pytest.mark.slow
@pytest.mark.xdist_group(forked.GROUP)
def test_it_measures_shows_writes_a_page_and_python_and_the_catalogue_have_it_beside_the_others(installed, tmp_path):
    """One process imports all of it once."""
    program = tmp_path / "program.py"
    program.write_text(ALL_OF_IT)
    done = forked.run(program, str(DOCS), environment=installed, cwd=tmp_path, timeout=300, own_copy=True)
    assert done.returncode == 0, done.stderr
    text, again, document, shown, catalogue = done.stdout.split(chr(0))
    assert "crossgraft describe" in catalogue
    assert text == (
        "images\n2 classes\n\nClasses\n-------\n"
        "Images of each class:\nClass      Images\nbenign          5\nmalignant       3\n\n"
        "Most images show benign: 5.\n\nResearch use, not a medical device.\nReport: runs/describe-images/report.html\n"
    )
    run = tmp_path / "runs" / "describe-images"
    assert {path.name for path in run.iterdir()} >= {"run.json", "report.json", "report.html", "classes.csv"}
    record = json.loads((run / "run.json").read_text())
    assert record["command_line"] == "crossgraft describe images --at-least 2 --out runs/describe-images"
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "Most images show benign: 5." in page and "How it was made" in page
    assert again == "runs/describe-images/report.html\n"
    assert json.loads(document) == json.loads((run / "report.json").read_text())
    assert shown.startswith("Description('Most images show benign: 5.') (1, 2) None True")
    assert "at_least: Leave out classes with fewer images." in shown
