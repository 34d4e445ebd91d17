"""One study, one table: on Ray, Dask and SLURM, whose workers, tasks and nodes are taken away meanwhile.

Local processes are those of ``test_studies_killed.py``.
"""

import time
from functools import partial

import pandas as pd
import psutil
import pytest

from support import beside
from support.slurm import cluster, has_database, is_installed
from support.studies import NUM_JOBS, STUDY, Place, undisturbed

SLOW = STUDY.replace("step_seconds: 0.1", "step_seconds: 0.2")
WORKERS = {"ray": "ray::do_jobs", "dask": "spawn_main"}
"""What stands in the command line of a worker of each engine."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The table of a study that nobody disturbed, which all of them have to give."""
    table = undisturbed(tmp_path_factory.mktemp("whole"))
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


def on_one_machine(folder, whole, *, engine):
    """A worker is killed."""
    place = Place(folder)
    process = begun(place, "--engine", engine, "--workers", "2")
    children = psutil.Process(process.pid).children(recursive=True)
    next(child for child in children if WORKERS[engine] in " ".join(child.cmdline())).kill()
    check_end(place, process, whole)


def on_slurm(folder, whole, *, with_database):
    """A task is requeued, one is preempted, one cancelled, and a node dies."""
    with cluster(folder / "slurm", with_database=with_database) as here:
        place = Place(folder, SLOW, **here.environment)
        flags = ("--engine", "slurm", "--jobs-per-task", "6", "--engine-option", "partition=low", "--lease-seconds", "5")
        process = begun(place, *flags, "--engine-option", "mem=900")
        here.ask("scontrol", "requeue", wait_until(here.tasks)[0])
        here.ask("sbatch", "-p", "high", "-N", "1", "-o", "/dev/null", "--wrap", "sleep 1")
        here.ask("scancel", wait_until(here.tasks)[-1])
        wait_until(lambda: place.num_done() > 6)
        here.kill_node("n1")
        here.start_node("n1")
        check_end(place, process, whole)
        wait_until(lambda: not here.tasks(state="PD,R"))
        knows = here.ask("sacct", "--noheader", "--allusers", "--format=JobID").split()
        assert bool(knows) == with_database


def check_end(place, process, whole):
    said, warned = process.communicate(timeout=240)
    assert process.returncode == 0, (said, warned)
    assert "Traceback" not in warned, warned
    pd.testing.assert_frame_equal(place.table(), whole)


ENGINES = {
    **{name: partial(on_one_machine, engine=name) for name in WORKERS},
    "slurm": partial(on_slurm, with_database=False),
    "slurm with its database": partial(on_slurm, with_database=True),
}
NEEDS = {"slurm": is_installed(), "slurm with its database": is_installed() and has_database()}


@pytest.fixture(scope="module")
def ended(request, tmp_path_factory, whole):
    there = {name: study for name, study in ENGINES.items() if NEEDS.get(name, True)}
    with beside.begun(request, there, tmp_path_factory, whole) as studies:
        yield studies


@pytest.mark.slow
@pytest.mark.xdist_group("studies on engines")
@pytest.mark.parametrize("scenario", ENGINES)
def test_one_study_gives_one_table_on_every_engine(scenario, ended):
    if scenario not in ended:
        pytest.skip(f"{scenario} is not installed")
    ended[scenario].result()
