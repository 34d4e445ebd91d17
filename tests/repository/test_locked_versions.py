"""CI installs the versions of requirements-ci.lock; users, and .ci/newest, what is newest."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[2]
LOCK = REPOSITORY / "requirements-ci.lock"
FREE = {"torch", "torchvision"}
"""Their build depends on the machine."""

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def text(*parts):
    return REPOSITORY.joinpath(*parts).read_text(encoding="utf-8")


def installation(*variables):
    """What make would run to install; it runs nothing."""
    command = ("make", "--dry-run", "--always-make", ".venv/installed", *variables)
    # those of the make that may have started these tests
    around = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CONSTRAINTS", "INSTALLER")
    environment = {name: value for name, value in os.environ.items() if name not in around}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, capture_output=True, text=True)
    return done.stdout


def test_the_lock_holds_a_fitting_version_of_everything_that_is_declared():
    project = tomllib.loads(text("pyproject.toml"))
    declared = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    lines = [line for line in LOCK.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.!]+", line) for line in lines), "a plain version on any machine"
    locked = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    assert not FREE & set(locked)
    for requirement in map(Requirement, declared):
        if requirement.name not in FREE:
            assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), requirement


@needs_make
def test_only_ci_installs_from_the_lock():
    assert "constraint" not in installation()
    assert "--constraint requirements-ci.lock --editable ." in installation("CONSTRAINTS=requirements-ci.lock")
    assert "make .venv/installed CONSTRAINTS=requirements-ci.lock" in text(".ci", "run")


@needs_make
def test_pip_installs_unless_another_program_is_named():
    assert installation().count(" -m pip install") == 2
    with_another = installation("INSTALLER=another --quiet", "CONSTRAINTS=requirements-ci.lock")
    assert "another --quiet --constraint requirements-ci.lock --editable ." in with_another
    assert "pip install" not in with_another


def test_the_newest_versions_are_installed_without_the_lock(tmp_path):
    """The script runs in a clone, with a make that only writes down what it was asked for."""
    if not (REPOSITORY / ".git").exists() or shutil.which("git") is None:
        pytest.skip("this is no clone")
    programs = tmp_path / "bin"
    programs.mkdir()
    asked = tmp_path / "asked"
    (programs / "make").write_text(
        f'#!/bin/sh\necho "$PWD $*" >> {asked}\nmkdir -p .venv/bin\nprintf "#!/bin/sh\\n" > .venv/bin/python\n'
        "chmod +x .venv/bin/python\n"
    )
    (programs / "make").chmod(0o755)
    environment = {"PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    environment |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    subprocess.run([REPOSITORY / ".ci" / "newest"], env=environment, check=True, capture_output=True)
    folders, commands = zip(*(line.split(" ", 1) for line in asked.read_text().splitlines()), strict=True)
    assert commands == (".venv/installed", "check")
    assert len({*folders}) == 1 and not Path(folders[0]).exists(), "one clone, which is gone"
    assert Path(folders[0]) != REPOSITORY
