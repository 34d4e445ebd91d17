"""Flags and percentages stay whole, commands break between words, and nothing is markup that was text."""

import re

import pytest

from crossgraft.report.page import breakable, code_line, prose


def whole(text):
    return re.findall(r'<span class="whole">([^<]*)</span>', prose(text))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("with --group-column.", ["--group-column"]),
        ("(the test rows: --use-split test)", ["--use-split"]),
        ("its 95 % interval, +3.2 % of 7", ["95 %", "+3.2 %"]),
        ("a -- b, pre--fix, --2, x% and 1 model", []),
    ],
)
def test_what_is_kept_on_one_line(text, kept):
    assert whole(text) == kept
    assert re.sub("<[^>]*>", "", prose(text)) == text


@pytest.mark.parametrize("show", [prose, code_line, breakable])
def test_text_stays_text(show):
    shown = show("<b>--no-images</b> & 5 %\u202e")
    assert "<b>" not in shown and "&lt;" in shown and "&amp;" in shown
    assert r"\u202e" in shown


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("mobilenetv2_035.imagenet_backbone on skin", ["mobilenetv2_", "035.", "imagenet_", "backbone on skin"]),
        ("zoo.yaml:small · random", ["zoo.yaml:small · random"]),  # short enough for any column
        ("&lt;script_of_a_stranger&gt;_a", ["&amp;lt;script_", "of_", "a_", "stranger&amp;gt;_a"]),
    ],
)
def test_a_long_name_breaks_between_its_parts(text, pieces):
    assert breakable(text).split("<wbr>") == pieces


def test_a_line_of_a_listing_can_be_copied():
    text = re.sub("<[^>]*>", "", code_line("  tune DATA  --model a"))
    assert text == "  tune DATA  --model a\n"
