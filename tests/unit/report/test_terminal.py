"""What the terminal shows of the blocks of a page."""

import pytest

from crossgraft.records.base import CheckRecord
from crossgraft.report.blocks import Checks, Code, Facts, Figure, Folded, Gallery, Heading, Items, Paragraph, Section
from crossgraft.report.tables import Column, Table, whole, words
from crossgraft.report.terminal import record_as_text, sections_as_text

HEADING = Heading(title="images", summary="24 images", advice="Take a.")


def shown(*blocks, part="evidence"):
    """The text of one section, without the heading."""
    section = Section(name="it", title="Title", part=part, blocks=blocks)
    return sections_as_text(HEADING, [section]).removeprefix("images\n24 images").lstrip("\n")


def table(number, **said):
    rows = [[words(f"model {place}"), whole(place)] for place in range(number)]
    return Table(caption="Models", columns=[Column("Model"), Column("N", True)], rows=rows, file_name="m", **said)


def test_every_kind_of_block_is_plain_text_or_left_out():
    text = shown(Paragraph("A sentence."), Items(["one", "two"]), Facts([("Seed", "1"), ("Split", "drawn")]), Code("a\nb"))
    assert text == "Title\n-----\nA sentence.\n\n- one\n- two\n\nSeed   1\nSplit  drawn\n\n  a\n  b"
    only_on_a_page = [Figure([], "A caption."), Gallery({}), Paragraph("aside", tone="quiet"), Folded("more", [Code("x")])]
    assert shown(*only_on_a_page) == ""


def test_tables_are_short_and_columns_for_the_page_are_left_out():
    lines = shown(table(23, notes=["A note."])).splitlines()
    assert lines[2:4] == ["Models:", "Model      N"]
    assert (len(lines), lines[-2], lines[-1]) == (4 + 20 + 2, "… and 3 more in the report", "A note.")
    assert shown(table(2, page_only=True)) == ""
    assert "model 1" in shown(Folded("more", [table(2)], page_only=False))
    wide = Table("It", [Column("A"), Column("B", page_only=True)], [[words("x"), words("y")]], "it")
    assert shown(wide) == "Title\n-----\nIt:\nA\nx"


def test_checks_that_passed_are_named_and_the_others_said():
    checks = [
        CheckRecord(title="Copies", severity="unsound", text="Two."),
        CheckRecord(title="Warning", severity="warning", text="Odd."),
        CheckRecord(title="Sizes", severity="passed", text="All the same."),
    ]
    assert shown(Checks(checks)).splitlines()[2:] == [
        "unsound       Copies: Two.", "warning       Odd.", "passed        sizes.",
    ]  # fmt: skip


def test_the_answer_has_no_title_and_stands_last_and_nothing_is_said_twice():
    answer = Section("v", "Verdict", "verdict", [Paragraph("Take a.", tone="lead"), Paragraph("Because.")])
    before = Section("b", "Before", "evidence", [Paragraph("Because."), Paragraph("More.")])
    assert sections_as_text(HEADING, [before, answer]).split("\n\n") == [
        "images\n24 images", "Before\n------\nMore.", "Because.", "Take a.",
    ]  # fmt: skip


def test_names_steer_no_terminal():
    evil = "a\x1b[31m\nb"
    heading = Heading(title=evil, summary=evil, advice="")
    blocks = [
        Paragraph(evil), Items([evil]), Facts([(evil, evil)]), Code(f"{evil}c"),
        Checks([CheckRecord(title=evil, severity="warning", text=evil)]),
        Table(evil, [Column(evil)], [[words(evil)]], "it", notes=[evil]),
    ]  # fmt: skip
    text = sections_as_text(heading, [Section("s", evil, "evidence", blocks)])
    assert "\x1b" not in text
    assert text.count(r"\x1b[31m\nb") >= 11


def test_no_figure_is_painted_for_a_terminal(ranking, monkeypatch):
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *_, **__: pytest.fail("a figure was painted"))
    assert record_as_text(ranking)
