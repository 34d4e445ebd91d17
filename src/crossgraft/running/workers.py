"""Worker processes of one thread each, kept for several sweeps: most of a short job is importing torch."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from crossgraft.compute import available_cores, end_with_parent, nothing_imported_unasked
from crossgraft.errors import CrossgraftError, UsageError
from crossgraft.running.jobs import Executor

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_WORKERS = 2


class WorkerPool(Executor):
    """Does jobs in other processes; made by ``worker_pool``."""

    def __init__(self, executor: ProcessPoolExecutor, num_workers: int) -> None:
        self._executor = executor
        self._num_workers = num_workers

    def run(
        self, function: Callable[[Item], Result], items: Sequence[Item], *, told: Callable[[Result], object]
    ) -> list[Result]:
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
