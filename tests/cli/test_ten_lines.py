"""A result is printed in ten lines, and all of it with --verbose; to a file as to a terminal."""

import json

import pytest

from crossgraft.cli.output import is_terminal
from crossgraft.report.terminal import MOST_LINES


def test_a_result_is_ten_lines_and_all_of_it_with_verbose(workspace, crossgraft):
    brief = crossgraft("check", "images", "--out", "checked", in_brief=True)
    assert not is_terminal()
    lines = brief.out.splitlines()
    assert len(lines) <= MOST_LINES
    assert lines[0].startswith("Nothing unsound was found in 24 images of 2 classes")
    assert "Report: checked/report.html" in lines and "Images of each class" not in brief.out
    whole = crossgraft("check", "images", "--out", "checked")
    assert "Images of each class:" in whole.out and len(whole.out.splitlines()) > MOST_LINES
    assert "All tables: --verbose" not in whole.out
    as_json = crossgraft("check", "images", "--out", "checked", "--json", in_brief=True)
    assert json.loads(as_json.out)["kind"] == "data_check"


def test_nothing_is_said_twice(workspace, crossgraft):
    said = crossgraft(
        "rank", "images", "--models", "zoo.yaml", "--scores", "logme", "--workers", "1", "--device", "cpu", in_brief=True
    )
    lines = said.out.splitlines()
    assert len(lines) <= MOST_LINES
    assert len({*lines}) == len(lines)


@pytest.mark.parametrize("words", [("rank", "--published", "itm"), ("split", "images")])
def test_where_tables_are_the_answer_they_are_printed(words, workspace, crossgraft):
    said = crossgraft(*words, in_brief=True)
    assert said.code == 0, said.err
    assert len(said.out.splitlines()) > MOST_LINES or ":\n" in said.out
    assert "All tables: --verbose" not in said.out
