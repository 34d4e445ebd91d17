"""Options of ``select_model``."""

from __future__ import annotations

from typing import ClassVar, Literal

from crossgraft.options._option import Options, option, options
from crossgraft.options.data import ClassOptions, Splits, Subsets, TableOptions, Unreadable, Volumes
from crossgraft.options.editing import EditsBefore
from crossgraft.options.models import Candidates, CodeOptions, Download, InputSize, Weights
from crossgraft.options.running import Device, Looking, Output, Page, Parallel, Seed, Strictness, Workers
from crossgraft.options.tuning import Choosing, Deciding, Execution, Slots, Subgroups, TrainingOptions, Validating

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
    Weights,
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
