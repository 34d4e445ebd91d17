"""Processes of this machine."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Executor
from contextlib import contextmanager

from crossgraft.bench.engine import Engine, EngineRequest
from crossgraft.compute import available_cores
from crossgraft.running.processes import Processes


@contextmanager
def open_local(request: EngineRequest) -> Generator[Executor]:
    """As many processes as there are cores for."""
    executor = Processes(request.num_workers or max(1, available_cores() // request.num_threads))
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


ENGINE = Engine("local", "Processes of this machine.", open_local)
