"""Two worker processes, one thread each, kept for the whole demo: most of a short job is importing torch."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

from crossgraft.compute import available_cores
from crossgraft.errors import CrossgraftError, UsageError
from crossgraft.progress import Stage

Job = TypeVar("Job")
Result = TypeVar("Result")

MAX_WORKERS = 2
_GUARD_ADVICE = (
    "In a script, put the call of the demo under `if __name__ == '__main__':`, because its worker processes "
    "import the script."
)


@contextmanager
def worker_pool(num_workers: int | None = None) -> Generator[ProcessPoolExecutor]:
    """Start workers on demand and end them with the block; on an error or Ctrl-C, waiting jobs are dropped.

    Args:
        num_workers: Processes; two by default, one on a single core.

    Raises:
        UsageError: This process is itself such a worker that is importing the user's script.
    """
    refuse_unguarded_script()
    pool = ProcessPoolExecutor(
        num_workers or min(MAX_WORKERS, available_cores()),
        mp_context=multiprocessing.get_context("spawn"),  # forking after torch has started threads can hang
        initializer=prepare_worker,
    )
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def refuse_unguarded_script() -> None:
    """Stop a worker whose import of the user's script has reached the demo again.

    Raises:
        UsageError: With the way to guard the call.
    """
    # The flag by which multiprocessing itself recognises this case, when it is too late for a clear message.
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise UsageError(f"The demo was called while one of its workers was starting. {_GUARD_ADVICE}")


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
        with _ctrl_c_ignored():
            futures: list[Future[Result]] = [pool.submit(function, job) for job in jobs]
        waiting = set(futures)
        while waiting:
            finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                future.result()
                stage.advance()
    except BrokenProcessPool as error:
        raise CrossgraftError(
            "A worker process of the demo ended before its work was done, which most often means too little "
            f"memory or a script that calls the demo without a guard. {_GUARD_ADVICE}"
        ) from error
    return [future.result() for future in futures]
