"""Options of ``run_study``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from crossgraft.options._option import FromProgram, Options, option, options
from crossgraft.options.command import Command, Input
from crossgraft.options.models import CodeOptions
from crossgraft.options.running import Output, Terminal

if TYPE_CHECKING:
    from concurrent.futures import Executor
else:
    Executor = FromProgram


@options
class Engines(Options):
    """Where jobs run."""

    group: ClassVar[str] = "Engine"

    engine: str = option("local, slurm, ray or dask.", default="local", decides=False, is_common=True)
    workers: int | None = option(
        "Jobs at a time.", default=None, default_text="cores ÷ threads of a job", decides=False, least=1, is_common=True
    )
    address: str | None = option(
        "Address of a Ray or Dask cluster.", default=None, default_text="one is started on this machine", decides=False
    )
    engine_option: str | Sequence[str] = option(
        "What the engine is told beside that, NAME=VALUE: partition=gpu, gpus_per_node=1.",
        default=(),
        decides=False,
        repeats=True,
    )
    jobs_per_task: int = option("Jobs that one task of the engine does, one after the other.", default=1, decides=False, least=1)
    executor: Executor | None = option(
        "Any executor of concurrent.futures, instead of an engine.",
        default=None,
        decides=False,
        is_typed=False,
        takes="a concurrent.futures.Executor",
    )


@options
class Limiting(Options):
    """What ends a job."""

    group: ClassVar[str] = "Limits"

    job_minutes: float | None = option("Minutes after which a job has failed.", default=None, default_text="none", decides=False)
    job_memory: float | None = option(
        "GiB of memory at which a job has failed.", default=None, default_text="none", decides=False
    )
    lease_seconds: float = option(
        "A process that shows no sign of life for so long is given up, and its job goes on elsewhere.",
        default=60.0,
        decides=False,
    )
    wait_minutes: float | None = option(
        "Minutes to wait for an engine that begins no job.", default=None, default_text="as long as it takes", decides=False
    )


@options
class StudyOptions(Output, Engines, Limiting, CodeOptions):
    """Options of ``run_study``."""

    group: ClassVar[str] = "Study"

    plan: bool = option("Show jobs, hours and disk, and do nothing.", default=False, decides=False, is_common=True)
    status: bool = option("Show what is done, and do nothing.", default=False, decides=False, is_common=True)
    retry_failed: bool = option("Begin jobs that failed once more.", default=False, decides=False, is_common=True)
    smoke: bool = option("Do what the key smoke of the study says: the same protocol, small.", default=False, is_common=True)


COMMAND = Command(
    "bench",
    "Run a study: the same command for all models, data sets, settings and seeds of a YAML file.",
    example="bench study.yaml --plan",
    inputs=(Input("study", "YAML file of the study."),),
    options=(StudyOptions, Terminal),
    verb="crossgraft.bench.verb:run_study",
    notes="Each job has a run folder of its own, and is done once: started again, the command does what is missing. Several may "
    "run at the same time, on any machines that share the folder.",
    place=110,
)
