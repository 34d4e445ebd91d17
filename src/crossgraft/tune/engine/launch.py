"""Devices and processes: what Fabric is told, and processes that train together without running the user's script again."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from lightning_fabric.plugins.precision.precision import Precision
from lightning_fabric.strategies.ddp import DDPStrategy
from safetensors.torch import load_file, save_file

from crossgraft.compute import end_with_parent, nothing_imported_unasked, resolve_device, reuse_freed_memory
from crossgraft.errors import CrossgraftError, UsageError
from crossgraft.repeatable import repeatable_convolutions
from crossgraft.storage.temporaries import scratch_folder
from crossgraft.tune.engine.contract import OnEpoch, OnStep, StepReport, TrainedEpoch, TrainingJob, TrainingResult
from crossgraft.tune.engine.modes import training_batch_norms
from crossgraft.tune.engine.sending import RunJob, packed, sendable, unpacked
from crossgraft.tune.engine.settings import TrainerSettings

_PATIENCE = timedelta(hours=12)  # the others wait while the first process evaluates or writes


def processes_around() -> int:
    """How many processes somebody else (torchrun, SLURM's srun) started together with this one; 0: it was started alone."""
    if "WORLD_SIZE" in os.environ and "LOCAL_RANK" in os.environ:
        return int(os.environ["WORLD_SIZE"])
    tasks = int(os.environ.get("SLURM_STEP_NUM_TASKS", 0))
    return tasks if tasks > 1 else 0


def check_processes(job: TrainingJob) -> None:
    """Refuse what cannot be trained by so many processes.

    Raises:
        UsageError: The environment has another number of processes than was asked for; there are fewer GPUs; batches are
            smaller; or BatchNorm would see a share of the batch only.
    """
    asked = job.settings.num_processes
    there = processes_around() or asked
    if there != asked:
        raise UsageError(
            f"{asked} process{'es were' if asked > 1 else ' was'} asked for, but this one was started as one of {there}. "
            f"Say --devices {there}, or start it on its own."
        )
    if asked == 1:
        return
    device = torch.device(resolve_device(job.settings.device))
    if device.type == "mps":
        raise UsageError("Apple's accelerator has one device; train with one process.")
    if device.type == "cuda" and not processes_around() and torch.cuda.device_count() < asked:
        raise UsageError(f"{asked} processes need as many GPUs; {torch.cuda.device_count()} are here.")
    if job.settings.batch_size < asked:
        raise UsageError(
            f"A batch of {job.settings.batch_size} cannot be shared by {asked} processes; enlarge --batch-size."
        )
    moving = training_batch_norms(job.classifier, job.selection)
    if moving and device.type != "cuda":
        raise UsageError(
            f"{moving[0]} is a BatchNorm layer in train mode ({len(moving)} in all). Over {asked} processes on the CPU each "
            "would see only its share of the batch, and torch has no synchronised BatchNorm there. Train with one process, "
            "with --batch-norm frozen, or with a method that freezes these layers."
        )


def make_fabric(settings: TrainerSettings) -> Fabric:
    """Fabric on the device of the settings, launched: this process alone, or with the others that were started with it.

    Raises:
        UsageError: The processes that found each other are not as many as were asked for, or the device lacks the precision.
    """
    device = torch.device(resolve_device(settings.device))
    _refuse_missing_precision(settings.precision, device.type)
    world = settings.num_processes
    on_this_machine = int(os.environ.get("LOCAL_WORLD_SIZE", os.environ.get("SLURM_NTASKS_PER_NODE", world)))
    devices: list[int] | int = on_this_machine
    if world == 1 and device.type != "cpu":
        devices = [device.index or 0]
    # Without it, Fabric looks for a job scheduler, and finds one in an interactive session of SLURM.
    plugins: list[Any] = [LightningEnvironment()] if world == 1 or _OURS in os.environ else []
    if settings.precision == "64-true":
        plugins.append(_Float64())
    with _quiet():
        fabric = Fabric(
            accelerator=device.type,
            strategy="auto" if world == 1 else DDPStrategy(timeout=_PATIENCE),
            devices=devices,
            num_nodes=max(1, world // on_this_machine),
            precision=None if settings.precision == "64-true" else settings.precision,
            plugins=plugins,
        )
        fabric.launch()
    if fabric.world_size != world:
        raise UsageError(
            f"{world} processes were asked for, and {fabric.world_size} found each other. Nothing was trained."
        )
    return fabric


def _refuse_missing_precision(precision: str, device: str) -> None:
    if precision == "16-mixed" and device == "cpu":
        raise UsageError("16-mixed needs a GPU. On the CPU use --precision bf16-mixed or 32-true.")
    if precision == "64-true" and device == "mps":
        raise UsageError("Apple's accelerator has no 64-bit floats. Use --precision 32-true, or --device cpu.")


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


def train_in_processes(
    job: TrainingJob, run: RunJob, on_step: OnStep | None, on_epoch: OnEpoch | None
) -> TrainingResult:
    """Train in processes of their own; their weights come back into ``job.classifier`` through a file.

    Raises:
        UsageError: Something in ``job`` cannot be sent to another process.
        CrossgraftError: What a process raised, or that one of them was killed.
    """
    try:
        content = packed(run, job)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"Training with {job.settings.num_processes} processes sends everything to them, and something cannot be sent: "
            f"{error}. Define functions and classes at the top of a module, or train with one process."
        ) from error
    with scratch_folder("training") as folder:
        path = folder / "weights.safetensors"
        processes: list[Any] = []
        try:
            lines = list(_started(job.settings.num_processes, path, processes))
            for line in lines:  # after all are started, because a process listens only when it has imported everything
                with suppress(BrokenPipeError):
                    line.send_bytes(content)
            result = _listen(lines, on_step, on_epoch)
            weights = load_file(path)
        finally:
            for process in processes:  # everything of value has arrived, or nothing will
                if process.pid is not None:
                    process.kill()
                    process.join()
    _take_over(job, weights)
    return result


def _started(world: int, path: Path, processes: list[Any]) -> Iterator[Any]:
    """Start the processes one by one; gives our end of the line to each. They are in ``processes`` before they start."""
    context, port = get_context("spawn"), _free_port()
    for rank in range(world):
        line, other_end = context.Pipe()
        arguments = (rank, world, port, str(path), other_end, torch.get_num_threads())
        process = context.Process(target=_work, args=arguments, daemon=True, name=f"crossgraft {rank}")
        processes.append(process)
        with nothing_imported_unasked():
            process.start()
        other_end.close()
        yield line


def _take_over(job: TrainingJob, weights: dict[str, torch.Tensor]) -> None:
    number_type = torch.float64 if job.settings.precision == "64-true" else torch.float32
    job.classifier.to(number_type).load_state_dict(weights)
    job.classifier.eval()


def _listen(lines: list[Any], on_step: OnStep | None, on_epoch: OnEpoch | None) -> TrainingResult:
    """Pass on what the processes say until the first one has the result."""
    open_lines = list(lines)
    while open_lines:
        ready: list[Any] = connection.wait(open_lines)
        for line in ready:
            try:
                message = line.recv()
            except EOFError as error:
                raise CrossgraftError(
                    f"Training process {lines.index(line)} ended without a word; was it killed, for want of memory? "
                    "The same command goes on from the last checkpoint."
                ) from error
            match message:
                case "error", BaseException() as error:
                    raise error
                case "result", TrainingResult() as result:
                    return result
                case "step", StepReport() as report if on_step is not None:
                    on_step(report)
                case "epoch", TrainedEpoch() as row if on_epoch is not None:
                    on_epoch(row)
                case "result", None:
                    open_lines.remove(line)
                case _:  # nobody asked for it
                    pass
    raise CrossgraftError("The training processes ended without a result.")


def _work(rank: int, world: int, port: int, path: str, line: Any, num_threads: int) -> None:
    """What each process does."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # are for the first process, which then ends this one
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    end_with_parent()
    places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "NODE_RANK": 0, "MASTER_PORT": port, _OURS: 1}
    os.environ.update({name: str(value) for name, value in places.items()}, MASTER_ADDR="127.0.0.1")
    torch.set_num_threads(max(1, num_threads // world))
    try:
        run, job = unpacked(line.recv_bytes())
        with reuse_freed_memory(), repeatable_convolutions():
            result = run(
                make_fabric(job.settings), job, lambda r: line.send(("step", r)), lambda r: line.send(("epoch", r))
            )
        if rank == 0:
            state = job.classifier.state_dict()
            save_file({name: value.to("cpu", copy=True).contiguous() for name, value in state.items()}, path)
        line.send(("result", result if rank == 0 else None))
        line.recv()  # stays until it is ended from outside, so that the others lose no partner
    except BaseException as error:
        with suppress(OSError):  # nobody may be left to listen
            line.send(("error", sendable(error)))
        # The others may be in the middle of an exchange with this process; a clean end would wait for them in turn.
        os._exit(1)


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
