"""One study, one table: on local processes, Ray, Dask and SLURM, whose workers, tasks and nodes are taken away meanwhile."""

import time

import pandas as pd
import psutil
import pytest

from support.slurm import cluster, has_database, is_installed
from support.studies import NUM_JOBS, STUDY, Place

QUICK = STUDY.replace("step_seconds: 0.1", "step_seconds: 0")
SLOW = STUDY.replace("step_seconds: 0.1", "step_seconds: 0.3")
WORKERS = {"local": "spawn_main", "ray": "ray::do_jobs", "dask": "spawn_main"}
"""What stands in the command line of a worker of each engine."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The table of a study that nobody disturbed, which all of them have to give."""
    place = Place(tmp_path_factory.mktemp("whole"), QUICK)
    code, _, warned = place.ended("--workers", "2")
    assert code == 0, warned
    table = place.table()
    assert len(table) == NUM_JOBS and table["value"].nunique() > 10
    return table


def wait_until(condition, *, seconds=120):
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return answer


def begun(place, *flags):
    """The process of a study whose first job is done."""
    process = place.start(*flags)
    wait_until(lambda: place.num_done() or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    return process


def on_one_machine(engine, folder, _):
    """A worker is killed."""
    place = Place(folder)
    process = begun(place, "--engine", engine, "--workers", "2")
    children = psutil.Process(process.pid).children(recursive=True)
    next(child for child in children if WORKERS[engine] in " ".join(child.cmdline())).kill()
    return place, process


def on_slurm(_, folder, here):
    """A task is requeued, one is preempted, one cancelled, and a node dies."""
    place = Place(folder, SLOW, **here.environment)
    flags = ("--engine", "slurm", "--jobs-per-task", "6", "--engine-option", "partition=low", "--lease-seconds", "5")
    process = begun(place, *flags, "--engine-option", "mem=900")
    here.ask("scontrol", "requeue", wait_until(here.tasks)[0])
    here.ask("sbatch", "-p", "high", "-N", "1", "-o", "/dev/null", "--wrap", "sleep 1")
    here.ask("scancel", wait_until(here.tasks)[-1])
    wait_until(lambda: place.num_done() > 6)
    here.kill_node("n1")
    here.start_node("n1")
    return place, process


@pytest.fixture
def here(request, tmp_path_factory):
    """A cluster for SLURM, with or without its database; nothing for the others."""
    if "slurm" not in request.param:
        yield None
        return
    with cluster(tmp_path_factory.mktemp("slurm"), with_database="database" in request.param) as started:
        yield started


def engine(name, is_there=True):
    return pytest.param(name, name, marks=pytest.mark.skipif(not is_there, reason=f"{name} is not installed"), id=name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "here"),
    [
        *map(engine, WORKERS),
        engine("slurm", is_installed()),
        engine("slurm with its database", is_installed() and has_database()),
    ],
    indirect=["here"],
)
def test_one_study_gives_one_table_on_every_engine(tmp_path, whole, name, here):
    place, process = (on_one_machine if here is None else on_slurm)(name, tmp_path, here)
    said, warned = process.communicate(timeout=240)
    assert process.returncode == 0, (said, warned)
    assert "Traceback" not in warned, warned
    pd.testing.assert_frame_equal(place.table(), whole)
    if here is not None:
        wait_until(lambda: not here.tasks(state="PD,R"))
        knows = here.ask("sacct", "--noheader", "--allusers", "--format=JobID").split()
        assert bool(knows) == here.with_database
