"""CONTRIBUTING's steps for a plug-in, here and in another package, followed to the letter."""

import json
import os
import re
import tomllib
from pathlib import Path

import pytest

import crossgraft
from support import forked
from support.tiny import TINY_MODELS, make_workspace

pytestmark = pytest.mark.xdist_group(forked.GROUP)
REPOSITORY = Path(__file__).parents[2]
CONTRIBUTING = REPOSITORY / "CONTRIBUTING.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FOLLOW = """
import importlib, shlex, sys
from pathlib import Path
from crossgraft.cli.main import main

tests = importlib.import_module("test_my_package")
for name in [name for name in vars(tests) if name.startswith("test_")]:
    getattr(tests, name)()
    print("passed", name)
for line in Path("commands.txt").read_text().splitlines():
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
    have_images_and_networks(folder)
    commands = commands_of(blocks)
    done = python(folder, FOLLOW, commands)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("$ crossgraft") == len(commands.splitlines())
    return done.stdout, json.loads((folder / "runs" / "tune-my_images" / "report.json").read_text())


def have_images_and_networks(folder):
    make_workspace(folder)
    (folder / "images").rename(folder / "my_images")
    (folder / "my_nets.py").write_text(TINY_MODELS)
    (folder / "zoo.yaml").write_text((folder / "zoo.yaml").read_text().replace("tiny_models", "my_nets"))


def commands_of(blocks):
    (commands,) = [text for language, text in blocks if not language and "my_images" in text]
    return commands


def python(folder, program, told):
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "100"}
    (folder / "commands.txt").write_text(told)
    (folder / "program.py").write_text(program)
    return forked.run(folder / "program.py", environment=environment, cwd=folder, timeout=500, own_copy=True)


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
    assert [language for language, _ in blocks if language] == ["python", "python", "python", "python", "toml", "python"]


@pytest.mark.slow
def test_the_plugins_keep_their_promises(said):
    assert re.findall(r"^passed (\w+)", said[0], re.MULTILINE) == [
        "test_the_score",
        "test_the_confounder",
        "test_the_regulariser",
        "test_the_library",
    ]


@pytest.mark.slow
def test_the_names_are_listed_ranked_by_and_trained_with(said):
    scores, confounders, regularizers, libraries, ranking, editing, tuning, small = re.split(
        r"^\$ ", said[0], flags=re.MULTILINE
    )[1:]
    assert re.search(r"class_margin +Class margin +features, labels +no +my-package", scores)
    assert re.search(r"low_contrast +Low contrast +", confounders) and "low_contrast:share=0.3" in editing
    assert re.search(r"small_features +Small features +.*my-package", regularizers)
    assert re.search(r"small-nets +Networks of one convolution +small-nets:WIDTH +my-package", libraries)
    assert "Class margin" in ranking and "narrow" in ranking
    assert "Balanced accuracy" in tuning and "Balanced accuracy" in small
    assert "small_features:strength=0.5" in [plugin["spelling"] for plugin in said[1]["plugins"]]
    assert all(row["terms"]["small_features/size"] > 0 for row in said[1]["history"])


IN_A_COPY = f"""
import shlex, sys
from pathlib import Path
sys.path.insert(0, {str(REPOSITORY / "docs")!r})
import pytest

tests = [f"{REPOSITORY}/tests/contract/test_{{part}}.py" for part in (
    "score_contracts", "score_edges", "score_scales", "confounder_contracts", "leaf_plugins")]
common = ["-q", "--noconftest", "-p", "no:cacheprovider", "-c", {str(REPOSITORY / "pyproject.toml")!r}]
common += ["-o", "addopts=--import-mode=importlib", "-W", "ignore:Module already imported"]  # by the process that this forks
assert pytest.main([*common, "-k", "class_margin or low_contrast or module", *tests]) == 0
import generate
from crossgraft.cli.main import main

for line in Path("commands.txt").read_text().splitlines():
    print(f"$ {{line}}", flush=True)
    assert main(shlex.split(line)[1:]) == 0, line
print("$", generate.scores_page(), generate.confounders_page())
"""


@pytest.fixture(scope="module")
def native(blocks, tmp_path_factory):
    """What tests, commands and catalogues say in a copy of this package with the score and the confounder; `tune` is left out."""
    folder = tmp_path_factory.mktemp("copy")
    files = dict(re.match(r"# my_package/(\S+)\n(.*)", text, re.DOTALL).groups() for _, text in blocks if "# my_package" in text)
    copy = folder / "crossgraft"
    for place in (copy, copy / "scores", copy / "edit", copy / "edit" / "confounders"):
        place.mkdir()
        for path in (Path(crossgraft.__file__).parent / place.relative_to(copy)).iterdir():
            if path.name not in ("__pycache__", "scores", "edit", "confounders"):
                (place / path.name).symlink_to(path)
    steps = CONTRIBUTING.read_text(encoding="utf-8")
    for place, name, kind in (("scores", "class_margin", "NAME"), ("edit.confounders", "low_contrast", "LowContrast")):
        (copy / place.replace(".", "/") / f"{name}.py").write_text(files[f"{name}.py"])
        (line,) = re.findall(rf"^ +`(from crossgraft.{place}.NAME import .*)`$", steps, re.MULTILINE)
        init = copy / place.replace(".", "/") / "__init__.py"
        text = init.read_text()
        init.unlink()
        init.write_text(text.replace("# isort: on\n", line.replace("CLASS", kind).replace("NAME", name) + "\n# isort: on\n"))
    have_images_and_networks(folder)
    commands = [
        line
        for line in commands_of(blocks).splitlines()
        if "regularizer" not in line and "small-nets" not in line and "libraries" not in line
    ]
    done = python(folder, IN_A_COPY, "\n".join(commands))
    assert done.returncode == 0, done.stdout + done.stderr
    return re.split(r"^\$ ", done.stdout, flags=re.MULTILINE)


@pytest.mark.slow
def test_a_score_and_a_confounder_are_one_file_and_one_line_here(native):
    tests, scores, confounders, ranking, editing, catalogues = native
    assert int(re.search(r"(\d+) passed", tests)[1]) > 30
    assert re.search(r"class_margin +Class margin +features, labels +no +crossgraft$", scores, re.MULTILINE)
    assert re.search(r"low_contrast +Low contrast +", confounders)
    assert "Class margin" in ranking and "narrow" in ranking
    assert "low_contrast:share=0.3" in editing
    assert "| `class_margin` |" in catalogues and "| `low_contrast` |" in catalogues
