"""What Fabric is told decides, and nothing that is around it."""

import os
import warnings

import pytest
from lightning_fabric import Fabric
from lightning_fabric.plugins import environments
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.strategies.single_device import SingleDeviceStrategy

from crossgraft.errors import UsageError
from crossgraft.tune.engine.launch import make_fabric
from crossgraft.tune.engine.settings import TrainerSettings
from support.jobs import jobs_around

JOBS = (
    *("a login node", "sbatch, tasks", "sbatch, one task a node", "srun", "torchrun", "LSF", "MPI", "Kubeflow"),
    "Lightning's command",
)


def variables():
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


@pytest.fixture(params=JOBS)
def job(request, tmp_path, monkeypatch):
    """Around this process, in which every look around is an error, and every warning as well."""
    jobs = jobs_around(tmp_path)
    assert set(jobs) == set(JOBS)
    for name, value in jobs[request.param].items():
        monkeypatch.setenv(name, value)
    before = variables()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield request.param
    assert variables() == before


def test_one_process_is_alone_in_any_job(job):
    fabric = make_fabric(TrainerSettings(device="cpu"))
    assert isinstance(fabric.strategy, SingleDeviceStrategy)
    assert (fabric.world_size, fabric.global_rank, fabric.device.type) == (1, 0, "cpu")
    assert fabric._precision.precision == "32-true"


def test_several_processes_are_ours_in_any_job(job, monkeypatch):
    monkeypatch.setattr("lightning_fabric.Fabric.launch", lambda *_: None)
    fabric = make_fabric(TrainerSettings(device="cpu", num_processes=2, precision="64-true"), rank=1, port=4321)
    assert isinstance(fabric.strategy, DDPStrategy) and not fabric.strategy.cluster_environment.detect()
    assert (fabric.strategy.num_nodes, fabric.strategy.num_processes, fabric.node_rank) == (1, 2, 0)
    assert (fabric.world_size, fabric.global_rank, fabric.local_rank) == (2, 1, 1)
    around = fabric.strategy.cluster_environment
    assert (around.main_address, around.main_port, around.creates_processes_externally) == ("127.0.0.1", 4321, True)
    assert fabric._precision.precision == "64-true"


def test_fabric_is_never_left_to_detect_an_environment(monkeypatch):
    """Whatever environments this version of it knows, or the next."""

    def look_around():
        raise AssertionError("Fabric looked around")

    known = [kind for kind in vars(environments).values() if hasattr(kind, "detect")]
    assert len(known) > 4
    for kind in known:
        monkeypatch.setattr(kind, "detect", look_around)
    with pytest.raises(AssertionError, match="looked around"):
        Fabric(accelerator="cpu", devices=1)
    make_fabric(TrainerSettings(device="cpu"))


def test_processes_that_do_not_find_each_other_are_refused(monkeypatch):
    monkeypatch.setattr("lightning_fabric.Fabric.launch", lambda *_: None)
    monkeypatch.setattr("lightning_fabric.Fabric.world_size", property(lambda _: 1))
    with pytest.raises(UsageError, match="2 processes were asked for, and 1 found each other"):
        make_fabric(TrainerSettings(device="cpu", num_processes=2))


def test_a_precision_that_the_device_lacks_is_refused_and_not_replaced():
    with pytest.raises(UsageError, match="16-mixed needs a GPU"):
        make_fabric(TrainerSettings(device="cpu", precision="16-mixed"))


def test_fabric_says_nothing_and_keeps_its_level(capfd):
    import logging

    before = logging.getLogger("lightning_fabric").level
    make_fabric(TrainerSettings(device="cpu", precision="bf16-mixed"))
    said = capfd.readouterr()
    assert said.out == said.err == "" and logging.getLogger("lightning_fabric").level == before
