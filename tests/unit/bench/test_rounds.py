"""Every job once, whatever the engine says; the table is that of the folders."""

import io
import json
import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from crossgraft import run_study
from crossgraft.bench import job as job_module
from crossgraft.bench import rounds
from crossgraft.bench.engines import ray
from crossgraft.bench.job import do_job, do_jobs
from crossgraft.bench.lease import Limits, claim
from crossgraft.bench.study import read_study
from crossgraft.errors import DeviceLostError, OtherRunError, RunDirectoryError, StorageError, UsageError
from crossgraft.progress import Reporter
from crossgraft.running import processes
from support.studies import Here
from support.toy_jobs import registered

STUDY = {
    "command": "toil",
    "grid": {"data": ["a", "bb", "ccc", "dddd", "eeeee"]},
    "settings": {"one": {}, "more": {"bonus": 0.1}, "most": {"bonus": 0.2}},
    "seeds": 2,
}


HEADS = [("ours", 0.2), ("theirs", 0.1), ("plain", 0.0)]
"""Rows of a result, and what each has beside its value; the best first."""


@pytest.fixture(autouse=True)
def toil(monkeypatch):
    registered(monkeypatch)


def of(out, study=None, executor=None, **options):
    return run_study(study or STUDY, out=out, executor=executor or Here(), **options)


def without_times(frame):
    return frame.drop(columns=["seconds", "peak_mb"])


def test_means_differences_and_ranks_come_out_of_the_folders(tmp_path):
    result = of(tmp_path / "out")
    record = result.record
    assert (record.num_done, record.num_failed, result.exit_code) == (30, 0, 0)
    assert (record.metric, record.compare, record.over) == ("accuracy", "settings", "data")
    assert [(each.level, round(each.value, 9), each.num_pairs) for each in record.differences] == [
        ("more", 0.1, 5),
        ("most", 0.2, 5),
    ]
    assert record.friedman.methods == ["one", "more", "most"] and record.friedman.mean_ranks == [3.0, 2.0, 1.0]
    frame = pd.read_csv(tmp_path / "out" / "results.csv")
    assert len(frame) == 60 and {*frame["metric"]} == {"accuracy", "begun_at"}
    assert frame["job"].nunique() == 30 and (tmp_path / "out" / frame["run"][0] / "report.json").exists()
    cell = frame[(frame["metric"] == "accuracy") & (frame["data"] == "ccc") & (frame["settings"] == "more")]
    assert cell["value"].round(9).tolist() == [0.15, 0.17]


def test_rows_of_results_are_compared_over_the_targets(tmp_path, monkeypatch):
    def two_heads(frame):
        value = frame["value"][0]
        return [{"metric": "accuracy", "value": value + more, "low": None, "high": None, "head": head} for head, more in HEADS]

    monkeypatch.setattr("crossgraft.bench.job.numbers_of", two_heads)
    study = {**STUDY, "settings": {}, "rows": {"head": ["plain", "ours", "theirs", "none"]}}
    record = of(tmp_path, study).record
    assert (record.num_jobs, record.num_done, record.compare, record.over) == (10, 10, "head", "data")
    values = [(each.level, each.value and round(each.value, 9), each.num_pairs) for each in record.differences]
    assert values == [("ours", 0.2, 5), ("theirs", 0.1, 5), ("none", None, 0)]
    assert len(record.cells) == 20 and {each.num_done for each in record.cells} == {2}
    assert record.seconds < 2 * sum(pd.read_csv(tmp_path / "results.csv").drop_duplicates("job")["seconds"])
    bad = {**study, "fixed": {"error": "no such lesion"}}
    cells = of(tmp_path / "bad", bad).record.cells
    assert [each.num_failed for each in cells] == [2] * 20


