"""One process at a time is at work on a job; what was stopped and wakes up too late changes nothing."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest

from crossgraft.bench import lease as leases
from crossgraft.bench.lease import Limits, claim, num_deaths, state_of
from crossgraft.storage.atomic import this_process


def taken(folder, *, driver=None, seconds=60.0):
    return claim(folder, driver=driver, seconds=seconds)


def ended_process():
    """The name of a process that is gone."""
    name = "from crossgraft.storage.atomic import this_process; print(this_process())"
    return subprocess.run([sys.executable, "-c", name], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module")
def gone():
    return ended_process()


def of_process(folder, number, process, driver=None):
    folder.mkdir(exist_ok=True)
    (folder / f"lease-{number}").write_text(json.dumps({"process": process, "driver": driver}))


def test_only_one_of_many_that_begin_at_once_gets_it(tmp_path):
    got, start = [], threading.Barrier(8)

    def begin():
        start.wait()
        got.append(taken(tmp_path / "job"))

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(lease is not None for lease in got) == 1


def test_what_left_in_order_or_is_gone_is_taken_over_at_once_with_its_run(tmp_path, gone):
    first = taken(tmp_path)
    first.run.mkdir()
    (first.run / "checkpoint").write_text("half")
    assert taken(tmp_path) is None and state_of(tmp_path, seconds=60) == "running"
    first.release()
    assert state_of(tmp_path, seconds=60) == "stopped" and num_deaths(tmp_path) == 0
    second = taken(tmp_path)
    assert (second.run / "checkpoint").read_text() == "half" and not first.run.exists()
    of_process(tmp_path, 2, gone)
    assert state_of(tmp_path, seconds=60) == "stopped"
    assert taken(tmp_path).number == 3


def test_a_process_that_wakes_up_when_another_has_taken_over_changes_nothing(tmp_path):
    late = taken(tmp_path, seconds=0.3)
    os.utime(late.file, (1, 1))  # no sign of life for a long time
    second = taken(tmp_path, seconds=0.3)
    assert second is not None and not late.is_held
    assert not late.fail("late") and not late.finish({"numbers": ["late"]})
    assert second.finish({"numbers": ["in time"]})
    assert not late.finish({"numbers": ["late"]}) and not second.finish({"numbers": ["twice"]})
    assert json.loads((tmp_path / "done.json").read_text()) == {"run": "2", "numbers": ["in time"]}
    assert not second.fail("after the end") and state_of(tmp_path, seconds=60) == "done"


@pytest.mark.parametrize("jump", [-1e6, 1e6], ids=["back", "ahead"])
def test_a_clock_that_jumps_takes_nothing_from_a_living_process(tmp_path, jump):
    lease = taken(tmp_path, seconds=0.3)
    then = time.time() + jump
    os.utime(lease.file, (then, then))
    with lease.kept(Limits(), may_exit=False):
        assert taken(tmp_path, seconds=0.3) is None


def test_only_deaths_that_the_one_who_asked_has_outlived_are_counted(tmp_path, gone):
    for number, driver in enumerate([this_process(), gone, None, this_process()], start=1):
        of_process(tmp_path, number, gone, driver)
    assert num_deaths(tmp_path) == 3
    (tmp_path / "lease-4").rename(tmp_path / "lease-4.released")
    assert num_deaths(tmp_path) == 2


def test_a_lease_of_another_machine_is_given_up_only_when_nothing_comes_from_it(tmp_path):
    of_process(tmp_path, 1, "ffffff-1-1")
    assert taken(tmp_path, seconds=0.3) is None
    os.utime(tmp_path / "lease-1", (1, 1))
    assert taken(tmp_path, seconds=0.3).number == 2


def test_limits_end_the_process_with_a_reason(tmp_path, monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr(leases.os, "_exit", lambda code: ended.set())
    for folder, limits, reason in (
        ("time", Limits(seconds=0.05), "longer than the 0.000833333 minutes of --job-minutes"),
        ("memory", Limits(num_bytes=1), "more than the 9.31323e-10 GiB of --job-memory"),
    ):
        ended.clear()
        lease = taken(tmp_path / folder, seconds=0.3)
        with lease.kept(limits, may_exit=True):
            assert ended.wait(10)
        assert reason in json.loads((tmp_path / folder / "failed.json").read_text())["reason"]
        assert state_of(tmp_path / folder, seconds=60) == "failed"


def test_who_looks_more_often_than_a_process_shows_signs_of_life_takes_nothing_from_it(tmp_path):
    lease = taken(tmp_path, seconds=60)
    os.utime(lease.file, (time.time() - 30, time.time() - 30))
    assert state_of(tmp_path, seconds=0.1) == "running" and taken(tmp_path, seconds=0.1) is None


@pytest.mark.parametrize("ended", ["done.json", "failed.json"])
def test_what_ended_between_two_looks_is_not_begun_again(tmp_path, gone, ended):
    of_process(tmp_path, 1, gone)
    (tmp_path / "1").mkdir()
    (tmp_path / ended).write_text("{}")
    assert taken(tmp_path) is None and (tmp_path / "1").is_dir()


@pytest.mark.parametrize(
    "content", ["", "[]", "[1]", "{}", '{"process": 3, "driver": null}', '{"process": "x", "driver": null}', "\0"]
)
def test_a_lease_that_was_never_written_whole_is_given_up_when_it_is_old(tmp_path, content):
    (tmp_path / "lease-1").write_text(content)
    assert state_of(tmp_path, seconds=60) == "running" and num_deaths(tmp_path) == 0 and taken(tmp_path) is None
    os.utime(tmp_path / "lease-1", (1, 1))
    assert state_of(tmp_path, seconds=60) == "stopped" and taken(tmp_path, seconds=0.1).number == 2


def test_signs_of_life_go_on_after_a_file_server_was_away(tmp_path, monkeypatch):
    lease, looks = taken(tmp_path, seconds=0.06), []

    def away(folder):
        looks.append(folder)
        raise PermissionError(13, "away")

    monkeypatch.setattr(leases, "_leases", away)
    with lease.kept(Limits(), may_exit=True):
        deadline = time.monotonic() + 10
        while len(looks) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert len(looks) >= 3


def test_a_process_that_ends_as_it_lost_its_lease_is_no_death_of_the_job(tmp_path, monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr(leases.os, "_exit", lambda code: ended.set())
    late = taken(tmp_path, seconds=0.3)
    (tmp_path / "lease-2").write_text("{}")
    with late.kept(Limits(), may_exit=True):
        assert ended.wait(10)
    assert (tmp_path / "lease-1.released").exists()
