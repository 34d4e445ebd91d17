"""Processes that train together without running the user's script again, and what they cannot do."""

from __future__ import annotations

import os
import pickle
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from crossgraft.compute import end_with_parent, nothing_imported_unasked, resolve_device, reuse_freed_memory
from crossgraft.errors import CrossgraftError, UsageError
from crossgraft.repeatable import repeatable_convolutions
from crossgraft.storage.temporaries import scratch_folder
from crossgraft.tune.engine.contract import OnEpoch, OnStep, StepReport, TrainedEpoch, TrainingJob, TrainingResult
from crossgraft.tune.engine.fabric import make_fabric, without_variables
from crossgraft.tune.engine.modes import training_batch_norms
from crossgraft.tune.engine.sending import RunJob, packed, sendable, unpacked


def check_processes(job: TrainingJob) -> None:
    """Refuse what cannot be trained by so many processes.

    Raises:
        UsageError: There are fewer GPUs; batches are smaller; or BatchNorm would see a share of the batch only.
    """
    asked = job.settings.num_processes
    if asked == 1:
        return
    device = torch.device(resolve_device(job.settings.device))
    if device.type == "mps":
        raise UsageError("Apple's accelerator has one device; train with one process.")
    if device.type == "cuda" and torch.cuda.device_count() < asked:
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
    # for what plug-ins and libraries ask; those of a job that this one is part of speak of its other processes
    places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world, "NODE_RANK": 0}
    os.environ.update({name: str(value) for name, value in places.items()})
    torch.set_num_threads(max(1, num_threads // world))
    try:
        run, job = unpacked(line.recv_bytes())
        # torchrun's variables would send torch to torchrun's own store
        with reuse_freed_memory(), repeatable_convolutions(), without_variables("TORCHELASTIC_"):
            fabric = make_fabric(job.settings, rank=rank, port=port)
            result = run(fabric, job, lambda r: line.send(("step", r)), lambda r: line.send(("epoch", r)))
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


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
