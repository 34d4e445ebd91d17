"""A reader that goes away early, as ``head -1`` does, ends no command and changes no exit code."""

import json
import os
import subprocess
import sys

import pytest

from crossgraft.cli.main import main
from crossgraft.errors import RunDirectoryError
from support.tiny import make_images


def run_with_closed(*streams, words, folder):
    """A command whose streams of these names nobody reads; code and what it said on the others."""
    reader, writer = os.pipe()
    os.close(reader)
    places = {name: writer if name in streams else subprocess.PIPE for name in ("stdout", "stderr")}
    try:
        done = subprocess.run([sys.executable, "-m", "crossgraft", *words], **places, cwd=folder, check=False, text=True)
    finally:
        os.close(writer)
    return done


def test_a_run_whose_readers_are_gone_comes_to_its_end(tmp_path):
    make_images(tmp_path / "images", {"a": 8, "b": 8})
    done = run_with_closed("stdout", "stderr", words=["check", "images", "--out", "run"], folder=tmp_path)
    assert done.returncode == 0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["state"] == "done"
    assert (tmp_path / "run" / "report.html").is_file()


def test_an_error_that_nobody_reads_keeps_its_code(tmp_path):
    done = run_with_closed("stderr", words=["report", "nowhere"], folder=tmp_path)
    assert done.returncode == RunDirectoryError.exit_code


def test_a_program_without_stdout_comes_to_its_end(tmp_path, monkeypatch):
    """As after ``>&-``: Python then has None in the place of the stream."""
    make_images(tmp_path / "images", {"a": 8, "b": 8})
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["list", "results", "--only-model", "resnet34"]) == 0
    assert main(["check", str(tmp_path / "images"), "--out", str(tmp_path / "run"), "--quiet"]) == 0
    assert (tmp_path / "run" / "report.html").is_file()


@pytest.mark.parametrize("words", [["--help"], ["list", "results", "--json"]])
def test_a_page_that_nobody_reads_is_no_error(tmp_path, words):
    done = run_with_closed("stdout", words=words, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
