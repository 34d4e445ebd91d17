"""What a reader meets first is short, and nothing is said twice; on every kind of page."""

import pytest

from crossgraft import write_report
from crossgraft.records.base import CheckRecord
from crossgraft.report.blocks import Checks, Facts, Folded, Items, Paragraph, Section, Verdict
from crossgraft.report.kinds import KINDS
from crossgraft.report.page import said_once
from crossgraft.report.source import Source
from support.every_record import EXAMPLES, record_of
from support.few_figures import leave_out_drawings
from support.read_pages import ReadPage

MOST_WORDS = 600


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_page_is_short_before_its_folds_and_says_nothing_twice(kind, examples, tmp_path, monkeypatch):
    leave_out_drawings(monkeypatch)
    page = ReadPage(write_report(examples.write_run(tmp_path, record_of(kind, examples))).read_text(encoding="utf-8"))
    assert 20 < len(page.first_words) <= MOST_WORDS
    assert page.sentences and page.twice == []


@pytest.mark.parametrize(("kind", "name"), [("selection", "val"), ("selection-replay", "regrets"), ("centre", "centre")])
def test_what_answers_the_question_is_unfolded(kind, name, examples):
    sections = [build(Source(record_of(kind, examples))) for build in KINDS.get(kind).builders]
    assert [section.is_open for section in sections if section is not None and section.name == name] == [True]


def test_a_page_that_repeats_itself_is_found():
    page = ReadPage(
        "<p>Several <b>bold</b> words in a row.</p><details><summary>A fold with a name.</summary><p>Names: Several bold words "
        "in a row.</p></details>"
    )
    assert page.first_words == ["Several", "bold", "words", "in", "a", "row.", "A", "fold", "with", "a", "name."]
    assert page.twice == ["Several bold words in a row."]


def test_what_was_said_is_left_out_below():
    same, other = "One patient may be in two parts.", "Name the column of patients in the data."
    blocks = [
        Verdict("The answer is here for you.", caveat=f"Leakage: {same}"),
        Folded("More", [Items([same, other])]),
        Paragraph(f"{same} And this is said for the first time."),
        Checks([CheckRecord(title="Leakage", severity="warning", text=same)]),
        Facts([("Groups", same), ("Images", "12")]),
        Paragraph(other),
    ]
    (section,) = said_once([Section(name="s", title="S", part="verdict", blocks=blocks)])
    verdict, folded, paragraph, checks, facts = section.blocks
    assert verdict.caveat == f"Leakage: {same}"
    assert folded.blocks[0].items == [other]
    assert paragraph.text == "And this is said for the first time."
    assert checks.checks[0].text == "See above."
    assert facts.rows == [("Groups", "See above."), ("Images", "12")]


def test_a_fact_that_is_true_of_two_things_is_left_out_of_neither():
    said = "Resized to 224 by 224 pixels."
    (section,) = said_once([Section(name="s", title="S", part="checks", blocks=[Facts([("Model A", said), ("Model B", said)])])])
    (facts,) = section.blocks
    assert facts.rows == [("Model A", said), ("Model B", "See above.")]
