"""Inline drawings: text as text, ink that follows the theme, ids of their own, the same bytes every time."""

from __future__ import annotations

import re
import warnings
from xml.etree import ElementTree

import matplotlib
import pytest

from crossgraft.report.plots.svg import FAMILY_LIMIT, draw, family_marks, shortened


def paint(figure):
    axes = figure.add_axes((0.2, 0.2, 0.7, 0.7))
    axes.plot([0, 1], [0, 1], "o-", color="#0072B2", alpha=0.5)
    axes.set_xlabel("$<b>x</b>$ 漢字")


def drawing(identifier="f"):
    return draw(200, 100, paint, identifier=identifier, label='says "this"')


def test_text_stays_text_and_is_escaped():
    svg = drawing()
    assert "$&lt;b&gt;x&lt;/b&gt;$ 漢字" in svg  # neither an equation nor an element
    assert "<b>" not in svg


def test_a_font_without_the_glyph_is_no_news():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawing()


def test_ink_follows_the_theme():
    svg = drawing()
    assert "currentColor" in svg
    assert "#000000" not in svg
    assert "#ffffff" not in svg  # transparent
    assert "#0072b2" in svg.lower()


def test_fonts_are_those_of_the_page():
    assert "DejaVu" not in drawing()
    assert re.search(r"font-size: [\d.]+px", drawing())


def test_ids_of_two_drawings_never_clash_and_all_references_resolve():
    ids = {name: set(re.findall(r' id="([^"]+)"', drawing(name))) for name in ("one", "two")}
    assert ids["one"] and not ids["one"] & ids["two"]
    references = set(re.findall(r'(?:url\(|href=")#([^")]+)', drawing("one")))
    assert references and references <= ids["one"]


def test_no_style_sheet_and_no_metadata_reach_the_page():
    assert not {"style", "metadata"} & {element.tag for element in ElementTree.fromstring(drawing()).iter()}


def test_it_says_what_it_is():
    root = ElementTree.fromstring(drawing())
    assert (root.get("role"), root.get("aria-label")) == ("img", 'says "this"')


def test_the_same_figure_gives_the_same_bytes():
    assert drawing() == drawing()


def test_settings_of_the_caller_are_left_alone():
    before = dict(matplotlib.rcParams)
    drawing()
    assert dict(matplotlib.rcParams) == before


def test_pyplot_is_never_imported():
    import subprocess
    import sys

    code = "import sys, crossgraft.report; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_families_differ_by_colour_and_by_marker():
    marks = family_marks(["a", "b", "a", "c"])
    assert list(marks) == ["a", "b", "c"]
    assert len({mark.colour for mark in marks.values()}) == len({mark.marker for mark in marks.values()}) == 3
    many = family_marks(map(str, range(FAMILY_LIMIT)))
    assert len(set(many.values())) == FAMILY_LIMIT


@pytest.mark.parametrize(("text", "expected"), [("short", "short"), ("0123456789abcdef", "012345…cdef"), ("a\nb\x00", "a�b�")])
def test_long_and_unprintable_names(text, expected):
    assert shortened(text, 11) == expected
