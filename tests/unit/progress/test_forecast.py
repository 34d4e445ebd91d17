"""What is left of a command, put right by what was done."""

import pytest

from crossgraft.progress import Forecast, Piece


class Clock:
    """A clock that only the test moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def forecast_of(*pieces):
    clock = Clock()
    return Forecast([Piece((name,), seconds, kind) for name, seconds, kind in pieces], clock=clock), clock


def do(forecast, clock, name, seconds):
    assert forecast.begin((name,))
    clock.now += seconds
    forecast.end()


def test_before_the_start_it_is_the_sum():
    forecast, _ = forecast_of(("a", 3, "look"), ("b", 4, "score"))
    assert forecast.seconds_left() == 7


def test_pieces_of_one_kind_are_put_right_by_those_that_are_done():
    forecast, clock = forecast_of(("a", 10, "look"), ("b", 10, "look"), ("c", 10, "score"))
    do(forecast, clock, "a", 20)
    assert forecast.seconds_left() == pytest.approx(20 + 10 * (20 + 20) / (10 + 20))


def test_a_small_piece_says_little_about_other_kinds():
    forecast, clock = forecast_of(("a", 1, "load"), ("b", 100, "look"))
    do(forecast, clock, "a", 5)  # five times as long as expected
    assert forecast.seconds_left() == pytest.approx(104, abs=1)


def test_the_piece_under_way_counts_by_its_share_more_and_more():
    forecast, clock = forecast_of(("a", 10, "look"))
    forecast.begin(("a",))
    left = []
    for share in (0.25, 0.5, 1.0):
        clock.now = 40 * share  # four times as slow as expected
        forecast.advance(share)
        left.append(forecast.seconds_left())
    assert left[2] == 0
    assert 7.5 < left[0] < 30 and 5 < left[1] < 20  # between what was expected and what its own speed says
    assert left[1] / 20 > left[0] / 30


def test_without_a_share_the_time_spent_is_taken_off_and_never_more_than_there_is():
    forecast, clock = forecast_of(("a", 10, "look"), ("b", 5, "look"))
    forecast.begin(("a",))
    clock.now = 4
    assert forecast.seconds_left() == 11
    clock.now = 400
    assert forecast.seconds_left() == 5


def test_what_was_done_before_is_never_begun_and_counts_no_more():
    forecast, clock = forecast_of(("a", 10, "look"), ("b", 10, "look"), ("c", 10, "look"))
    do(forecast, clock, "b", 10)
    assert forecast.seconds_left() == 10
    assert not forecast.begin(("a",))


def test_a_part_of_a_piece_or_of_nothing_begins_nothing():
    forecast, _ = forecast_of(("a", 10, "look"))
    assert not forecast.begin(("unknown",))
    assert forecast.begin(("a",)) and not forecast.begin(("a",))
    assert forecast.is_under_way


def test_it_covers_its_pieces_and_the_parts_around_them():
    forecast = Forecast([Piece(("fold", "fit"), 1, "fit")], clock=Clock())
    assert forecast.covers(("fold",)) and forecast.covers(("fold", "fit"))
    assert not forecast.covers(("fit",)) and not forecast.covers(())
    forecast.begin(("fold", "fit"))
    assert forecast.covers(())
