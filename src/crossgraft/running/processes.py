"""Processes of this machine. Each has a line of its own, so that one that dies takes no job of another with it."""

from __future__ import annotations

import multiprocessing
import pickle
import queue
import signal
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from typing import Any

from crossgraft.compute import end_with_parent, nothing_imported_unasked
from crossgraft.errors import UsageError

_Task = tuple[Future[Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class Processes(Executor):
    """Processes that stay, and are started again where one has died.

    Args:
        num_workers: Number of processes.
        prepare: Called once in each of them; stands at the top level of a module.
    """

    def __init__(self, num_workers: int, *, prepare: Callable[[], object] | None = None) -> None:
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._workers = [_Worker(self._tasks, prepare) for _ in range(num_workers)]

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a call done by the next process that is free; ``fn`` stands at the top level of a module.

        The future raises what ``fn`` raised, ``UsageError`` where something cannot be sent to another process, and
        ``BrokenProcessPool`` where the process died.
        """
        future: Future[Any] = Future()
        self._tasks.put((future, fn, args, kwargs))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes: after what they are doing, or, with ``cancel_futures``, those at work are asked to leave now."""
        if cancel_futures:
            with suppress(queue.Empty):
                while task := self._tasks.get_nowait():
                    task[0].cancel()
        for _ in self._workers:
            self._tasks.put(None)
        for worker in self._workers:
            worker.end(at_once=cancel_futures)


class _Worker:
    """A thread that hands tasks to one process and waits for it."""

    def __init__(self, tasks: queue.SimpleQueue[_Task | None], prepare: Callable[[], object] | None) -> None:
        self._tasks, self._prepare = tasks, prepare
        self._process: Any = None
        self._line: Any = None
        self._is_ending = False
        self._thread = threading.Thread(target=self._serve, daemon=True, name="worker")
        self._thread.start()

    def _serve(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, function, arguments, keywords = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                with _STARTING, nothing_imported_unasked():
                    content = _packed_call(function, arguments, keywords)  # not before, since what waits may be large
                    self._start()
                self._line.send_bytes(content)
                result, error = pickle.loads(self._line.recv_bytes())
            except (EOFError, OSError) as error:
                if self._process is None:
                    future.set_exception(BrokenProcessPool(f"no worker process could be started: {error}"))
                    continue
                self._process.join()
                died = BrokenProcessPool(f"a worker process ended with exit code {self._process.exitcode}")
                self._process = None
                future.set_exception(died)
                continue
            except Exception as error:  # an answer of somebody's library that cannot be read
                future.set_exception(error)
                continue
            future.set_result(result) if error is None else future.set_exception(error)

    def _start(self) -> None:
        if self._process is not None:
            return
        if self._is_ending:
            raise OSError("the engine ends")
        context = multiprocessing.get_context("spawn")  # forking after torch has started threads can hang
        self._line, other_end = context.Pipe()
        process = context.Process(target=_work, args=(other_end, self._prepare), daemon=False, name="crossgraft")
        with _ctrl_c_held_back():
            process.start()
        self._process = process
        other_end.close()

    def end(self, *, at_once: bool) -> None:
        """Let the process end: after what it is doing, or now."""
        self._is_ending = True
        if at_once and (process := self._process) is not None:
            process.terminate()
        self._thread.join()
        if self._process is not None:
            self._line.close()
            self._process.join()


_STARTING = threading.Lock()
"""What a process imports when it starts is decided by variables of this one."""


@contextmanager
def _ctrl_c_held_back() -> Generator[None]:
    """A process that starts inside gets no Ctrl-C before it ignores it; on Windows it may."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _packed_call(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> bytes:
    try:
        return pickle.dumps((function, arguments, keywords))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"Several jobs at a time are done in processes of their own, and something cannot be sent to them: {error}. "
            "Define functions and classes at the top of a module, or do one job at a time with --workers 1."
        ) from error


def _work(line: Any, prepare: Callable[[], object] | None) -> None:
    """In the other process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the first process, which ends this one
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    end_with_parent()
    if prepare is not None:
        prepare()
    with suppress(EOFError):  # nobody asks any more
        while True:
            function, arguments, keywords = pickle.loads(line.recv_bytes())
            try:
                answer = function(*arguments, **keywords), None
            except Exception as error:  # is raised where the call came from
                answer = None, error
            line.send_bytes(_packed(answer))


def _packed(answer: tuple[Any, Exception | None]) -> bytes:
    try:
        return pickle.dumps(answer)
    except Exception:  # an error of somebody's library
        return pickle.dumps((None, RuntimeError(str(answer[1]))))
