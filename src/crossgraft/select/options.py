"""Options of ``select_model``."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from crossgraft.edit.options import EditsBefore
from crossgraft.options._option import Options, option, options
from crossgraft.options.data import ClassOptions, Splits, Subsets, TableOptions, Unreadable, Validating, Volumes
from crossgraft.options.models import Candidates, CodeOptions, Download, InputSize, InsideCheckpoints
from crossgraft.options.running import Device, Looking, Output, Page, Parallel, Seed, Strictness, Workers
from crossgraft.tune.options import Choosing, Deciding, Execution, Slots, Subgroups, TrainingOptions

Prefer = Literal["accurate", "small", "fast"]


@options
class Selecting(Options):
    """What is selected from, at what cost."""

    group: ClassVar[str] = "Selection"

    budget: str = option(
        "Time for everything that is trained (30min, 2h), or share of the time to fine-tune all models (25%).",
        default="30min",
        is_common=True,
    )
    prefer: Prefer = option(
        "Which of the models that cannot be told apart: accurate, small or fast.", default="accurate", is_common=True
    )


@options
class Replaying(Options):
    """How a table of results is replayed."""

    group: ClassVar[str] = "Replay"

    known: str | Path | None = option(
        "With --replay: CSV file of further results that are known of the models.", default=None, is_path=True
    )
    cold: bool = option("With --replay: the other targets of the table are not known.", default=False)


@options
class Replay(Replaying):
    """What the command ``select`` looks up instead of training."""

    replay: str | None = option(
        "Instead of DATA, a table of results to replay: CSV with model, target, value and, if known, val, seconds, group; or the "
        "name of a published one.",
        default=None,
        is_path=True,
    )


@options
class ReplayOptions(Output, Seed, Replaying):
    """Options of ``replay_selection``."""

    budget: str = option(
        "Shares of the time to fine-tune all models of a target, or times, with commas.", default="10%,25%,50%"
    )


@options
class SelectOptions(
    Output,
    Workers,
    Device,
    Parallel,
    Seed,
    Execution,
    Looking,
    Page,
    Strictness,
    InputSize,
    CodeOptions,
    Download,
    InsideCheckpoints,
    Unreadable,
    EditsBefore,
    Subsets,
    Splits,
    Volumes,
    ClassOptions,
    TableOptions,
    Subgroups,
    Validating,
    Deciding,
    Choosing,
    TrainingOptions,
    Slots,
    Selecting,
    Candidates,
):
    """Options of ``select_model``."""
