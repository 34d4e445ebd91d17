import io
import re
import sys

import pytest

from crossgraft.progress import Piece, Reporter, default_reporter, describe_rate


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_pipe_gets_one_line_a_stage_with_rate():
    stream = io.StringIO()
    reporter = Reporter(stream)
    with reporter.stage("Looking at 4 images", total=4) as stage:
        for _ in range(4):
            stage.advance()
    reporter.say("[1 of 2] done")
    (first, second) = stream.getvalue().splitlines()
    assert first.startswith("Looking at 4 images: ")
    assert first.endswith("images/s")
    assert second == "[1 of 2] done"  # brackets are text, not markup


def test_quiet_says_warnings_only():
    stream = io.StringIO()
    reporter = Reporter(stream, quiet=True)
    with reporter.stage("Looking", total=1) as stage:
        stage.advance()
    reporter.say("nothing")
    reporter.warn("Careful.")
    assert stream.getvalue() == "Warning: Careful.\n"


def test_a_terminal_gets_a_bar_with_count_and_rate(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    with Reporter(stream).stage("Looking", total=2, unit="images") as stage:
        stage.advance(2)
    assert "Looking" in stream.getvalue()
    assert "2/2" in stream.getvalue()
    assert "images/s" in stream.getvalue()


def test_an_error_inside_a_stage_prints_no_rate():
    stream = io.StringIO()
    try:
        with Reporter(stream).stage("Looking", total=2):
            raise ValueError
    except ValueError:
        pass
    assert stream.getvalue() == ""


class Clock:
    """A clock that only the test moves."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def lines_of(work, *, terminal=False, sparing=True):
    clock, stream = Clock(), Terminal() if terminal else io.StringIO()
    work(Reporter(stream, sparing=None if terminal else sparing, clock=clock), clock)
    return stream.getvalue().splitlines()


def test_a_hundred_short_stages_are_a_line_every_ten_seconds():
    def work(reporter, clock):
        for model in range(100):
            with reporter.stage(f"Scoring model {model}", total=2, unit="rounds") as stage:
                stage.advance(2)
                clock.now += 0.5

    lines = lines_of(work)
    assert [line.split(":")[0] for line in lines] == [f"Scoring model {i}" for i in (0, 20, 40, 60, 80)]


def test_a_program_of_many_short_steps_may_be_sparing_for_a_while():
    def work(reporter, clock):
        with reporter.spared():
            for epoch in range(100):
                clock.now += 0.1
                reporter.leave(f"epoch {epoch}")
        reporter.leave("the end")

    lines = lines_of(work, sparing=False)
    assert 9 <= len(lines) <= 12
    assert lines[-1] == "the end"


def test_outside_a_notebook_every_stage_is_a_line():
    def work(reporter, clock):
        for model in range(3):
            with reporter.stage(f"Scoring model {model}", total=2):
                clock.now += 0.1

    assert len(lines_of(work, sparing=False)) == 3


def test_the_stream_of_a_cell_makes_a_reporter_sparing():
    cell = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})
    assert Reporter(cell()).sparing
    assert not Reporter(io.StringIO()).sparing


def test_a_cell_that_calls_itself_a_terminal_gets_lines_and_no_bar(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as kernels do
    cell = type("OutStream", (Terminal,), {"__module__": "ipykernel.iostream"})()
    with Reporter(cell, sparing=False).stage("Looking", total=2) as stage:
        stage.advance(2)
    assert cell.getvalue().startswith("Looking: ") and cell.getvalue().count("\n") == 1 and "\x1b" not in cell.getvalue()


def test_a_stage_that_takes_its_time_is_always_told():
    def work(reporter, clock):
        for _ in range(3):
            with reporter.stage("Looking", total=4) as stage:
                clock.now += 2
                stage.advance(4)

    assert lines_of(work) == ["Looking: 2.0 s, 2.0 images/s"] * 3


def test_an_hour_says_where_it_is_after_1_2_4_minutes_and_so_on():
    def work(reporter, clock):
        with reporter.stage("Looking at 3600 images", total=3600) as stage:
            for _ in range(3600):
                clock.now += 1
                stage.advance()

    lines = lines_of(work)
    assert lines[0] == "Looking at 3600 images: 60 of 3600, 1.0 images/s, about 59 min left"
    assert len(lines) == 7  # 1, 2, 4, 8, 16, 32 minutes and the end
    assert lines[-1] == "Looking at 3600 images: 3600.0 s, 1.0 images/s"


def test_mentions_are_left_out_soon_after_another_line_but_not_on_a_terminal():
    def work(reporter, clock):
        for _ in range(3):
            reporter.mention("read from the cache")
            clock.now += 6

    assert lines_of(work) == ["read from the cache"] * 2
    assert lines_of(work, terminal=True) == ["read from the cache"] * 3


def test_quiet_mentions_nothing():
    stream = io.StringIO()
    Reporter(stream, quiet=True).mention("read from the cache")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("done", "seconds", "words"),
    [(100, 2, "50 images/s"), (1, 1, "1.0 images/s"), (1, 1.6, "0.6 images/s"), (1, 42, "42 s each")],
)
def test_rates_in_words(done, seconds, words):
    assert describe_rate(done, seconds, "images") == words


def test_seconds_that_are_counted_have_no_rate():
    def work(reporter, clock):
        with reporter.stage("Selecting a model", total=60, unit="seconds of the budget") as stage:
            for _ in range(3):
                clock.now += 50
                stage.advance(20)

    assert lines_of(work) == ["Selecting a model: 40 of 60 seconds of the budget, about 50 s left", "Selecting a model: 150.0 s"]


def test_a_notebook_gets_plain_text_and_no_display_objects(monkeypatch):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    shown = []
    monkeypatch.setattr("rich.jupyter.display", lambda *arguments: shown.append(arguments))
    stream = io.StringIO()
    reporter = Reporter(stream)
    with reporter.stage("Looking", total=1) as stage:
        stage.advance()
    reporter.warn("Careful.")
    assert shown == []
    assert len(stream.getvalue().splitlines()) == 2


def test_without_any_stderr_nothing_breaks(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    Reporter().warn("Careful.")


def test_how_it_goes_is_told_after_some_silence():
    def work(reporter, clock):
        with reporter.stage("Training", total=1000, unit="steps") as stage:
            for epoch in range(8):
                clock.now += 4
                stage.note(f"epoch {epoch}")

    lines = lines_of(work)
    assert lines[:-1] == ["Training: epoch 0", "Training: epoch 3", "Training: epoch 6"]
    assert Reporter(io.StringIO(), quiet=True).stage("x", total=1).__enter__().note("nothing") is None


def test_a_total_is_said_once_and_later_lines_say_what_is_left():
    def work(reporter, clock):
        reporter.expect([Piece((name,), 60, "look") for name in "ab"], "2 models × 9 images")
        for name in "ab":
            with reporter.part(name), reporter.stage(f"Looking with {name}", total=9) as stage:
                clock.now += 120
                stage.advance(9)

    assert lines_of(work, sparing=False) == [
        "About 2 min: 2 models × 9 images.",
        "Looking with a: 120.0 s, 13 s each (2 min left in all)",
        "Looking with b: 120.0 s, 13 s each",
    ]


def test_a_part_of_what_was_said_says_nothing_and_the_next_command_does():
    def work(reporter, clock):
        reporter.expect([Piece(("fold", "fit"), 5, "fit")], "all")
        with reporter.part("fold"):
            assert not reporter.wants_forecast
            reporter.expect([Piece(("fit",), 5, "fit")], "a part")
        reporter.expect([Piece(("fit",), 5, "fit")], "another command", at_most=True)

    assert lines_of(work) == ["About 5 s: all.", "About 5 s at most: another command."]


def test_what_follows_is_part_of_the_total_inside_only():
    def work(reporter, clock):
        with reporter.followed_by(Piece(("page",), 7, "page")):
            reporter.expect([Piece(("fit",), 5, "fit")], "with a page")
        reporter.expect([Piece(("fit",), 5, "fit")], "without")

    assert lines_of(work) == ["About 12 s: with a page.", "About 5 s: without."]


def test_nobody_measures_for_a_quiet_reporter():
    reporter = Reporter(io.StringIO(), quiet=True)
    assert not reporter.wants_forecast
    reporter.expect([Piece(("fit",), 5, "fit")], "nothing")
    assert reporter.stream.getvalue() == ""


def test_lines_of_epochs_stay_but_in_a_notebook_not_more_than_one_a_second():
    def work(reporter, clock):
        for epoch in range(4):
            reporter.leave(f"epoch {epoch}")
            clock.now += 0.5

    assert len(lines_of(work, sparing=False)) == 4
    assert lines_of(work) == ["epoch 0", "epoch 2"]


class ClosedPipe(io.StringIO):
    def write(self, text):
        raise BrokenPipeError


def test_a_reader_that_is_gone_ends_nothing():
    reporter = Reporter(ClosedPipe())
    reporter.warn("Nobody reads this.")
    with reporter.stage("Looking", total=1) as stage:
        stage.advance()


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(monkeypatch, term):
    monkeypatch.setenv("TERM", term)
    stream = Terminal()
    with Reporter(stream).stage("Looking", total=1) as stage:
        stage.advance()
    assert stream.getvalue().startswith("Looking: ") and "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_a_bar_is_as_wide_as_the_terminal(monkeypatch, columns):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = Terminal()
    with Reporter(stream).stage("Looking at 1 000 images with a long name", total=2) as stage:
        stage.advance(2)
    (shown,) = [each for each in re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())) if "2/2" in each]
    assert len(shown) <= columns and "0:00 left" in shown
    assert not re.search(r"\x1b\[[0-9;]*m", stream.getvalue())


@pytest.mark.parametrize(("stream", "is_quiet"), [(io.StringIO(), True), (Terminal(), False)])
def test_python_shows_progress_where_somebody_watches(monkeypatch, stream, is_quiet):
    monkeypatch.setattr(sys, "stderr", stream)
    assert default_reporter().quiet is is_quiet


def test_python_shows_progress_in_a_notebook(monkeypatch):
    monkeypatch.setattr(sys, "stderr", type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})())
    assert not default_reporter().quiet


def left_on_screen(text):
    """What a terminal shows at the end: a line that is erased is written over."""
    return "\n".join(line.rpartition("\x1b[2K")[2].rpartition("\r")[2] for line in text.split("\n")).strip("\n")


@pytest.fixture
def brief(monkeypatch):
    """A brief reporter, and the terminal that it writes to."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    return Reporter(stream, is_brief=True), stream


def test_a_brief_reporter_leaves_no_line_of_progress_on_a_terminal(brief):
    reporter, stream = brief
    reporter.say("Starting rank.")
    reporter.mention("A line that is longer than the forty columns of this terminal.")
    assert "Starting rank." in stream.getvalue()
    assert left_on_screen(stream.getvalue()).startswith("A line that is longer") and stream.getvalue().endswith("…")
    assert not reporter.say_in_brief(unless_in="")
    assert left_on_screen(stream.getvalue()) == ""


def test_a_brief_reporter_holds_warnings_back_and_says_the_first_that_is_said_nowhere_else(brief):
    reporter, stream = brief
    reporter.warn("Copies: two pictures are in both parts. Remove them.")
    reporter.warn("The memory of the device is full; going on.")
    reporter.warn("Another one.")
    assert reporter.say_in_brief(unless_in="Caveat: Copies: two pictures are in\n  both parts. Remove them.")
    (line,) = left_on_screen(stream.getvalue()).splitlines()
    assert line == "Warning: The … (1 more: --verbose)"
    reporter.say_what_was_held()
    assert left_on_screen(stream.getvalue()).splitlines() == [line]  # said once


def test_where_no_result_comes_warnings_are_said_whole(brief):
    reporter, stream = brief
    reporter.warn("The first of two warnings that are longer than a line.")
    reporter.say("Going on.")
    reporter.say_what_was_held()
    assert left_on_screen(stream.getvalue()) == "Warning: The first of two warnings that are longer than a line."


def test_in_a_pipe_a_brief_reporter_is_like_any_other():
    stream = io.StringIO()
    reporter = Reporter(stream, is_brief=True)
    reporter.say("Starting rank.")
    reporter.warn("Careful.")
    assert stream.getvalue() == "Starting rank.\nWarning: Careful.\n"
    assert not reporter.say_in_brief(unless_in="")
