import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.data.class_names import look_alikes


@pytest.mark.parametrize(
    ("names", "differ_by"),
    [
        (["BKL", "bkl"], "case"),
        (["Straße", "STRASSE"], "case"),
        (["BKL", "BKL "], "white space"),
        (["grade 1", "grade\N{NO-BREAK SPACE}1"], "white space"),
        (["BKL", "\ufeffBKL"], "white space"),
        (["Ödem", "O\N{COMBINING DIAERESIS}dem"], "the Unicode form of their letters (NFC, NFD)"),
        (["Ödem", "o\N{COMBINING DIAERESIS}dem "], "case and white space and the Unicode form of their letters (NFC, NFD)"),
        (["A", "a", "A "], "case and white space"),
        (["K", "\N{KELVIN SIGN}"], "case"),
    ],
)
def test_names_of_one_thing(names, differ_by):
    ((found, words),) = look_alikes(["other", *names])
    assert (list(found), words) == (names, differ_by)


@pytest.mark.parametrize("names", [["BKL", "BCC"], ["a-b", "a_b"], ["resume", "résumé"], ["T2", "T²"], []])
def test_other_names_are_other_names(names):
    assert look_alikes(names) == []


@given(st.lists(st.text(max_size=4), unique=True))
def test_every_group_says_what_it_differs_by(names):
    assert all(alike.differ_by and len(alike.names) > 1 for alike in look_alikes(names))


@pytest.mark.parametrize(
    ("names", "differ_by"),
    [
        (["P-3", "P_3"], "hyphens"),
        (["P3", "P–3"], "hyphens"),
        (["p 3", "P_003"], "hyphens and case and white space and leading zeros"),
        (["100", "1e2"], "the spelling of a number"),
        (["3", "+3"], "the spelling of a number"),
        (["3", "3."], "the spelling of a number"),
        (["1234", "1,234"], "the spelling of a number"),
        (["3", "\N{ARABIC-INDIC DIGIT THREE}"], "the spelling of a number"),
        (["3.5", "3,50"], "the spelling of a number"),
    ],
)
def test_ids_of_one_patient(names, differ_by):
    ((found, words),) = look_alikes(["other", *names], are_ids=True)
    assert (list(found), words) == (names, differ_by)


@pytest.mark.parametrize("names", [["1-12", "11-2"], ["12345678901234567890", "12345678901234567891"], ["3", "-3"]])
def test_other_ids_are_other_ids(names):
    assert look_alikes(names, are_ids=True) == []


def test_names_whose_difference_cannot_be_seen_are_quoted():
    assert [alike.listed({"a": 3, "A": 1, "b": 2, "b ": 9}) for alike in look_alikes(["a", "A", "b", "b "])] == [
        "a (3) and A (1)",
        "“b” (2) and “b ” (9)",
    ]
