"""The one sweep that can be resumed: what was done before is read back, the rest is done, and a failure loses no other job."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar

from crossgraft.compute import available_cores, end_with_parent, nothing_imported_unasked
from crossgraft.errors import CrossgraftError, DeviceLostError, RunDirectoryError, StorageError, UsageError
from crossgraft.stopping import ending_if_asked

Item = TypeVar("Item")
Spec = TypeVar("Spec")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Job(Generic[Spec]):
    """One piece of a sweep.

    Attributes:
        name: For messages and folders.
        spec: What to do.
        key: Hash of everything that decides the result; empty where only the work can tell, for example once a network is
            loaded.
    """

    name: str
    spec: Spec
    key: str = ""


@dataclass(frozen=True, eq=False)
class Outcome(Generic[Spec, Result]):
    """How a job ended.

    Attributes:
        job: The job that ended.
        result: None where it failed.
        reason: Reason of the failure, on one line; empty where it did not fail.
        seconds: Duration in this attempt.
        was_read_back: Whether it was done in an earlier attempt.
    """

    job: Job[Spec]
    result: Result | None
    reason: str
    seconds: float
    was_read_back: bool = False


class Work(ABC, Generic[Spec, Result]):
    """What is done with every job of a sweep; ``do`` keeps what ``read_back`` finds again."""

    def read_back(self, job: Job[Spec]) -> Result | None:
        """The result of an earlier attempt with the same key; None if there is none."""
        return None

    @abstractmethod
    def do(self, job: Job[Spec]) -> Result:
        """The result."""

    def around(self, job: Job[Spec]) -> AbstractContextManager[object]:
        """Entered for one job at a time, before it is looked up; shows progress, for example."""
        return nullcontext()


class Executor:
    """Where the jobs of a sweep are done: one after the other in this process; ``WorkerPool`` has others."""

    def run(self, function: Callable[[Item], Result], items: Sequence[Item], *, told: Callable[[Result], object]) -> list[Result]:
        """``function`` of every item, in their order; ``told`` is called in this process with each result as it comes."""
        results: list[Result] = []
        for item in items:
            results.append(function(item))
            told(results[-1])
        return results


def run_jobs(
    jobs: Sequence[Job[Spec]],
    work: Work[Spec, Result],
    *,
    keep_going: bool,
    told: Callable[[Outcome[Spec, Result]], object] = lambda _: None,
    executor: Executor | None = None,
) -> list[Outcome[Spec, Result]]:
    """Do what is not done yet.

    Args:
        jobs: In the order in which they are begun.
        work: Goes with its jobs to other processes, where the executor has any.
        keep_going: A job that fails becomes a reason, and the others are done; otherwise its error is raised.
        told: Called in this process with each outcome as it comes.
        executor: One after the other in this process when None.

    Returns:
        One outcome a job, in the order of the jobs.

    Raises:
        StorageError: Nothing can be written any more, whatever ``keep_going`` says; the same call goes on from here.
        RunDirectoryError: Another process is at work in a folder of a job.
    """
    attempt = partial(_attempt, work=work, keep_going=keep_going)
    return (executor or Executor()).run(attempt, jobs, told=told)


def results_of(outcomes: Sequence[Outcome[Spec, Result]]) -> list[Result]:
    """Results of the jobs that are done."""
    return [outcome.result for outcome in outcomes if outcome.result is not None]


def num_read_back(outcomes: Sequence[Outcome[Spec, Result]]) -> int:
    """Jobs that were done in an earlier attempt."""
    return sum(outcome.was_read_back for outcome in outcomes)


def _attempt(job: Job[Spec], *, work: Work[Spec, Result], keep_going: bool) -> Outcome[Spec, Result]:
    start = time.perf_counter()
    with work.around(job):
        try:
            with ending_if_asked():
                earlier = work.read_back(job)
                result = work.do(job) if earlier is None else earlier
            return Outcome(job, result, "", time.perf_counter() - start, was_read_back=earlier is not None)
        except (StorageError, RunDirectoryError, DeviceLostError):
            raise  # the disk is full, another process is at work, or the GPU is gone: no fault of the job
        except (CrossgraftError, RuntimeError) as error:
            # RuntimeError is what torch raises of a network that cannot take a batch, or when a device has no memory left.
            if not keep_going:
                raise
            reason = " ".join(str(error).split()) or type(error).__name__
            return Outcome(job, None, reason, time.perf_counter() - start)


MAX_WORKERS = 2


class WorkerPool(Executor):
    """Does jobs in other processes; made by ``worker_pool``."""

    def __init__(self, executor: ProcessPoolExecutor, num_workers: int) -> None:
        self._executor = executor
        self._num_workers = num_workers

    def run(self, function: Callable[[Item], Result], items: Sequence[Item], *, told: Callable[[Result], object]) -> list[Result]:
        """As in this process; ``function`` stands at the top level of a module, and items can be sent to another process.

        Raises:
            UsageError: An item, or the function, cannot be sent to another process.
            CrossgraftError: A worker process died, or what ``function`` raised.
        """
        upcoming = iter(enumerate(items))
        running: dict[Future[Any], int] = {}
        results: dict[int, Result] = {}
        try:
            while len(results) < len(items):
                # No more than one item a worker is handed out, so that Ctrl-C waits for those at work only.
                with _ctrl_c_ignored(), nothing_imported_unasked():
                    for index, item in islice(upcoming, self._num_workers - len(running)):
                        running[self._executor.submit(_do, _packed(function, item))] = index
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    told(results.setdefault(running.pop(future), future.result()))
        except BrokenProcessPool as error:
            raise CrossgraftError(
                "A worker process was ended from outside, most often for want of memory. Close other programs and start the "
                "same command again: what was finished is kept."
            ) from error
        return [results[index] for index in range(len(items))]


def _packed(function: Callable[[Item], Result], item: Item) -> bytes:
    """A job as it is sent, packed in this process: the thread that sends jobs waits for ever for one that it cannot pack."""
    try:
        return pickle.dumps((function, item))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"Several jobs at a time are done in processes of their own, and something cannot be sent to them: {error}. "
            "Define functions and classes at the top of a module, or do one job at a time with --workers 1."
        ) from error


def _do(content: bytes) -> object:
    """In the other process."""
    function, item = pickle.loads(content)
    return function(item)


@contextmanager
def worker_pool(num_workers: int | None = None) -> Generator[WorkerPool]:
    """Start workers on demand, and end them with the block.

    Args:
        num_workers: Processes; two by default, one on a single core.
    """
    num_workers = num_workers or min(MAX_WORKERS, available_cores())
    with nothing_imported_unasked():  # its locks start a process of their own, which tidies up
        executor = ProcessPoolExecutor(
            num_workers,
            mp_context=multiprocessing.get_context("spawn"),  # forking after torch has started threads can hang
            initializer=prepare_worker,
        )
    try:
        yield WorkerPool(executor, num_workers)
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def prepare_worker() -> None:
    """Leave Ctrl-C to the parent, use one thread, and do not outlive the parent."""
    # Inherited from the parent already, but not on Windows, where each process of a console gets Ctrl-C by itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    threadpool_limits(1)
    end_with_parent()


@contextmanager
def _ctrl_c_ignored() -> Generator[None]:
    """Processes that start inside inherit this: Ctrl-C is for the parent, which ends them in order."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
