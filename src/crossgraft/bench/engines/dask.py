"""Dask: the executor of a client."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from crossgraft.bench.engine import Engine, EngineRequest
from crossgraft.compute import available_cores
from crossgraft.errors import MissingError
from crossgraft.optional import require


@contextmanager
def open_dask(request: EngineRequest) -> Generator[Executor]:
    """Connect to a scheduler, or start one with its workers on this machine.

    Raises:
        MissingExtraError: Dask is not installed.
        MissingError: No scheduler answers at the address.
    """
    distributed: Any = require("distributed", extra="dask", needed_for="--engine dask")
    num_workers = request.num_workers or max(1, available_cores() // request.num_threads)
    own = {"n_workers": num_workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    try:
        client = distributed.Client(request.address) if request.address else distributed.Client(**own)
    except OSError as error:
        where = request.address or "this machine"
        raise MissingError(f"No Dask scheduler answers at {where}: {' '.join(str(error).split())}") from error
    with client:
        yield client.get_executor(pure=False)


ENGINE = Engine("dask", "A Dask scheduler, or Dask on this machine.", open_dask)
