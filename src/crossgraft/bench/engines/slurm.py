"""SLURM by submitit: arrays of tasks. What SLURM says of a task is never believed; whether it is still there is."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

from crossgraft.bench.engine import Engine, EngineRequest
from crossgraft.errors import MissingError, UsageError
from crossgraft.optional import require
from crossgraft.running.jobs import error_in_one_line

POLL_SECONDS = 2.0
_MINUTES = 60
"""Time limit of a task that nobody gave: what is not done then goes on in the next round."""


@contextmanager
def open_slurm(request: EngineRequest) -> Generator[Executor]:
    """Submit to the cluster that this machine is part of.

    Raises:
        MissingExtraError: submitit is not installed.
        MissingError: There is no SLURM on this machine.
        UsageError: A parameter is none of submitit's.
    """
    submitit: Any = require("submitit", extra="slurm", needed_for="--engine slurm")
    if shutil.which("sbatch") is None:
        raise MissingError("--engine slurm needs the commands of SLURM (sbatch, squeue), and this machine has none.")
    executor = submitit.SlurmExecutor(folder=request.folder / "slurm", max_num_timeout=1_000_000)
    parameters: dict[str, Any] = {"time": _MINUTES, "job_name": "crossgraft", **request.parameters}
    if request.num_workers is not None:
        parameters["array_parallelism"] = request.num_workers
    try:
        extra = {"requeue": True, **parameters.pop("additional_parameters", {})}
        executor.update_parameters(cpus_per_task=request.num_threads, additional_parameters=extra, **parameters)
    except (TypeError, ValueError) as error:
        raise UsageError(f"--engine-option: {' '.join(str(error).split())}") from error
    arrays = Arrays(executor)
    try:
        yield arrays
    finally:
        arrays.shutdown(cancel_futures=True)


class Arrays(Executor):
    """Calls that come together become one array.

    Args:
        executor: submitit's.
    """

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        self._waiting: list[tuple[Future[Any], Callable[[], Any]]] = []
        self._tasks: dict[Future[Any], Any] = {}
        self._lock, self._end = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True, name="arrays of a study")
        self._thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a call done by a task of the next array."""
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.append((future, lambda: self._executor.submit(fn, *args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel what has not ended."""
        self._end.set()
        self._thread.join()
        if cancel_futures and self._tasks:
            subprocess.run(["scancel", *{task.job_id for task in self._tasks.values()}], check=False, capture_output=True)

    def _serve(self) -> None:
        while not self._end.wait(POLL_SECONDS):
            with self._lock:
                waiting, self._waiting = self._waiting, []
            if waiting:
                self._send(waiting)
            if self._tasks:
                self._look()

    def _send(self, waiting: list[tuple[Future[Any], Callable[[], Any]]]) -> None:
        try:
            with self._executor.batch():
                tasks = [submit() for _, submit in waiting]
        except Exception as error:  # sbatch refused, or the controller does not answer
            for future, _ in waiting:
                future.set_exception(MissingError(f"SLURM took no job: {error_in_one_line(error)}"))
            return
        self._tasks |= {future: task for (future, _), task in zip(waiting, tasks, strict=True)}

    def _look(self) -> None:
        """End what has left a result, or is not in the queue any more."""
        queued = _queued()
        for future, task in list(self._tasks.items()):
            if task.paths.result_pickle.exists():
                outcome, result = _outcome(task)
                if outcome == "success":
                    future.set_result(result)
                else:
                    future.set_exception(RuntimeError(str(result)))
            elif queued is not None and task.job_id not in queued:
                future.set_exception(RuntimeError(f"task {task.job_id} of SLURM ended without a word"))
            else:
                continue
            del self._tasks[future]


def _outcome(task: Any) -> tuple[str, Any]:
    try:
        return task._get_outcome_and_result()
    except Exception as error:  # what cannot be read must not end the thread that all futures wait for
        return "error", f"the answer of task {task.job_id} cannot be read: {error}"


def _queued() -> set[str] | None:
    """Numbers of the tasks that wait or run; None where the controller does not answer now."""
    asked = ["squeue", "--me", "--noheader", "--array", "--format=%i"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return {line.strip() for line in answer.stdout.splitlines()}


ENGINE = Engine("slurm", "Arrays of SLURM, by submitit.", open_slurm)
