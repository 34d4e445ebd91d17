"""Numbers in words: same decimals in a column, no more digits than the intervals justify."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.words.formatting import MINUS, MISSING, NARROW_SPACE, NumberFormat, count, counted, duration, short_fingerprint


@pytest.mark.parametrize(
    ("values", "widths", "expected"),
    [
        ([0.41234, 0.2], [0.064, 0.07], ["0.412", "0.200"]),
        ([0.41234, 0.2], [0.64, None], ["0.41", "0.20"]),
        ([412.34, 7.0], [64.0], ["412", "7"]),
        ([412.34, 7.0], [], ["412", "7"]),
        ([0.5, -0.25], [], ["0.500", MINUS + "0.250"]),
        ([3.2e-9, 1.0e-9], [], ["3.20e−09", "1.00e−09"]),
        ([4.1e8], [], ["4.10e+08"]),
        ([0.0, 0.0], [], ["0", "0"]),
        ([7.0412345, 7.04], [3e-9], ["7.041234", "7.040000"]),
        ([3.2e-5], [3e-9], ["3.20e−05"]),
    ],
)
def test_decimals_follow_the_intervals_or_the_size(values, widths, expected):
    as_text = NumberFormat.for_column(values, interval_widths=widths)
    assert [as_text(value) for value in values] == expected


def test_values_that_are_not_numbers_are_words():
    as_text = NumberFormat(decimals=2)
    assert [as_text(value) for value in (None, math.nan, math.inf, -math.inf)] == [MISSING, "not a number", "∞", MINUS + "∞"]


def test_a_rounded_zero_has_no_sign():
    assert NumberFormat(decimals=2)(-0.001) == "0.00"


def test_interval_needs_both_ends():
    as_text = NumberFormat(decimals=1)
    assert as_text.interval(-1, 2) == f"[{MINUS}1.0, 2.0]"
    assert as_text.interval(None, 2) == as_text.interval(1, None) == MISSING


@given(st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=1, max_size=8), st.lists(st.floats(1e-4, 1e5), max_size=8))
def test_one_column_has_one_number_of_decimals_and_keeps_the_value(values, widths):
    as_text = NumberFormat.for_column(values, interval_widths=widths)
    texts = [as_text(value) for value in values]
    assert len({len(text.partition(".")[2]) for text in texts if "e" not in text}) <= 1
    if not as_text.scientific:
        for value, text in zip(values, texts, strict=True):
            assert abs(float(text.replace(MINUS, "-")) - value) <= 0.5 * 10.0**-as_text.decimals * (1 + 1e-9)


def test_counts_and_nouns():
    assert count(12345) == f"12{NARROW_SPACE}345"
    assert counted(0, "class", "classes") == "0 classes"
    assert counted(1, "image") == "1 image"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "< 1 ms"), (0.0421, "0.042 s"), (9.94, "9.9 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (7200, "2 h 00 min")],
)
def test_duration(seconds, text):
    assert duration(seconds) == text


def test_short_fingerprint_drops_the_name_of_the_algorithm():
    assert short_fingerprint("sha256:0123456789abcdef") == "0123456789ab"
    assert short_fingerprint("0123") == "0123"
