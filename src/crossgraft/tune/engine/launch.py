"""Processes that train together without running the user's script again, and what they cannot do."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import socket
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning_fabric.plugins.precision.precision import Precision
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.utilities.rank_zero import rank_zero_only
from safetensors.torch import load_file, save_file

from crossgraft.compute import end_with_parent, nothing_imported_unasked, resolve_device, reuse_freed_memory
from crossgraft.errors import CrossgraftError, UsageError
from crossgraft.models.sources.factory import import_modules, imported_modules
from crossgraft.repeatable import repeatable_convolutions
from crossgraft.storage.atomic import scratch_folder
from crossgraft.tune.engine.contract import OnEpoch, OnStep, StepReport, TrainedEpoch, TrainingJob, TrainingResult
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.engine.step import training_batch_norms

RunJob = Callable[[Fabric, TrainingJob, OnStep | None, OnEpoch | None], TrainingResult]


def packed(run: RunJob, job: TrainingJob) -> bytes:
    """Everything for another process, with the folders of modules of own networks, which are not on the path of Python.

    Raises:
        PicklingError, AttributeError, TypeError: Something cannot be sent.
    """
    content = pickle.dumps((run, job))
    # a pickle that names a package may need any module of it
    modules = {name: folders for name, folders in imported_modules().items() if name.partition(".")[0].encode() in content}
    return pickle.dumps((modules, content))


def unpacked(content: bytes) -> tuple[RunJob, TrainingJob]:
    """What ``packed`` was given, in the other process.

    Raises:
        UsageError: A function or class is not to be found there.
    """
    try:
        modules, inside = pickle.loads(content)
        import_modules(modules)
        return pickle.loads(inside)
    except (AttributeError, ImportError) as error:
        raise UsageError(
            f"A training process cannot find what it was sent: {error}. Put functions and classes of a script or notebook "
            "into a module of their own, or train with one process."
        ) from error


def sendable(error: BaseException) -> BaseException:
    """``error`` as it is, or its text where the first process could not build it again."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return CrossgraftError(f"A training process failed: {type(error).__name__}: {error}")
    return error


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
        fabric = _OurFabric(
            accelerator=device.type,
            strategy="auto" if world == 1 else DDPStrategy(timeout=_PATIENCE),
            devices=[device.index or 0] if world == 1 and device.type != "cpu" else world,
            num_nodes=1,
            precision=None if settings.precision == "64-true" else settings.precision,
            plugins=plugins,
        )
        fabric.launch()
    if fabric.world_size != world:
        raise UsageError(f"{world} processes were asked for, and {fabric.world_size} found each other. Nothing was trained.")
    return fabric


class _OurFabric(Fabric):
    """Without callbacks of other packages, for which all that is installed would be searched at each training."""

    @staticmethod
    def _configure_callbacks(callbacks: list[Any] | Any | None) -> list[Any]:
        return []


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
    if precision == "bf16-mixed" and device == "cuda" and not has_bf16():
        raise UsageError("This GPU has no bf16. Use --precision 32, or --precision 16.")
    if precision == "64-true" and device == "mps":
        raise UsageError("Apple's accelerator has no 64-bit floats. Use --precision 32, or --device cpu.")


def has_bf16() -> bool:
    """Whether the GPUs compute in bfloat16, and do not only pretend: NVIDIA's do since compute capability 8."""
    return torch.version.hip is not None or all(
        torch.cuda.get_device_capability(number)[0] >= 8 for number in range(torch.cuda.device_count())
    )


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


def missing_gpus(asked: int) -> str:
    """What to say where there are fewer GPUs than processes; empty where there are enough."""
    here = torch.cuda.device_count()
    if asked <= here:
        return ""
    return f"{asked} processes need as many GPUs; {here} {'is' if here == 1 else 'are'} here. Ask for --devices {max(here, 1)}."


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
    if device.type == "cuda" and missing_gpus(asked):
        raise UsageError(missing_gpus(asked))
    if job.settings.batch_size < asked:
        raise UsageError(f"A batch of {job.settings.batch_size} cannot be shared by {asked} processes; enlarge --batch-size.")
    moving = training_batch_norms(job.classifier, job.selection)
    if moving and device.type != "cuda":
        raise UsageError(
            f"{moving[0]} is a BatchNorm layer in train mode ({len(moving)} in all). Over {asked} processes on the CPU each "
            "would see only its share of the batch, and torch has no synchronised BatchNorm there. Train with one process, "
            "with --batch-norm frozen, or with a method that freezes these layers."
        )


def train_in_processes(job: TrainingJob, run: RunJob, on_step: OnStep | None, on_epoch: OnEpoch | None) -> TrainingResult:
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
            result = listen(lines, on_step, on_epoch)
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


def listen(lines: list[Any], on_step: OnStep | None, on_epoch: OnEpoch | None) -> TrainingResult:
    """Pass on what the processes say until the first one has the result."""
    open_lines = list(lines)
    while open_lines:
        ready: list[Any] = connection.wait(open_lines)
        for line in ready:
            try:
                message = line.recv()
            except EOFError as error:
                raise _vanished(lines.index(line)) from error
            match message:
                case "error", CrossgraftError() as error:
                    raise error
                case "error", BaseException() as error:  # torch's own may only say that another process is gone
                    for other in open_lines:
                        if other is not line and _has_ended(other):
                            raise _vanished(lines.index(other)) from error
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


def _vanished(rank: int) -> CrossgraftError:
    return CrossgraftError(
        f"Training process {rank} ended without a word; was it killed, for want of memory? "
        "The same command goes on from the last checkpoint."
    )


def _has_ended(line: Any) -> bool:
    """Whether the process at the other end is gone and said nothing of an error; one that was killed closes its line at once."""
    try:
        while line.poll(1.0):
            if line.recv()[0] == "error":
                return False
    except (EOFError, OSError):
        return True
    return False


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