def test_what_an_engine_loses_is_submitted_again_and_the_table_is_the_same(tmp_path):
    whole, lossy = Here(), Here(lost={2, 3, 17, 31, 32})
    first, second = of(tmp_path / "whole", executor=whole), of(tmp_path / "lossy", executor=lossy)
    pd.testing.assert_frame_equal(without_times(first.to_frame()), without_times(second.to_frame()))
    assert (whole.calls, lossy.calls) == (30, 30 + 3 + 2)


def test_an_engine_that_does_nothing_ends_the_study_with_what_is_there(tmp_path, capsys):
    result = of(tmp_path, executor=Here(lost=range(3, 1000)))
    assert (result.record.num_done, result.exit_code) == (2, 6)
    assert "came back 4 times without having ended a job (a worker is gone)" in capsys.readouterr().err
    assert of(tmp_path).exit_code == 0


def test_a_job_that_fails_stands_there_with_its_reason_until_it_is_asked_for_again(tmp_path):
    bad = {**STUDY, "settings": {"one": {}, "bad": {"error": "no such lesion"}}, "seeds": 1}
    result = of(tmp_path, bad)
    assert (result.record.num_done, result.record.num_failed, result.exit_code) == (5, 5, 6)
    assert {failure.reason for failure in result.record.failures} == {"no such lesion"}
    again = Here()
    assert of(tmp_path, bad, again).exit_code == 6 and again.calls == 0
    assert of(tmp_path, bad, again, retry_failed=True).record.num_failed == 5 and again.calls == 5


def test_a_full_disk_is_no_fault_of_a_job(tmp_path):
    full = {**STUDY, "fixed": {"error": "full"}, "seeds": 1}
    with pytest.raises(StorageError, match=r"No space left.*the same command goes on"):
        of(tmp_path, full)
    status = of(tmp_path, full, status=True).state
    assert (status.num_failed, status.num_done) == (0, 0) and status.num_stopped + status.num_missing == 15


def test_a_new_level_computes_its_own_cells_only_and_a_changed_one_is_refused(tmp_path):
    of(tmp_path)
    more, counting = {**STUDY, "grid": {"data": [*STUDY["grid"]["data"], "f"]}}, Here()
    assert of(tmp_path, more, counting).record.num_jobs == 36 and counting.calls == 6
    changed = {**STUDY, "fixed": {"steps": 3}}
    with pytest.raises(RunDirectoryError, match=r"steps was not set, now 3 \(cell data a, settings one, seed 0\).*--overwrite"):
        of(tmp_path, changed)
    counting = Here()
    assert of(tmp_path, changed, counting, overwrite=True).record.num_done == 30 and counting.calls == 30


