"""A bar fits its terminal."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from crossgraft.progress.bar import BarStage, bar_line

FACTS = {"left": 95, "left_in_all": 3725, "rate": "6.1 rounds/s", "note": "epoch 3"}
TITLE = "Scoring mobilenetv2_100.imagenet_qat (3 of 18)"


def line(width, **changes):
    return bar_line(TITLE, 12, 26, width=width, **{**FACTS, **changes})


def test_a_wide_terminal_shows_all_of_it():
    shown = line(140)
    assert shown.startswith(f"{TITLE}  ━━━━━━━━━━━─────────────  12/26  1:35 left, all 1:02:05")
    assert shown.endswith("6.1 rounds/s  epoch 3")


@pytest.mark.parametrize("width", [100, 80, 60, 40])
def test_count_and_times_stay_at_every_width(width):
    shown = line(width)
    assert len(shown) <= width
    assert "12/26" in shown and "1:35 left" in shown
    assert shown.startswith("Scoring")


def test_the_bar_goes_first_then_note_rate_and_the_end_of_the_title():
    seen = [
        ["━" in shown, "epoch" in shown, "rounds/s" in shown, TITLE in shown]
        for shown in (line(width) for width in range(140, 30, -1))
    ]
    lost = [next(number for number, each in enumerate(seen) if not each[place]) for place in range(4)]
    assert lost == sorted(lost) and len(set(lost)) == 4
    assert line(60).split("  ")[0].endswith("…")


def test_before_the_first_unit_there_is_no_time_left():
    assert bar_line("Looking", 0, 9, width=60).endswith("  0/9")


@given(st.text(max_size=80), st.integers(0, 10**6), st.integers(1, 10**6), st.integers(20, 200))
def test_no_line_is_wider_than_the_terminal(title, done, total, width):
    assert cell_len(bar_line(title, done, total, width=width, **FACTS)) <= width


def test_wide_letters_count_as_two_columns():
    assert cell_len(bar_line("胸部" * 30, 1, 2, width=40)) <= 40


@pytest.mark.parametrize(("encoding", "mark"), [("utf-8", "━"), ("ascii", "#")])
def test_a_terminal_without_the_characters_gets_plain_ones(encoding, mark):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=stream, width=80, force_terminal=True)
    stage = BarStage("Looking", 2, "images", left_in_all=lambda: None)
    stage.advance(2)
    with console.capture() as shown:
        console.print(stage)
    assert mark in shown.get() and shown.get().isascii() == (encoding == "ascii")
