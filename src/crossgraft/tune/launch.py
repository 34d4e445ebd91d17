"""Devices and processes: what Fabric is told, and processes that train together without running the user's script again."""

from __future__ import annotations

import logging
import os
import pickle
import socket
import sys
import tempfile
import types
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import timedelta
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments import LightningEnvironment
from lightning_fabric.strategies import DDPStrategy
from safetensors.torch import load_file, save_file

from crossgraft.compute import resolve_device
from crossgraft.errors import CrossgraftError, UsageError
from crossgraft.tune.contract import OnEpoch, OnStep, TrainingJob, TrainingResult
from crossgraft.tune.modes import training_batch_norms
from crossgraft.tune.settings import TrainerSettings

RunJob = Callable[[Fabric, TrainingJob, OnStep | None, OnEpoch | None], TrainingResult]

_PATIENCE = timedelta(hours=12)  # the others wait while the first process evaluates or writes


def join_processes() -> bool:
    """Whether somebody else (torchrun, a job scheduler) started this process as one of several."""
    return "WORLD_SIZE" in os.environ and "LOCAL_RANK" in os.environ


def check_processes(job: TrainingJob) -> None:
    """Refuse what can not be trained by so many processes.

    Raises:
        UsageError: The environment has another number of processes than was asked for; there are fewer GPUs; batches are
            smaller; or BatchNorm would see a share of the batch only.
    """
    asked = job.settings.num_processes
    there = int(os.environ["WORLD_SIZE"]) if join_processes() else asked
    if there != asked:
        raise UsageError(
            f"{asked} process{'es were' if asked > 1 else ' was'} asked for, but this one was started as one of {there}. "
            f"Say --processes {there}, or start it on its own."
        )
    if asked == 1:
        return
    device = torch.device(resolve_device(job.settings.device))
    if device.type == "mps":
        raise UsageError("Apple's accelerator has one device; train with one process.")
    if device.type == "cuda" and not join_processes() and torch.cuda.device_count() < asked:
        raise UsageError(f"{asked} processes need as many GPUs; {torch.cuda.device_count()} are here.")
    if job.settings.batch_size < asked:
        raise UsageError(
            f"A batch of {job.settings.batch_size} can not be shared by {asked} processes; enlarge --batch-size."
        )
    moving = training_batch_norms(job.classifier, job.selection)
    if moving and device.type != "cuda":
        raise UsageError(
            f"{moving[0]} is a BatchNorm layer in train mode ({len(moving)} in all). Over {asked} processes on the CPU each "
            "would see only its share of the batch, and torch has no synchronised BatchNorm there. Train with one process, "
            "or with a method that freezes these layers."
        )


def make_fabric(settings: TrainerSettings) -> Fabric:
    """Fabric on the device of the settings, launched: this process alone, or with the others that were started with it.

    Raises:
        UsageError: The processes that found each other are not as many as were asked for.
    """
    device = torch.device(resolve_device(settings.device))
    world = settings.num_processes
    on_this_machine = int(os.environ.get("LOCAL_WORLD_SIZE", world))
    devices: list[int] | int = on_this_machine
    if world == 1 and device.type != "cpu":
        devices = [device.index or 0]
    with _quiet():
        fabric = Fabric(
            accelerator=device.type,
            strategy="auto" if world == 1 else DDPStrategy(timeout=_PATIENCE, broadcast_buffers=False),
            devices=devices,
            num_nodes=max(1, world // on_this_machine),
            precision=settings.precision,
            # Without it, Fabric looks for a job scheduler, and finds one in an interactive session of SLURM.
            plugins=LightningEnvironment() if world == 1 or _OURS in os.environ else None,
        )
        fabric.launch()
    if fabric.world_size != world:
        raise UsageError(
            f"{world} processes were asked for, and {fabric.world_size} found each other. Nothing was trained."
        )
    return fabric


def train_in_processes(
    job: TrainingJob, run: RunJob, on_step: OnStep | None, on_epoch: OnEpoch | None
) -> TrainingResult:
    """Train in processes of their own; their weights come back into ``job.classifier`` through a file.

    Raises:
        UsageError: Something in ``job`` can not be sent to another process.
        CrossgraftError: What a process raised, or that one of them was killed.
    """
    try:
        content = pickle.dumps((run, job))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"Training with {job.settings.num_processes} processes sends everything to them, and something can not be sent: "
            f"{error}. Define functions and classes at the top of a module, or train with one process."
        ) from error
    context = get_context("spawn")
    port, world = _free_port(), job.settings.num_processes
    with tempfile.TemporaryDirectory(prefix="crossgraft-") as folder:
        path = Path(folder) / "weights.safetensors"
        receivers: list[Any] = []
        processes: list[Any] = []
        try:
            for rank in range(world):
                receiver, sender = context.Pipe(duplex=False)
                arguments = (rank, world, port, content, str(path), sender, torch.get_num_threads())
                process = context.Process(target=_work, args=arguments, daemon=True, name=f"crossgraft {rank}")
                with _script_hidden():
                    process.start()
                sender.close()
                receivers.append(receiver)
                processes.append(process)
            result = _listen(receivers, on_step, on_epoch)
            weights = load_file(path)
        finally:
            for process in processes:
                process.join(timeout=5 if sys.exc_info()[0] is None else 0)
                process.kill()
                process.join()
    _take_over(job, weights)
    return result


