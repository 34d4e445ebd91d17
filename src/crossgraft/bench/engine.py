"""Where jobs run: any ``Executor`` of ``concurrent.futures``. It schedules; what is done is said by the folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class EngineRequest:
    """What an engine is to run, and with what.

    Attributes:
        num_workers: Jobs at a time; None: as many as the engine finds room for.
        num_threads: Threads, thus cores, of a job.
        folder: Folder of the study, where an engine may keep its own files in a folder of its name.
        address: Address of a cluster that runs already; None: one on this machine.
        parameters: What the engine is told beside that, by its own names.
    """

    num_workers: int | None
    num_threads: int
    folder: Path
    address: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Engine:
    """One place where jobs run; other packages add theirs by the entry point ``crossgraft.engines``.

    Attributes:
        name: As it is typed.
        summary: One sentence.
        open: Starts it, or connects to it, and gives its executor, which ends with the block.
    """

    name: str
    summary: str
    open: Callable[[EngineRequest], AbstractContextManager[Executor]]
