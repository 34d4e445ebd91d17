"""Dockerfile and release workflow, as far as text tells: who runs, what is pinned, what may be written, what is signed."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PINNED = re.compile(r"python:\d+\.\d+\.\d+-slim-\w+")
PIPED = re.compile(r"(curl|wget)[^|\n]*\|\s*(ba|z)?sh")


def instructions(text):
    """(INSTRUCTION, arguments) of each line, with continued lines joined and comments left out."""
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"(?m)^\s*#.*\n", "", text))
    return [
        (word.upper(), rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line.strip())
    ]


@pytest.fixture(scope="module")
def dockerfile():
    return instructions((ROOT / "Dockerfile").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def workflow():
    return yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_every_base_is_pinned(dockerfile):
    bases = [rest.split()[0] for word, rest in dockerfile if word == "FROM"]
    assert len(bases) == 2 and all(PINNED.fullmatch(base) for base in bases)


def test_the_last_stage_runs_as_a_user_who_is_not_root(dockerfile):
    last = dockerfile[max(place for place, (word, _) in enumerate(dockerfile) if word == "FROM") :]
    users = [rest for word, rest in last if word == "USER"]
    assert users and users[-1].isdigit() and int(users[-1]) > 0
    after = [word for word, _ in last[[word for word, _ in last].index("USER") :]]
    assert not {"RUN", "COPY", "ADD"} & {*after}  # nothing is made by that user, nothing by root after it


def test_nothing_is_fetched_by_a_shell_and_nothing_is_added_from_an_address(dockerfile):
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert not PIPED.search(text) and "ADD " not in text and "sudo" not in text
    assert all("--no-cache-dir" in rest for word, rest in dockerfile if word == "RUN" and "pip install" in rest)


def test_what_runs_looks_nothing_up_and_is_the_command(dockerfile):
    settings = dict(pair.split("=", 1) for word, rest in dockerfile if word == "ENV" for pair in shlex.split(rest))
    assert settings["HF_HUB_OFFLINE"] == "1"
    assert dict(dockerfile)["ENTRYPOINT"] == '["crossgraft"]'
    assert "EXPOSE" not in dict(dockerfile)


def test_what_is_copied_is_there_and_let_through(dockerfile):
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [name for word, rest in dockerfile if word == "COPY" and "--from" not in rest for name in rest.split()[:-1]]
    assert copied and all((ROOT / name).exists() and name.removeprefix("./") in let_through for name in copied)


def test_extras_in_the_image_are_extras_of_the_package(dockerfile):
    (named,) = re.findall(r'"\.\[([\w,-]+)\]"', (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert all(re.search(rf"(?m)^{extra} = \[", project) for extra in named.split(","))


def test_a_tag_alone_starts_a_release_and_jobs_may_do_only_what_they_say(workflow):
    started = workflow[True]  # YAML reads the key `on` as true
    assert {*started} == {"push"} and {*started["push"]} == {"tags"}
    assert workflow["permissions"] == {}
    allowed = {name: job["permissions"] for name, job in workflow["jobs"].items()}
    assert allowed == {
        "build": {"contents": "read", "id-token": "write", "attestations": "write"},
        "publish": {"id-token": "write"},
    }
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


def test_the_files_that_are_signed_are_those_that_are_published(workflow):
    used = {step["uses"].split("@")[0]: step.get("with", {}) for step in steps(workflow) if "uses" in step}
    assert used["actions/attest-build-provenance"]["subject-path"] == "dist/*"
    assert used["actions/attest-sbom"] == {"subject-path": "dist/*", "sbom-path": "crossgraft.cdx.json"}
    assert used["pypa/gh-action-pypi-publish"]["packages-dir"] == "release/dist"
    assert workflow["jobs"]["publish"]["needs"] == "build"
    assert not any("build" in step.get("run", "") for step in workflow["jobs"]["publish"]["steps"])
    assert any("--output-file crossgraft.cdx.json" in step.get("run", "") for step in steps(workflow))


def test_every_action_has_a_version_and_no_secret_is_named(workflow):
    assert all("@" in step["uses"] for step in steps(workflow) if "uses" in step)
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "secrets." not in text and not PIPED.search(text)
    assert not any("${{" in step.get("run", "") for step in steps(workflow))  # names of tags reach a shell as variables only


def test_the_tag_is_compared_with_the_version_that_is_there():
    line = (ROOT / "src" / "crossgraft" / "version.py").read_text(encoding="utf-8")
    assert re.search(r'(?m)^__version__ = "\d+\.\d+\.\d+', line)
