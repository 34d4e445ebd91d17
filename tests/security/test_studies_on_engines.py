"""The same study on Ray, Dask and SLURM, whose workers, tasks and nodes are taken away meanwhile: the table is the same."""

import time

import pandas as pd
import psutil
import pytest

from support.slurm import cluster, is_installed
from support.studies import STUDY, Place, undisturbed


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The table of a study that nobody disturbed."""
    return undisturbed(tmp_path_factory.mktemp("whole"))


def wait_until(condition, *, seconds=120):
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return answer


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "worker"), [("ray", "ray::do_jobs"), ("dask", "spawn_main")])
def test_a_worker_that_is_killed_costs_nothing(tmp_path, whole, engine, worker):
    place = Place(tmp_path)
    process = place.start("--engine", engine, "--workers", "2")
    wait_until(lambda: place.num_done() or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    children = psutil.Process(process.pid).children(recursive=True)
    next(child for child in children if worker in " ".join(child.cmdline())).kill()
    said, warned = process.communicate(timeout=240)
    assert process.returncode == 0, (said, warned)
    assert "Traceback" not in warned, warned
    pd.testing.assert_frame_equal(place.table(), whole)


@pytest.mark.slow
@pytest.mark.skipif(not is_installed(), reason="SLURM is not installed")
def test_slurm_requeues_preempts_cancels_and_loses_a_node(tmp_path_factory, tmp_path, whole):
    with cluster(tmp_path_factory.mktemp("slurm")) as here:
        place = Place(tmp_path, STUDY.replace("step_seconds: 0.1", "step_seconds: 0.3"), **here.environment)
        flags = ("--engine", "slurm", "--jobs-per-task", "6", "--engine-option", "partition=low", "--lease-seconds", "5")
        process = place.start(*flags, "--engine-option", "mem=900")
        wait_until(lambda: place.num_done() or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        here.ask("scontrol", "requeue", wait_until(here.tasks)[0])
        high = ["sbatch", "-p", "high", "-N", "1", "-o", "/dev/null", "--wrap", "sleep 1"]
        here.ask(*high)
        here.ask("scancel", wait_until(here.tasks)[-1])
        wait_until(lambda: place.num_done() > 6)
        here.kill_node("n1")
        here.start_node("n1")
        said, warned = process.communicate(timeout=240)
        assert process.returncode == 0, (said, warned, here.ask("squeue"))
        pd.testing.assert_frame_equal(place.table(), whole)
        wait_until(lambda: not here.tasks(state="PD,R"))