def _take_over(job: TrainingJob, weights: dict[str, torch.Tensor]) -> None:
    number_type = torch.float64 if job.settings.precision == "64-true" else torch.float32
    job.classifier.to(number_type).load_state_dict(weights)
    job.classifier.eval()


def _listen(receivers: list[Any], on_step: OnStep | None, on_epoch: OnEpoch | None) -> TrainingResult:
    """Pass on what the processes say until the first one has the result."""
    open_ones = list(receivers)
    while open_ones:
        for receiver in connection.wait(open_ones):
            try:
                kind, value = receiver.recv()  # pyright: ignore[reportAttributeAccessIssue]
            except EOFError as error:
                raise CrossgraftError(
                    f"Training process {receivers.index(receiver)} ended without a word; was it killed, for want of memory? "
                    "The same command goes on from the last checkpoint."
                ) from error
            if kind == "error":
                raise value
            if kind == "result" and value is not None:
                return value
            if kind == "result":
                open_ones.remove(receiver)
            elif kind == "step" and on_step is not None:
                on_step(value)
            elif kind == "epoch" and on_epoch is not None:
                on_epoch(value)
    raise CrossgraftError("The training processes ended without a result.")


def _work(rank: int, world: int, port: int, content: bytes, path: str, sender: Any, num_threads: int) -> None:
    """What each process does."""
    places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "NODE_RANK": 0, "MASTER_PORT": port, _OURS: 1}
    os.environ.update({name: str(value) for name, value in places.items()}, MASTER_ADDR="127.0.0.1")
    torch.set_num_threads(max(1, num_threads // world))
    try:
        run, job = _unpacked(content)
        result = run(
            make_fabric(job.settings), job, lambda r: sender.send(("step", r)), lambda r: sender.send(("epoch", r))
        )
        if rank == 0:
            state = job.classifier.state_dict()
            save_file({name: value.to("cpu", copy=True).contiguous() for name, value in state.items()}, path)
        sender.send(("result", result if rank == 0 else None))
    except BaseException as error:
        with suppress(OSError):  # nobody may be left to listen
            sender.send(("error", _sendable(error)))
        # The others wait for this process in the middle of an exchange; a clean end would wait for them in turn.
        os._exit(1)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _unpacked(content: bytes) -> tuple[RunJob, TrainingJob]:
    try:
        return pickle.loads(content)
    except AttributeError as error:
        raise UsageError(
            f"A training process can not find what it was sent: {error}. Put functions and classes of a script or notebook "
            "into a module of their own, or train with one process."
        ) from error


def _sendable(error: BaseException) -> BaseException:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return CrossgraftError(f"A training process failed: {type(error).__name__}: {error}")
    return error


@contextmanager
def _script_hidden() -> Generator[None]:
    """A spawned process runs the user's script again to find its names; all that we send comes from modules."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


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


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


_OURS = "CROSSGRAFT_TRAINING_PROCESS"
