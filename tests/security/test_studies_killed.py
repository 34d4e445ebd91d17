"""Workers and drivers killed, stopped and woken at random points: nothing is lost, counted twice, or shown that is not there."""

import os
import random
import signal
import time
from functools import partial
from pathlib import Path

import pandas as pd
import psutil
import pytest

from crossgraft import run_study
from support import beside
from support.here import Here
from support.studies import NUM_JOBS, Place, undisturbed

POINTS = int(os.environ.get("CROSSGRAFT_POINTS", "30"))
TWO = ("--workers", "2")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The table of a study that nobody disturbed."""
    return undisturbed(tmp_path_factory.mktemp("whole"))


def workers_of(process):
    return [child for child in psutil.Process(process.pid).children() if "spawn_main" in " ".join(child.cmdline())]


def kill_at_random(place, rng, num_points):
    """Begin the study again and again, and kill its driver or one of its workers; how often each was hit."""
    hits, process = {"driver": 0, "worker": 0}, place.start(*TWO)
    while sum(hits.values()) < num_points and place.num_done() < NUM_JOBS - 8:  # one that dies three times is failed
        time.sleep(rng.uniform(0.05, 0.6))
        if process.poll() is not None:
            break
        try:
            victims = workers_of(process)
            if not victims:
                continue
            if rng.random() < 0.7:
                rng.choice(victims).kill()
                hits["worker"] += 1
            else:
                process.kill()
                process.communicate()
                hits["driver"] += 1
                process = place.start(*TWO)
        except psutil.NoSuchProcess:
            continue
    process.communicate(timeout=300)
    return hits


def killed_at_random_points_the_table_is_that_of_a_whole_study(tmp_path, whole):
    place, rng = Place(tmp_path), random.Random(46)
    hits = kill_at_random(place, rng, POINTS)
    code, said, warned = place.ended(*TWO)
    pd.testing.assert_frame_equal(place.table(), whole)
    assert code == 0 and "24 of 24 jobs done" in said, (hits, warned)
    assert hits["worker"], hits


def a_worker_that_is_stopped_and_woken_when_its_job_is_done_elsewhere_changes_nothing(tmp_path, whole):
    """Its driver goes on, a second driver takes the job over; woken, the first worker ends itself."""
    place = Place(tmp_path)
    first = place.start(*TWO, "--lease-seconds", "2")
    while not (stopped := workers_of(first)) or not place.num_done():
        time.sleep(0.05)
    stopped[0].send_signal(signal.SIGSTOP)
    code, said, warned = place.ended(*TWO, "--lease-seconds", "2")
    assert code == 0, (said, warned)
    stopped[0].send_signal(signal.SIGCONT)
    _, warned = first.communicate(timeout=300)
    assert first.returncode == 0, warned
    pd.testing.assert_frame_equal(place.table(), whole)


def asked_to_end_it_leaves_in_order_and_goes_on(tmp_path, whole, *, sent):
    place = Place(tmp_path)
    process = place.start(*TWO)
    while not workers_of(process) or not place.num_done():
        time.sleep(0.05)
    children = workers_of(process)
    process.send_signal(sent)
    _, warned = process.communicate(timeout=60)
    assert process.returncode == 128 + sent, warned
    assert "Traceback" not in warned
    psutil.wait_procs(children, timeout=10)
    assert not any(child.is_running() for child in children)
    jobs = place.folder / "out" / "jobs"
    open_jobs = [folder for folder in jobs.iterdir() if not (folder / "done.json").exists()]
    assert all(list(folder.glob("lease-*.released")) for folder in open_jobs)
    code, said, warned = place.ended(*TWO)
    assert code == 0, (said, warned)
    pd.testing.assert_frame_equal(place.table(), whole)


def what_kills_its_process_three_times_or_outgrows_a_limit_is_failed_and_the_others_are_done(tmp_path, _):
    study = "command: toil\nfixed: {data: a}\nsettings:\n  good:\n  bad: {die: true}\n  slow: {steps: 900, step_seconds: 0.1}\n"
    study += "  large: {megabytes: 1500, steps: 30, step_seconds: 0.1}\n"
    place = Place(tmp_path, study)
    code, said, warned = place.ended(*TWO, "--job-minutes", "0.15", "--job-memory", "1")
    assert code == 6, warned
    for reason in ("died 3 times without a word", "of --job-minutes", "of --job-memory", "1 of 4 jobs done"):
        assert reason in " ".join(said.split()), said


def the_study_that_ships_goes_on_where_its_trainings_were_killed(tmp_path, _):
    """Real trainings: what a killed one had done is gone on with, and the table is that of a study that nobody disturbed."""
    shipped = (Path(__file__).parents[2] / "studies" / "smoke.yaml").read_text(encoding="utf-8")
    place = Place(tmp_path, shipped)
    assert run_study(tmp_path / "study.yaml", out=tmp_path / "whole", smoke=True, executor=Here()).record.num_done == 3
    process = place.start("--smoke", *TWO)
    while not (started := list((tmp_path / "out" / "jobs").glob("*/1/run.json"))):
        time.sleep(0.05)
    time.sleep(1)
    workers_of(process)[0].kill()
    time.sleep(0.5)
    process.kill()
    process.communicate()
    assert started and place.num_done() < 3
    code, said, warned = place.ended("--smoke", "--workers", "1")
    assert (code, "3 of 3 jobs done" in said) == (0, True), warned
    whole, killed = place.table("whole"), place.table()
    pd.testing.assert_frame_equal(killed, whole)


SCENARIOS = {
    study.__name__: study
    for study in (
        killed_at_random_points_the_table_is_that_of_a_whole_study,
        a_worker_that_is_stopped_and_woken_when_its_job_is_done_elsewhere_changes_nothing,
        what_kills_its_process_three_times_or_outgrows_a_limit_is_failed_and_the_others_are_done,
        the_study_that_ships_goes_on_where_its_trainings_were_killed,
    )
} | {
    f"{asked_to_end_it_leaves_in_order_and_goes_on.__name__} {sent.name}": partial(
        asked_to_end_it_leaves_in_order_and_goes_on, sent=sent
    )
    for sent in (signal.SIGINT, signal.SIGTERM)
}


@pytest.fixture(scope="module")
def ended(request, tmp_path_factory, whole):
    with beside.begun(request, SCENARIOS, tmp_path_factory, whole) as studies:
        yield studies


@pytest.mark.slow
@pytest.mark.xdist_group("studies killed")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_nothing_is_lost_counted_twice_or_shown_that_is_not_there(scenario, ended):
    ended[scenario].result()
