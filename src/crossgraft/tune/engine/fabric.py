"""Devices and processes: what Fabric is told, never what it finds around."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning_fabric.plugins.precision.precision import Precision
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.utilities.rank_zero import rank_zero_only

from crossgraft.compute import resolve_device
from crossgraft.errors import UsageError
from crossgraft.tune.engine.settings import TrainerSettings

_PATIENCE = timedelta(hours=12)  # the others wait while the first process evaluates or writes


def make_fabric(settings: TrainerSettings, *, rank: int = 0, port: int = 0) -> Fabric:
    """Fabric on the device of the settings, launched: this process alone, or with the others that we started.

    Nothing in the environment decides: neither how the job was started, nor the ``LT_`` variables of Fabric's own command,
    which would stand above what it is told.

    Args:
        settings: Device, precision and number of processes.
        rank: Number of this process among them, from 0.
        port: Port of this machine on which the first of several listens.

    Raises:
        UsageError: The processes that found each other are not as many as were asked for, or the device lacks the precision.
    """
    device = torch.device(resolve_device(settings.device))
    _refuse_missing_precision(settings.precision, device.type)
    world = settings.num_processes
    plugins: list[Any] = [_OurProcesses(rank, world, port)]
    if settings.precision == "64-true":
        plugins.append(_Float64())
    with _quiet(), without_variables("LT_"):
        fabric = Fabric(
            accelerator=device.type,
            strategy="auto" if world == 1 else DDPStrategy(timeout=_PATIENCE),
            devices=[device.index or 0] if world == 1 and device.type != "cpu" else world,
            num_nodes=1,
            precision=None if settings.precision == "64-true" else settings.precision,
            plugins=plugins,
        )
        fabric.launch()
    if fabric.world_size != world:
        raise UsageError(
            f"{world} processes were asked for, and {fabric.world_size} found each other. Nothing was trained."
        )
    return fabric


class _OurProcesses(ClusterEnvironment):
    """The place of this process among those that ``train_in_processes`` started on this machine.

    Fabric is told, because it looks around otherwise: for ``srun`` on the path and the variables of SLURM, torchrun, LSF and MPI,
    which say how a job was started, not how it trains.
    """

    def __init__(self, rank: int, world: int, port: int) -> None:
        super().__init__()
        self._rank, self._world, self._port = rank, world, port

    @property
    def creates_processes_externally(self) -> bool:
        """Fabric starts none."""
        return True

    @property
    def main_address(self) -> str:
        """This machine."""
        return "127.0.0.1"

    @property
    def main_port(self) -> int:
        """Port on which the first process listens."""
        return self._port

    @staticmethod
    def detect() -> bool:
        """Never found, always given."""
        return False

    def world_size(self) -> int:
        """How many processes."""
        return self._world

    def global_rank(self) -> int:
        """Number of this process, from 0."""
        return self._rank

    def local_rank(self) -> int:
        """The same: all are on this machine."""
        return self._rank

    def node_rank(self) -> int:
        """There is one machine."""
        return 0

    def set_world_size(self, size: int) -> None:
        """Fabric finds what it was told."""

    def set_global_rank(self, rank: int) -> None:
        """What it was told; the others do not warn of what the first one warns of."""
        setattr(rank_zero_only, "rank", rank)  # noqa: B010  (a function that Fabric gave an attribute)


def _refuse_missing_precision(precision: str, device: str) -> None:
    if precision == "16-mixed" and device == "cpu":
        raise UsageError("16-mixed needs a GPU. On the CPU use --precision bf16 or --precision 32.")
    if precision == "64-true" and device == "mps":
        raise UsageError("Apple's accelerator has no 64-bit floats. Use --precision 32, or --device cpu.")


class _Float64(Precision):
    """Leaves everything as it is, because network and batches are of float64 already.

    Fabric's own gives logits back as float32, and the gradients with them; and it changes the default number type of the
    whole process during a forward pass, also for the thread that prepares the next batch.
    """

    precision = "64-true"

    def convert_input(self, data: Any) -> Any:
        """As it is."""
        return data

    def convert_output(self, data: Any) -> Any:
        """As it is."""
        return data


@contextmanager
def _quiet() -> Generator[None]:
    """Fabric announces precision and processes on the terminal; our own reports say both."""
    logger = logging.getLogger("lightning_fabric")
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def without_variables(prefix: str) -> Generator[None]:
    """Without the environment variables that begin so."""
    taken = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(prefix)}
    try:
        yield
    finally:
        os.environ.update(taken)
