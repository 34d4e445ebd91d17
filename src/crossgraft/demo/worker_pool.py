"""Two worker processes, one thread each, kept for the whole demo: most of a short job is importing torch."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import ModuleType
from typing import TypeVar

from crossgraft.compute import available_cores
from crossgraft.errors import CrossgraftError
from crossgraft.progress import Stage

Job = TypeVar("Job")
Result = TypeVar("Result")

MAX_WORKERS = 2


@contextmanager
def worker_pool(num_workers: int | None = None) -> Generator[ProcessPoolExecutor]:
    """Start workers on demand and end them with the block; on an error or Ctrl-C, waiting jobs are dropped.

    Args:
        num_workers: Processes; two by default, one on a single core.
    """
    pool = ProcessPoolExecutor(
        num_workers or min(MAX_WORKERS, available_cores()),
        mp_context=multiprocessing.get_context("spawn"),  # forking after torch has started threads can hang
        initializer=prepare_worker,
    )
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def prepare_worker() -> None:
    """Use one thread, and do not outlive the parent."""
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(1)
    threadpool_limits(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that is killed can not end its workers, and they would wait for work forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


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


@contextmanager
def _script_hidden() -> Generator[None]:
    """Processes that start inside do not import the user's script.

    They need nothing from it. Importing it would run it again if it has no ``if __name__ == "__main__":``, and would
    fail if it came from stdin.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def run_jobs(
    pool: ProcessPoolExecutor, function: Callable[[Job], Result], jobs: Sequence[Job], *, stage: Stage
) -> list[Result]:
    """Run ``function`` on every job, and return the results in the order of the jobs.

    Args:
        pool: From ``worker_pool``.
        function: At the top level of a module.
        jobs: What can be sent to another process.
        stage: Advanced as jobs finish.

    Raises:
        CrossgraftError: A worker process died, or what ``function`` raised.
    """
    try:
        with _ctrl_c_ignored(), _script_hidden():
            futures: list[Future[Result]] = [pool.submit(function, job) for job in jobs]
        waiting = set(futures)
        while waiting:
            finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                future.result()
                stage.advance()
    except BrokenProcessPool as error:
        raise CrossgraftError(
            "A worker process of the demo was ended from outside, most often for want of memory. Close other "
            "programs and start the demo again: models that were finished are kept."
        ) from error
    return [future.result() for future in futures]