def test_folders_of_others_stay_as_they_are(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OtherRunError, match="not a crossgraft run"):
        of(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_status_and_plan_do_nothing(tmp_path):
    out = tmp_path / "out"
    assert of(out, status=True).state.num_missing == 30 and not out.exists()
    of(out, {**STUDY, "seeds": 1})
    state = of(out, plan=True).state
    assert (state.num_done, state.num_missing) == (15, 15) and state.seconds_per_job > 0 and state.num_bytes_per_job > 100
    assert "30 jobs (15 done, 15 missing)" in of(out, status=True).summary()


def test_the_command_for_other_machines_does_the_same_study(tmp_path):
    study = tmp_path / "study.yaml"
    study.write_text("command: toil\ngrid: {data: [a, bb]}\nsmoke: {seeds: 1}\n")
    script = run_study(study, out=tmp_path / "out", plan=True, smoke=True, allow_code=["my nets.py"]).script
    assert f"crossgraft bench {study} --out {tmp_path / 'out'} --smoke --code 'my nets.py' --workers 1 --quiet" in script
    assert "--smoke" not in run_study(study, out=tmp_path / "out", plan=True).script


def test_a_worker_of_another_version_is_refused(tmp_path):
    job = read_study(STUDY).jobs[0]
    from dataclasses import replace

    with pytest.raises(UsageError, match=r"made by crossgraft 0\.0\.1"):
        do_job(tmp_path, replace(job, version="0.0.1"), driver=None, seconds=60, limits=Limits())


def test_two_that_are_given_the_same_job_do_it_once(tmp_path):
    job = read_study(STUDY).jobs[0]
    once = {"driver": None, "seconds": 60, "limits": Limits()}
    assert [do_job(tmp_path, job, **once) for _ in range(2)] == ["done", "done"]
    assert [path.name for path in (tmp_path / "jobs" / job.key).iterdir() if path.name.isdecimal()] == ["1"]


def test_a_file_system_without_links_is_found_before_any_work(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("os.link", refuse)
    with pytest.raises(StorageError, match=r"cannot make links \(Operation not supported\)"):
        of(tmp_path)
    assert not (tmp_path / "jobs").exists()


class Elsewhere(Here):
    """A worker whose current folder is another one."""

    def submit(self, fn, /, *args, **kwargs):
        here = Path.cwd()
        os.chdir("/")
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            os.chdir(here)


def test_paths_mean_the_same_where_workers_are_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert of("out", executor=Elsewhere()).exit_code == 0
    assert len(list((tmp_path / "out" / "jobs").iterdir())) == 30


def test_a_machine_without_the_folder_of_the_driver_does_jobs_too(tmp_path):
    here, job = Path.cwd(), read_study(STUDY).jobs[0]
    told = {"place": str(tmp_path / "away"), "driver": None, "seconds": 60, "limits": Limits()}
    assert do_jobs(tmp_path, [job], **told) == ["done"] and Path.cwd() == here


def test_a_job_that_others_are_at_work_on_is_waited_for_however_often_it_is_busy(tmp_path, monkeypatch):
    monkeypatch.setattr(rounds, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(rounds, "state_of", lambda *_, **__: "stopped")  # by a clock that goes wrong
    of(tmp_path, executor=Here(lost=range(1, 1000)))  # makes the folder
    lease = claim(tmp_path / "jobs" / read_study(STUDY).jobs[3].key, driver=None, seconds=60)
    numbers = {"seconds": 1.0, "version": "1", "numbers": []}
    threading.Timer(0.5, lease.finish, [numbers]).start()
    result = of(tmp_path)
    assert (result.record.num_done, result.exit_code) == (30, 0)


class Silent(Here):
    """Never gives anything back."""

    def submit(self, fn, /, *args, **kwargs):
        super().submit(fn, *args, **kwargs)
        return Future()


def test_what_is_done_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(rounds, "LOOK_SECONDS", 0.02)
    assert of(tmp_path, executor=Silent()).exit_code == 0


@pytest.mark.parametrize("name", ["job_minutes", "job_memory", "lease_seconds", "wait_minutes"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_limits_are_above_zero(tmp_path, name, value):
    with pytest.raises(UsageError, match=f"{name} must be"):
        of(tmp_path / "out", **{name: value})
    assert not (tmp_path / "out").exists()


def test_an_engine_that_is_not_known_is_refused_before_anything_is_written(tmp_path):
    for wrong in ({"engine": "slurmm"}, {"engine_option": "partition"}):
        with pytest.raises(UsageError):
            run_study(STUDY, out=tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


def test_a_worker_that_cannot_be_started_is_said(monkeypatch):
    class Process:
        def __init__(self, **_):
            self.exitcode = None

        def start(self):
            raise BlockingIOError(11, "Resource temporarily unavailable")

    context = SimpleNamespace(Process=Process, Pipe=multiprocessing.Pipe)
    monkeypatch.setattr(processes.multiprocessing, "get_context", lambda _: context)
    pool = processes.Processes(1)
    with pytest.raises(BrokenProcessPool, match="Resource temporarily unavailable"):
        pool.submit(len, "a").result(timeout=10)
    pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", "3", '{"cells": []}', '{"cells": {"a": {}}}', '{"cells": {"a": {"job": "a"}}}']
)
def test_a_study_file_that_is_damaged_can_be_removed_as_it_is_said(tmp_path, content):
    of(tmp_path, {**STUDY, "seeds": 1}, Here(lost=range(3, 1000)))
    (tmp_path / "study.json").write_text(content)
    with pytest.raises(RunDirectoryError, match=r"study\.json is damaged\. Remove it"):
        of(tmp_path, {**STUDY, "seeds": 1})
    (tmp_path / "study.json").unlink()
    (tmp_path / "run.json").unlink()
    counting = Here()
    assert of(tmp_path, {**STUDY, "seeds": 1}, counting).exit_code == 0 and counting.calls == 13


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("There is no file /home/alice/skin/1.png.", "There is no file …/1.png."),
        ("'/srv/alice/skin' and C:\\Users\\alice\\skin are no folders", "'…/skin' and …/skin are no folders"),
        ("12/24 of train/val at https://example.org/a/b", "12/24 of train/val at https://example.org/a/b"),
    ],
)
def test_a_reason_names_no_folders_of_people(tmp_path, error, reason):
    study = {"command": "toil", "fixed": {"data": "a", "error": error}}
    result = of(tmp_path, study)
    assert [failure.reason for failure in result.record.failures] == [reason]
    assert "alice" not in "".join(file.read_text() for file in (tmp_path / "jobs").glob("*/failed.json"))


def test_progress_counts_what_is_left(tmp_path):
    of(tmp_path, {**STUDY, "seeds": 1})
    first, second = io.StringIO(), io.StringIO()
    of(tmp_path, reporter=Reporter(quiet=False, stream=first))
    of(tmp_path, reporter=Reporter(quiet=False, stream=second))
    assert "Jobs left of 30: " in first.getvalue() and "Jobs" not in second.getvalue()


def test_relative_paths_lead_from_where_the_study_was_begun(tmp_path, monkeypatch):
    study = {**STUDY, "grid": {"data": ["words.txt"]}, "seeds": 1}
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "words.txt").touch()
    monkeypatch.chdir(tmp_path / "one")
    assert of(tmp_path / "out", study).exit_code == 0
    monkeypatch.chdir(tmp_path / "other")
    with pytest.raises(RunDirectoryError, match="begun in another folder, from which its relative paths lead elsewhere"):
        of(tmp_path / "out", study)
    monkeypatch.chdir(tmp_path / "one")
    assert of(tmp_path / "out", study, Here()).exit_code == 0
    assert str(tmp_path) not in (tmp_path / "out" / "study.json").read_text()


def test_a_limit_that_would_end_the_process_which_asked_is_refused(tmp_path):
    with pytest.raises(UsageError, match="this executor does jobs in the process that started it"):
        of(tmp_path, job_minutes=1.0)
    assert not list((tmp_path / "jobs").glob("*/*"))


def test_what_no_job_can_go_on_after_comes_back_through_an_engine_that_loses_what_is_raised(tmp_path):
    """As submitit does, which brings back the text of an error."""

    class Lossy(Here):
        def submit(self, fn, /, *args, **kwargs):
            future = super().submit(fn, *args, **kwargs)
            if future.exception() is not None:
                lost, future = future.exception(), Future()
                future.set_exception(RuntimeError(str(lost)))
            return future

    with pytest.raises(StorageError, match="No space left"):
        of(tmp_path, {**STUDY, "fixed": {"error": "full"}, "seeds": 1}, Lossy())


def test_words_and_numbers_in_one_column_are_no_reason_to_leave_out_parquet(tmp_path):
    from crossgraft.bench import verb

    frame = pd.DataFrame({"about": ["a", 2.0, None], "value": [0.5, 1.0, 2.0]})
    pytest.importorskip("pyarrow")
    (tmp_path / "a.parquet").write_bytes(verb._as_parquet(frame))
    read = pd.read_parquet(tmp_path / "a.parquet")
    assert read["about"].tolist()[:2] == ["a", "2.0"] and read["value"].tolist() == [0.5, 1.0, 2.0]
    result = of(tmp_path / "out")
    assert len(pd.read_parquet(tmp_path / "out" / "results.parquet")) == len(result.to_frame()) == 60


def test_a_job_that_was_killed_between_its_report_and_the_word_done_is_gone_on_with(tmp_path):
    whole = of(tmp_path / "out").to_frame()
    for done in (tmp_path / "out" / "jobs").glob("*/done.json"):
        done.unlink()
        for lease in done.parent.glob("lease-1"):
            lease.rename(f"{lease}.released")
    again = of(tmp_path / "out").to_frame()
    assert set(again.loc[again["metric"] == "begun_at", "value"]) == {2.0}
    pd.testing.assert_frame_equal(
        *(frame.loc[frame["metric"] == "accuracy"].drop(columns=["run", "seconds"]) for frame in (again, whole))
    )


def files(folder):
    """Two data sets, a folder and a table that names an image beside it."""
    (folder / "scans" / "yes").mkdir(parents=True)
    (folder / "scans" / "yes" / "1.png").write_bytes(b"one")
    (folder / "table.csv").write_text("path,label\nbeside/2.png,yes\n")
    (folder / "beside").mkdir()
    (folder / "beside" / "2.png").write_bytes(b"two")
    return {"command": "toil", "grid": {"data": ["scans", "table.csv"]}, "seeds": 2}


CHANGES = {
    "scans/yes/1.png": lambda file: file.write_bytes(b"another"),
    "beside/2.png": lambda file: file.write_bytes(b"2wo"),
    "scans/yes/3.png": lambda file: file.write_bytes(b"more"),
    "table.csv": lambda file: file.write_text("path,label\nbeside/2.png,no\n"),
}


@pytest.mark.parametrize("changed", CHANGES)
def test_files_that_changed_under_their_name_are_refused_or_their_jobs_done_again(tmp_path, monkeypatch, changed):
    monkeypatch.chdir(tmp_path)
    study = files(tmp_path)
    of("out", study)
    of("out", study)
    CHANGES[changed](tmp_path / changed)
    data = "scans" if changed.startswith("scans") else "table.csv"
    with pytest.raises(RunDirectoryError, match=rf"changed since they were done: {data} \(2 jobs\)\. Choose another --out"):
        of("out", study)
    stream = io.StringIO()
    result = of("out", study, overwrite=True, reporter=Reporter(stream))
    assert "Laid aside, as they were done with other files: 2 jobs." in stream.getvalue()
    assert result.record.num_done == 4 and len(list(Path("out/jobs").glob("*-before-1/done.json"))) == 2
    assert of("out", study).record.num_done == 4


def test_copies_with_other_times_and_the_folder_of_the_study_itself_are_no_change(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = files(tmp_path)
    study["grid"]["data"].append(".")
    of("out", study)
    for file in tmp_path.glob("[sbt]*/**/*"):
        os.utime(file, (1, 1))
    assert of("out", study).record.num_done == 6
    (tmp_path / "scans").rename(tmp_path.parent / f"{tmp_path.name}-away")
    (tmp_path / "scans").mkdir()  # still named, and nothing in it
    stream = io.StringIO()
    del study["grid"]["data"][2]
    of("out", study, reporter=Reporter(stream))
    assert "scans, which 2 jobs read, is not here, so that nobody looked whether it has changed." in stream.getvalue()


def test_jobs_of_earlier_versions_did_not_note_their_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study, stream = files(tmp_path), io.StringIO()
    of("out", study)
    for done in Path("out/jobs").glob("*/done.json"):
        done.write_text(json.dumps({name: value for name, value in json.loads(done.read_text()).items() if name != "files"}))
    assert of("out", study, reporter=Reporter(stream)).record.num_done == 4
    assert "What 4 jobs read was not noted, so that nobody looked whether it has changed." in stream.getvalue()


def test_a_choice_that_is_called_like_a_folder_is_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scratch").mkdir()
    (tmp_path / "start.pt").touch()
    grid = {"method": ["scratch"], "model": ["test_vit"], "regularizer": ["l2_sp:reference=start.pt"]}
    (job,) = read_study({"command": "tune", "fixed": {"data": "digits"}, "grid": grid}).jobs
    assert "scratch" not in job.named and {"digits", "test_vit", "start.pt"} <= {*job.named}


def test_an_attempt_whose_files_changed_meanwhile_begins_anew(tmp_path, monkeypatch):
    """Its run folder is left aside: the verb would refuse to go on in it with other data."""
    monkeypatch.chdir(tmp_path)
    study = {**files(tmp_path), "fixed": {"steps": 3}, "seeds": 1}
    of("out", study)
    for done in Path("out/jobs").glob("*/done.json"):
        done.unlink()
        (done.parent / "lease-1").rename(done.parent / "lease-1.released")
    CHANGES["beside/2.png"](tmp_path / "beside/2.png")
    frame = of("out", study).to_frame()
    begun = frame[frame["metric"] == "begun_at"].set_index("data")["value"]
    assert begun.to_dict() == {"scans": 3.0, "table.csv": 0.0}
    assert len(list(Path("out/jobs").glob("*/1-other-files"))) == 1


class Dies(Executor):
    """Each call is lost with its process, which had begun the job on another machine."""

    def __init__(self, process):
        self.process, self.number = process, 0

    def submit(self, fn, folder, jobs, /, **told):
        self.number += 1
        own = Path(folder) / "jobs" / jobs[0].key
        own.mkdir(parents=True, exist_ok=True)
        facts = {"process": self.process, "machine": "n7", "driver": told["driver"], "seconds": 60.0}
        (own / f"lease-{self.number}").write_text(json.dumps(facts))
        os.utime(own / f"lease-{self.number}", (1_800_000_000, 1_800_000_000))
        future = Future()
        future.set_exception(BrokenProcessPool("a worker process ended with exit code -9"))
        return future


def test_of_a_job_whose_process_dies_again_and_again_is_said_what_is_known(tmp_path):
    name = "from crossgraft.storage.atomic import this_process; print(this_process())"
    gone = subprocess.run([sys.executable, "-c", name], capture_output=True, text=True, check=True).stdout.strip()
    record = of(tmp_path / "out", {"command": "toil", "fixed": {"data": "a"}}, Dies(gone)).record
    assert record.failures[0].reason.startswith(
        "Its process died 3 times without a word (last at 2027-01-15 08:00 UTC on n7, engine: a worker process ended with exit "
        "code -9). "
    )
    assert "--retry-failed" in record.failures[0].reason


def test_a_gpu_that_is_lost_fails_no_job(tmp_path, monkeypatch):
    lost, call = [1], job_module.call

    def lose(job, out):
        if lost:
            lost.pop()
            raise DeviceLostError("The GPU is gone.")
        return call(job, out)

    monkeypatch.setattr(job_module, "call", lose)
    result = of(tmp_path, {**STUDY, "seeds": 1})
    assert (result.record.num_done, result.record.num_failed, lost) == (15, 0, [])


def test_ray_is_given_one_function_for_all_jobs():
    given = []

    def remote(**options):
        def make(function):
            given.append((function, options))
            return SimpleNamespace(remote=lambda *values: SimpleNamespace(future=lambda: function(*values)))

        return make

    tasks = ray._Tasks(SimpleNamespace(remote=remote), 2)
    assert [tasks.submit(len, "abc"), tasks.submit(len, "a")] == [3, 1]
    assert given == [(len, {"num_cpus": 2, "max_retries": 3})]
