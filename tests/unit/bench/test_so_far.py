"""What a person sees who waits for a study at a terminal."""

import io
import json

import pytest
from rich.console import Console

from crossgraft import run_study
from crossgraft.bench.done import SoFar
from crossgraft.bench.study import read_study
from crossgraft.progress import Reporter
from crossgraft.progress.bar import BarStage
from support.toy_jobs import registered

STUDY = {
    "command": "toil",
    "grid": {"data": ["a", "bb"]},
    "settings": {"plain": {}, "more bonus": {"bonus": 0.1}, "none": {}},
    "exclude": [{"settings": "none"}],
    "seeds": 2,
}


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(autouse=True)
def toil(monkeypatch):
    registered(monkeypatch)


def ended(folder, job, numbers=None, reason=None):
    own = folder / "jobs" / job.key
    own.mkdir(parents=True)
    if reason is not None:
        (own / "failed.json").write_text(json.dumps({"reason": reason}))
    else:
        rows = [{"metric": name, "value": value, "low": None, "high": None} for name, value in numbers.items()]
        (own / "done.json").write_text(json.dumps({"run": "1", "seconds": 1.0, "version": "1", "numbers": rows}))


def drawn(so_far, *, width=60):
    """The bar and what is below it, as a terminal shows them."""
    console = Console(file=io.StringIO(), width=width, force_terminal=True, legacy_windows=False, _environ={})
    stage = BarStage("Jobs", 8, "jobs", left_in_all=lambda: None, below=so_far.lines)
    with console.capture() as shown:
        console.print(stage)
    return [line.rstrip() for line in shown.get().splitlines()]


def test_jobs_by_state_and_means_by_setting_stand_below_the_bar(tmp_path):
    study, clock = read_study(STUDY), Clock()
    so_far = SoFar(tmp_path, study, clock=clock)
    assert drawn(so_far)[1:] == ["0 done, 0 failed, 0 running"]
    plain, _, more, *_, last = study.jobs
    ended(tmp_path, plain, {"accuracy": 0.5, "auc": 0.1})
    ended(tmp_path, more, {"accuracy": 0.6236, "auc": 0.2})
    ended(tmp_path, last, reason="no such file")
    running = tmp_path / "jobs" / study.jobs[1].key
    running.mkdir()
    (running / "lease-1").write_text("{}")
    assert drawn(so_far)[1:] == ["0 done, 0 failed, 0 running"]  # it looked less than a second ago
    clock.now = 1.5
    assert drawn(so_far)[1:] == [
        "2 done, 1 failed, 1 running",
        "settings    jobs  mean accuracy",
        "plain          1            0.5",
        "more bonus     1         0.6236",
    ]
    ended(tmp_path, study.jobs[4], {"accuracy": 0.6})
    clock.now = 3.0
    assert drawn(so_far)[3] == "plain          2           0.55"
    assert drawn(so_far, width=12)[3] == "plain"


def test_rows_of_results_are_levels_too_and_many_levels_are_cut(tmp_path):
    heads = [f"h{number}" for number in range(15)]
    study = read_study({"command": "toil", "fixed": {"data": "a"}, "rows": {"head": heads}, "metric": "accuracy"})
    (job,) = study.jobs
    ended(tmp_path, job, {})
    rows = [{"metric": "accuracy", "value": number / 100, "head": head} for number, head in enumerate(heads)]
    done = {"run": "1", "seconds": 1.0, "version": "1", "numbers": rows}
    (tmp_path / "jobs" / job.key / "done.json").write_text(json.dumps(done))
    lines = drawn(SoFar(tmp_path, study))
    assert lines[3].split() == ["h0", "1", "0"] and lines[-1] == "… and 3 more" and len(lines) == 3 + 12 + 1


def test_a_damaged_job_does_not_end_the_picture(tmp_path):
    study = read_study(STUDY)
    ended(tmp_path, study.jobs[0], {"accuracy": 0.5})
    (tmp_path / "jobs" / study.jobs[0].key / "done.json").write_text("{")
    assert drawn(SoFar(tmp_path, study))[1:] == ["1 done, 0 failed, 0 running"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_it_is_drawn_at_a_terminal_alone(tmp_path, monkeypatch, stream):
    monkeypatch.setenv("TERM", "xterm")
    from concurrent.futures import ThreadPoolExecutor

    stream = stream()
    with ThreadPoolExecutor(2) as pool:
        run_study({**STUDY, "fixed": {"step_seconds": 0.2}}, out=tmp_path / "out", executor=pool, reporter=Reporter(stream))
    said = stream.getvalue()
    assert ("running" in said and "mean accuracy" in said) == stream.isatty()
