"""Options of ``select_model``."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from crossgraft.errors import UsageError
from crossgraft.models.options import Candidates
from crossgraft.options import options_of
from crossgraft.options._option import Options, option, options
from crossgraft.options.command import DATA_HELP, OF_EVERY_COMMAND, Command, Input, Typed, VerbCall, flag_of
from crossgraft.options.data import Validating
from crossgraft.options.models import Loading
from crossgraft.options.running import Computing, Output, Reported, Seed, Terminal
from crossgraft.tune.options import EditedRows, Execution, FromDomains, Subgroups, VariantOptions

Prefer = Literal["accurate", "small", "fast"]


@options
class Selecting(Options):
    """What is selected from, at what cost."""

    group: ClassVar[str] = "Selection"

    budget: str = option(
        "Time for everything, from start to saved model (30min, 2h), or share of the time to fine-tune all models (25%).",
        default="30min",
        is_common=True,
    )
    prefer: Prefer = option("Among models that seem equal: accurate, small or fast.", default="accurate", is_common=True)


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

    budget: str = option("Shares of the time to fine-tune all models of a target, or times, with commas.", default="10%,25%,50%")


@options
class SelectOptions(
    Output,
    Computing,
    Execution,
    Reported,
    Loading,
    EditedRows,
    Subgroups,
    FromDomains,
    Validating,
    VariantOptions,
    Selecting,
    Candidates,
):
    """Options of ``select_model``."""


def _select(call: Typed) -> VerbCall:
    """``crossgraft select``, from images or from a table of results."""
    data = call.inputs["data"]
    if "replay" in call.typed:
        surplus = {*call.typed} - {*options_of(Replay), *options_of(ReplayOptions), *OF_EVERY_COMMAND}
        if data is not None or surplus:
            what = "DATA" if data is not None else flag_of(min(surplus))
            raise UsageError(f"--replay looks results up and trains nothing; it cannot be used with {what}.")
        verb = "crossgraft.select.replay.verb:replay_selection"
        return VerbCall(verb, ReplayOptions, (call.typed["replay"],), named="select")
    surplus = {"known", "cold"} & {*call.typed}
    if surplus:
        raise UsageError(f"{flag_of(min(surplus))} is for --replay TABLE.csv.")
    if data is None:
        raise UsageError(
            "Name the images to select a model for, for example: crossgraft select digits --models zoo.yaml (or --replay "
            "TABLE.csv)."
        )
    return VerbCall("crossgraft.select.verb:select_model", SelectOptions, (data,), named="select")


COMMAND = Command(
    "select",
    "Select a pretrained model within a budget, and hand it over fine-tuned.",
    example="select digits --models zoo.yaml --budget 30min",
    inputs=(Input("data", DATA_HELP, is_required=False),),
    options=(SelectOptions, Replay, Terminal),
    action=_select,
    notes="Models are fine-tuned in the order of what is known of them elsewhere while the budget lasts; the best on val is "
    "handed over, and test is opened once, for it. --plan shows what would be trained. The same command goes on where it was "
    "stopped. --replay shows what this rule gives on any table of results, beside simpler ones.",
    place=50,
)
