"""Tables fit a terminal, whatever is in them."""

from hypothesis import given
from hypothesis import strategies as st

from crossgraft.words.text_table import WIDTH, text_table

CELLS = st.text("abc ", max_size=60)
NUMBERS = st.integers(0, 10**12).map(str)


@given(st.lists(st.tuples(CELLS, NUMBERS, CELLS, NUMBERS), max_size=4), st.tuples(CELLS, CELLS, CELLS, CELLS))
def test_no_line_is_too_long(rows, header):
    assert max(map(len, text_table(header, rows, right=header[1::2]).splitlines()), default=0) <= WIDTH


def test_headings_are_broken_first_and_stand_above_their_column():
    header = ["Model", *["A long heading of it"] * 6]
    lines = text_table(header, [["resnet18", *["0.123"] * 6]], right=header[1:]).splitlines()
    assert lines[-2].startswith("Model")
    assert lines[-1].split() == ["resnet18", *["0.123"] * 6]


def test_texts_are_broken_names_lose_their_middle_and_numbers_stay():
    name, sentence, number = "m" * 60, "several words " * 6, "1" * 30
    text = text_table(["Name", "Why", "N"], [[name, sentence, number]], right=["N"])
    assert number in text and "mm…mm" in text and name not in text
    assert text.count("several") == 6


def test_columns_that_do_not_fit_are_named():
    header = [f"column{place}" for place in range(20)]
    text = text_table(header, [["1" * 9] * 20], right=header)
    assert text.splitlines()[0].split() == header[:9]
    assert text.splitlines()[-1].endswith("column19.")
