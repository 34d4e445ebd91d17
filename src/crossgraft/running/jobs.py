"""The one sweep that can be resumed: what was done before is read back, the rest is done, and a failure loses no other job."""

from __future__ import annotations

import errno
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Generic, TypeVar

from crossgraft.compute import available_cores
from crossgraft.errors import CrossgraftError, DeviceLostError, RunDirectoryError, StorageError
from crossgraft.running.plugin_errors import naming_plugins
from crossgraft.running.processes import Processes
from crossgraft.stopping import ending_if_asked

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
    """What is done with every job of a sweep; ``do`` keeps what ``read_back`` finds again.

    Attributes:
        faults: Errors that a job fails by. ``RuntimeError`` is what torch raises of a network that cannot take a batch, or when a
            device has no memory left.
        no_faults: Errors among them that no job is to blame for: the disk is full, another process is at work, the GPU is gone.
    """

    faults: ClassVar[tuple[type[Exception], ...]] = (CrossgraftError, RuntimeError)
    no_faults: ClassVar[tuple[type[Exception], ...]] = (StorageError, RunDirectoryError, DeviceLostError)

    def read_back(self, job: Job[Spec]) -> Result | None:
        """The result of an earlier attempt with the same key; None if there is none."""
        return None

    @abstractmethod
    def do(self, job: Job[Spec]) -> Result:
        """The result."""

    def around(self, job: Job[Spec]) -> AbstractContextManager[object]:
        """Entered for one job at a time, before it is looked up; shows progress, for example."""
        return nullcontext()


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
        executor: Where they are done; one after the other in this process when None.

    Returns:
        One outcome a job, in the order of the jobs.

    Raises:
        CrossgraftError: A worker process died.
        StorageError: Nothing can be written any more, whatever ``keep_going`` says; the same call goes on from here.
        RunDirectoryError: Another process is at work in a folder of a job.
    """
    attempt_one = partial(attempt, work=work, keep_going=keep_going)
    if executor is None:
        outcomes: list[Outcome[Spec, Result]] = []
        for job in jobs:
            outcomes.append(attempt_one(job))
            told(outcomes[-1])
        return outcomes
    futures = [executor.submit(attempt_one, job) for job in jobs]
    try:
        for future in as_completed(futures):
            told(future.result())
    except BrokenProcessPool as error:
        raise CrossgraftError(
            "A worker process was ended from outside, most often for want of memory. Close other programs and start the same "
            "command again: what was finished is kept."
        ) from error
    finally:
        for future in futures:
            future.cancel()  # so that Ctrl-C, and an error, wait for the jobs at work only
    return [future.result() for future in futures]


def results_of(outcomes: Sequence[Outcome[Spec, Result]]) -> list[Result]:
    """Results of the jobs that are done."""
    return [outcome.result for outcome in outcomes if outcome.result is not None]


def num_read_back(outcomes: Sequence[Outcome[Spec, Result]]) -> int:
    """Jobs that were done in an earlier attempt."""
    return sum(outcome.was_read_back for outcome in outcomes)


_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ESTALE)


def attempt(job: Job[Spec], work: Work[Spec, Result], *, keep_going: bool) -> Outcome[Spec, Result]:
    """Do one job, unless it is done: what a sweep, and a process that does jobs of a study, understand by that.

    Args:
        job: The job.
        work: What is done.
        keep_going: Whether a job that fails becomes a reason; otherwise its error is raised.

    Raises:
        StorageError: The disk is full, or gone.
        CrossgraftError: Something else that is no fault of the job.
    """
    start = time.perf_counter()
    with work.around(job):
        try:
            with ending_if_asked(), naming_plugins():
                earlier = work.read_back(job)
                result = work.do(job) if earlier is None else earlier
            return Outcome(job, result, "", time.perf_counter() - start, was_read_back=earlier is not None)
        except work.no_faults:
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
                raise StorageError(f"{error}. What is done is kept.") from error
            if not (keep_going and isinstance(error, work.faults)):
                raise
            return Outcome(job, None, error_in_one_line(error), time.perf_counter() - start)


def error_in_one_line(error: BaseException) -> str:
    """Its text, after its kind where that is no sentence of this package or of torch."""
    text = " ".join(str(error).split())
    kind = "" if text and isinstance(error, Work.faults) else type(error).__name__
    return ": ".join(filter(None, (kind, text)))


MAX_WORKERS = 2


@contextmanager
def worker_pool(num_workers: int | None = None) -> Generator[Executor]:
    """Start workers of one thread on demand, and end them with the block, after what they are doing.

    Args:
        num_workers: Processes; two by default, one on a single core.
    """
    executor = Processes(num_workers or min(MAX_WORKERS, available_cores()), prepare=prepare_worker)
    try:
        yield executor
    finally:
        executor.shutdown()


def prepare_worker() -> None:
    """Use one thread."""
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    threadpool_limits(1)
