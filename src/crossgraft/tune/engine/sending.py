"""A training as bytes for other processes, which import what it needs from where the first one did."""

from __future__ import annotations

import pickle
from collections.abc import Callable

from lightning_fabric import Fabric

from crossgraft.errors import CrossgraftError, UsageError
from crossgraft.models.sources.factory import import_modules, imported_modules
from crossgraft.tune.engine.contract import OnEpoch, OnStep, TrainingJob, TrainingResult

RunJob = Callable[[Fabric, TrainingJob, OnStep | None, OnEpoch | None], TrainingResult]


def packed(run: RunJob, job: TrainingJob) -> bytes:
    """Everything for another process, with the folders of modules of own networks, which are not on the path of Python.

    Raises:
        PicklingError, AttributeError, TypeError: Something cannot be sent.
    """
    content = pickle.dumps((run, job))
    modules = {name: folders for name, folders in imported_modules().items() if _is_named(name, content)}
    return pickle.dumps((modules, content))


def _is_named(module: str, content: bytes) -> bool:
    """Whether a pickle may need this module, or another of its package."""
    return module.partition(".")[0].encode() in content


def unpacked(content: bytes) -> tuple[RunJob, TrainingJob]:
    """What ``packed`` was given, in the other process.

    Raises:
        UsageError: A function or class is not to be found there.
    """
    try:
        modules, inside = pickle.loads(content)
        import_modules(modules)
        return pickle.loads(inside)
    except (AttributeError, ImportError) as error:
        raise UsageError(
            f"A training process cannot find what it was sent: {error}. Put functions and classes of a script or notebook "
            "into a module of their own, or train with one process."
        ) from error


def sendable(error: BaseException) -> BaseException:
    """``error`` as it is, or its text where the first process could not build it again."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return CrossgraftError(f"A training process failed: {type(error).__name__}: {error}")
    return error
