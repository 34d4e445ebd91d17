"""Ray: placement and retries are Ray's."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from functools import cache
from typing import Any

from crossgraft.bench.engine import Engine, EngineRequest
from crossgraft.errors import MissingError
from crossgraft.optional import require


@contextmanager
def open_ray(request: EngineRequest) -> Generator[Executor]:
    """Connect to a cluster, or start one on this machine.

    Raises:
        MissingExtraError: Ray is not installed.
        MissingError: No cluster answers at the address.
    """
    ray: Any = require("ray", extra="ray", needed_for="--engine ray")
    own: dict[str, Any] = {"num_cpus": request.num_workers and request.num_workers * request.num_threads}
    try:
        ray.init(
            address=request.address or "local",
            include_dashboard=False if request.address is None else None,
            log_to_driver=False,
            **(own if request.address is None else {}),
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = request.address or "this machine"
        raise MissingError(f"No Ray cluster answers at {where}: {' '.join(str(error).split())}") from error
    try:
        yield _Tasks(ray, request.num_threads)
    finally:
        ray.shutdown()


class _Tasks(Executor):
    def __init__(self, ray: Any, num_threads: int) -> None:
        # Ray sends each remote function to its workers, and keeps a worker for further tasks of the same one only.
        self._remote = cache(ray.remote(num_cpus=num_threads, max_retries=3))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._remote(fn).remote(*args, **kwargs).future()


ENGINE = Engine("ray", "A Ray cluster, or Ray on this machine.", open_ray)
