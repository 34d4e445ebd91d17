"""A sweep: in order, each job once, whatever stops it; a job that fails stops no other."""

import pytest
import torch

from crossgraft.errors import CrossgraftError, DataError, RunDirectoryError, StorageError
from crossgraft.running.jobs import Job, num_read_back, results_of, run_jobs, worker_pool
from support.written_work import Written


def jobs(*specs, key="a"):
    return [Job(f"job {number}", spec, key) for number, spec in enumerate(specs)]


def done(folder):
    path = folder / "done"
    return path.read_text().splitlines() if path.is_file() else []


def facts(outcomes):
    return [(outcome.job.name, outcome.result, outcome.reason, outcome.was_read_back) for outcome in outcomes]


def test_jobs_are_done_in_order_and_each_is_told_as_it_ends(tmp_path):
    told = []
    outcomes = run_jobs(jobs(3, 2), Written(tmp_path), keep_going=False, told=lambda one: told.append((one, done(tmp_path))))
    assert facts(outcomes) == [("job 0", 9, "", False), ("job 1", 4, "", False)]
    assert told == [(outcomes[0], ["job 0"]), (outcomes[1], ["job 0", "job 1"])]
    assert run_jobs([], Written(tmp_path), keep_going=False) == []


def test_what_is_done_is_read_back_and_another_key_is_done_anew(tmp_path):
    run_jobs(jobs(3, 2), Written(tmp_path), keep_going=False)
    outcomes = run_jobs(jobs(3, 2, 1), Written(tmp_path), keep_going=False)
    assert facts(outcomes) == [("job 0", 9, "", True), ("job 1", 4, "", True), ("job 2", 1, "", False)]
    assert num_read_back(outcomes) == 2
    assert num_read_back(run_jobs(jobs(3, key="b"), Written(tmp_path), keep_going=False)) == 0


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (DataError("Two\n lines."), "Two lines."),
        (RuntimeError(), "RuntimeError"),
        (torch.OutOfMemoryError("No memory."), "No memory."),
    ],
)
def test_a_job_that_fails_is_a_reason_among_several_and_an_error_alone(tmp_path, error, reason):
    outcomes = run_jobs(jobs(3, error, 2), Written(tmp_path), keep_going=True)
    assert facts(outcomes) == [("job 0", 9, "", False), ("job 1", None, reason, False), ("job 2", 4, "", False)]
    assert results_of(outcomes) == [9, 4]
    with pytest.raises(type(error)):
        run_jobs(jobs(error, key="b"), Written(tmp_path), keep_going=False)


@pytest.mark.parametrize(
    ("error", "reason"), [(KeyError("width"), "KeyError: 'width'"), (MemoryError(), "MemoryError"), (DataError("No."), "No.")]
)
def test_an_internal_error_is_told_from_a_sentence_where_every_error_is_a_fault_of_its_job(tmp_path, monkeypatch, error, reason):
    work = Written(tmp_path)
    monkeypatch.setattr(work, "faults", (Exception,), raising=False)
    assert [outcome.reason for outcome in run_jobs(jobs(error), work, keep_going=True)] == [reason]


@pytest.mark.parametrize(
    "error", [StorageError("Full."), RunDirectoryError("In use."), KeyboardInterrupt(), TypeError(), MemoryError()]
)
def test_what_is_no_fault_of_the_job_stops_all(tmp_path, error):
    with pytest.raises(type(error)):
        run_jobs(jobs(3, error, 2), Written(tmp_path), keep_going=True)
    assert done(tmp_path) == ["job 0"]


def test_a_sweep_that_was_stopped_does_only_what_is_missing(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs(3, KeyboardInterrupt(), 1), Written(tmp_path), keep_going=True)
    outcomes = run_jobs(jobs(3, 2, 1), Written(tmp_path), keep_going=True)
    assert done(tmp_path) == ["job 0", "job 1", "job 2"]
    assert [outcome.was_read_back for outcome in outcomes] == [True, False, False]


@pytest.mark.slow
def test_worker_processes_give_the_same_and_end_in_the_same_errors(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    asked, told = jobs(3, DataError("No."), 2, 1), []
    for folder in (here, there):
        folder.mkdir()
        run_jobs(asked[:1], Written(folder), keep_going=True)
    with worker_pool(2) as pool:
        found = run_jobs(asked, Written(there), keep_going=True, told=told.append, executor=pool)
        with pytest.raises(CrossgraftError, match=r"^No\.$"):
            run_jobs(asked, Written(there), keep_going=False, executor=pool)
        with pytest.raises(StorageError, match="disk is full"):
            run_jobs(asked, Written(tmp_path / "gone"), keep_going=True, executor=pool)
    assert facts(found) == facts(run_jobs(asked, Written(here), keep_going=True))
    assert found[0].was_read_back
    assert sorted(done(there)) == sorted(done(here)) == ["job 0", "job 2", "job 3"]
    assert {id(one) for one in told} == {id(one) for one in found}
