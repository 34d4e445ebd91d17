"""How long a study takes is not what its first job takes."""

import numpy as np
import pytest

from crossgraft.bench import forecast, run_study
from crossgraft.bench.study import read_study
from crossgraft.errors import UsageError
from crossgraft.progress import Reporter
from support.studies import Here
from support.toy_jobs import registered

STUDY = {
    "command": "toil",
    "grid": {"data": ["a", "bb", "ccc"]},
    "settings": {"quick": {"steps": 1}, "slow": {"steps": 2}, "slowest": {"steps": 3}},
    "seeds": 2,
}
OF_DATA, OF_SETTINGS = {"a": 1.0, "bb": 2.0, "ccc": 5.0}, {"quick": 1.0, "slow": 30.0, "slowest": 100.0}


@pytest.fixture(autouse=True)
def toil(monkeypatch):
    registered(monkeypatch)


def true_seconds(study):
    return np.array([OF_DATA[cell["data"]] * OF_SETTINGS[cell["settings"]] for cell in study.cells])


def planning(monkeypatch, seconds):
    """Jobs in the order in which they are planned."""
    asked = []

    def planned(job):
        asked.append(job)
        return seconds(job)

    monkeypatch.setattr(forecast, "planned_seconds", planned)
    return asked


def test_times_are_those_of_the_levels():
    study = read_study(STUDY)
    seconds = true_seconds(study)
    known = {study.jobs[place].key: seconds[place] for place in range(0, 18, 2)}  # one seed of each
    np.testing.assert_allclose(forecast.expected_seconds(study, known), seconds, rtol=0.2)
    some = {study.jobs[place].key: seconds[place] for place, cell in enumerate(study.cells) if cell["settings"] == "quick"}
    expected = forecast.expected_seconds(study, some)
    assert expected.sum() == pytest.approx(3 * sum(some.values()))  # what no known job has counts as a mean level


def test_a_plan_asks_jobs_of_every_level(monkeypatch):
    study = read_study(STUDY)
    by_key = {job.key: seconds for job, seconds in zip(study.jobs, true_seconds(study), strict=True)}
    asked = planning(monkeypatch, lambda job: by_key[job.key])
    state = run_study(STUDY, out="nowhere", plan=True).state
    cells = [study.cells[[job.key for job in study.jobs].index(job.key)] for job in asked]
    assert {cell["data"] for cell in cells} == {*OF_DATA} and {cell["settings"] for cell in cells} == {*OF_SETTINGS}
    assert len(asked) <= 5
    mean = true_seconds(study).mean()
    assert mean / 1.5 < state.seconds_per_job < 1.5 * mean and by_key[study.jobs[0].key] < mean / 50


def test_a_status_reckons_with_what_is_left(tmp_path, monkeypatch):
    study, out = read_study(STUDY), tmp_path / "out"
    only_quick = {**STUDY, "settings": {"quick": STUDY["settings"]["quick"]}}
    run_study(only_quick, out=out, executor=Here())
    seconds = dict(zip((job.key for job in study.jobs), true_seconds(study), strict=True))
    asked = []

    def some_of(study, out, done):
        asked.extend(done)
        return {job.key: seconds[job.key] for job in study.jobs[::2]}  # one seed of each

    monkeypatch.setattr("crossgraft.bench.verb.seconds_of_done", some_of)
    state = run_study(STUDY, out=out, status=True).state
    left = [took for took, cell in zip(true_seconds(study), study.cells, strict=True) if cell["settings"] != "quick"]
    assert len(asked) == state.num_done == 6 and state.num_missing == len(left)
    assert state.seconds_per_job == pytest.approx(np.mean(left), rel=0.2)
    assert state.seconds_left == pytest.approx(state.seconds_per_job * len(left) / min(state.workers, len(left)))


def test_no_further_job_is_planned_after_a_while(monkeypatch):
    now = iter(np.arange(0.0, 10_000.0, forecast.PLANNING_SECONDS))
    asked = planning(monkeypatch, lambda job: 1.0)
    study = read_study(STUDY)
    known = forecast.seconds_of_plans(study, range(18), Reporter(quiet=True, clock=lambda: next(now)))
    assert len(known) == len(asked) < 3


def test_a_job_that_cannot_be_planned_is_named_and_the_others_are(monkeypatch, capsys):
    def seconds(job):
        if len(asked) == 2:
            raise UsageError("There are no weights.")
        return 4.0

    asked = planning(monkeypatch, seconds)
    assert run_study(STUDY, out="nowhere", plan=True).state.seconds_per_job == pytest.approx(4.0)
    assert "cannot be planned: There are no weights." in " ".join(capsys.readouterr().err.split())

    def refuse(job):
        raise UsageError("There are no weights.")

    planning(monkeypatch, refuse)
    with pytest.raises(UsageError, match="There are no weights"):
        run_study(STUDY, out="nowhere", plan=True)


def test_a_verb_without_plans_says_no_time():
    assert run_study(STUDY, out="nowhere", plan=True).state.seconds_per_job is None


def test_seeds_alone_are_planned_once(monkeypatch):
    asked = planning(monkeypatch, lambda job: 1.0)
    run_study({"command": "toil", "fixed": {"data": "a"}, "seeds": 20}, out="nowhere", plan=True)
    assert len(asked) == 1


def test_a_job_whose_plan_knows_no_time_hides_no_other(monkeypatch):
    asked = planning(monkeypatch, lambda job: 4.0 if len(asked) == 1 else None)
    assert run_study(STUDY, out="nowhere", plan=True).state.seconds_per_job == pytest.approx(4.0)
    assert len(asked) > 1
