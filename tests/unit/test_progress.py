import io

from crossgraft.progress import Reporter


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
