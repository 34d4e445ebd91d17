"""Tables fit a terminal, whatever is in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.words.text_table import NARROWEST, WIDTH, text_table, wrap

CELLS = st.text("abc ", max_size=60)
NUMBERS = st.integers(0, 10**12).map(str)


@given(st.lists(st.tuples(CELLS, NUMBERS, CELLS, NUMBERS), max_size=4), st.tuples(CELLS, CELLS, CELLS, CELLS))
def test_no_line_is_too_long(rows, header):
    assert max(map(len, text_table(header, rows, right=header[1::2]).splitlines()), default=0) <= WIDTH


@pytest.fixture
def columns(monkeypatch):
    """`columns(60)`: the terminal has so many."""
    return lambda number: monkeypatch.setenv("COLUMNS", str(number))


@pytest.mark.parametrize("number", [80, 60, 40])
def test_tables_fit_a_narrow_terminal_and_keep_numbers_and_different_names_apart(columns, number):
    columns(number)
    names = [f"mobilenetv{version}_100.imagenet_qat" for version in (1, 2)]
    rows = [[name, "−0.516", "[−0.584, −0.449]", "not separable from the second one", "yes"] for name in names]
    text = text_table(["Model", "LogME", "95 % interval", "Why", "Above"], rows, right=["LogME", "95 % interval"])
    assert max(map(len, text.splitlines())) <= number
    assert text.count("−0.516") == 2 and ("…" not in text)
    assert "mobilenetv1_" in text and "mobilenetv2_" in text


def test_a_wide_terminal_has_room_for_tables_but_sentences_stay_short(columns):
    columns(180)
    text = text_table([f"column {place}" for place in range(12)], [["x" * 10] * 12])
    assert len(text.splitlines()[1]) > WIDTH
    assert max(map(len, wrap("word " * 100).splitlines())) <= WIDTH


def test_narrower_than_readable_is_left_to_the_terminal(columns):
    columns(10)
    assert max(map(len, wrap("word " * 100).splitlines())) == NARROWEST - 1


def test_what_is_to_be_copied_is_never_broken(columns):
    columns(40)
    assert "m" * 90 in text_table(["Name"], [["m" * 90]], is_whole=True)


def test_headings_are_broken_first_and_stand_above_their_column():
    header = ["Model", *["A long heading of it"] * 6]
    lines = text_table(header, [["resnet18", *["0.123"] * 6]], right=header[1:]).splitlines()
    assert lines[-2].startswith("Model")
    assert lines[-1].split() == ["resnet18", *["0.123"] * 6]


def test_texts_are_broken_names_lose_their_middle_and_numbers_stay():
    name, sentence, number = "m" * 160, "several words " * 6, "1" * 30
    text = text_table(["Name", "Why", "N"], [[name, sentence, number]], right=["N"])
    assert number in text and "mm…mm" in text and name not in text
    assert text.count("several") == 6


def test_columns_that_are_left_out_leave_their_room_to_the_others(columns):
    columns(40)
    header = ["Rank", "Model", "LogME", "95 % interval"]
    row = ["1", "mobilenetv1_100 · ImageNet", "0.378", "[0.354, 0.402]"]
    lines = text_table(header, [row], right=[header[0], *header[2:]]).splitlines()
    assert lines[1:] == ["   1  mobilenetv1_100 · ImageNet  0.378", "Columns left out here: 95 % interval."]


def test_columns_that_do_not_fit_are_named():
    header = [f"column{place}" for place in range(20)]
    text = text_table(header, [["1" * 9] * 20], right=header)
    assert text.splitlines()[0].split() == header[:9]
    assert text.splitlines()[-1].endswith("column19.")
