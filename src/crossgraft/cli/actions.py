"""What commands do that no room has.

What is heavy is imported when a command runs, so that ``--help`` of all commands is quick.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from crossgraft.cli.list_options import ListOptions
from crossgraft.cli.output import print_json, show
from crossgraft.edit.options import SheetOptions
from crossgraft.errors import UsageError
from crossgraft.options._option import options_of
from crossgraft.options.command import VerbCall
from crossgraft.options.running import ReportOptions

if TYPE_CHECKING:
    from crossgraft.cli.call import Call

_IN_AN_INSTANT = ("results", "sources", "confounders")
"""What is listed without an import of networks."""


def report(call: Call) -> int:
    """``crossgraft report``."""
    options = call.values(ReportOptions)
    call.say_first("report")
    from crossgraft.running.publishing import write_report
    from crossgraft.words.visible import visible

    runs = call.inputs["runs"]
    show(visible(str(write_report(runs[0] if len(runs) == 1 else runs, **options))))
    return 0


def list_plugins(call: Call) -> VerbCall | int:
    """``crossgraft list``, as a table or, of confounders, on images."""
    from crossgraft.cli.listing import after_models, rows_as_text, rows_of
    from crossgraft.compute import without_cycle_collection
    from crossgraft.records.base import SCHEMA_VERSION

    kind = call.inputs["what"]
    if chosen := {*call.typed} & {*options_of(SheetOptions)}:
        return _contact_sheets(call, kind, chosen)
    if kind not in _IN_AN_INSTANT:
        call.say_first("list")
    with without_cycle_collection():
        rows = rows_of(kind, **call.values(ListOptions))
        if call.typed.get("json", False):
            print_json(json.dumps({"schema_version": SCHEMA_VERSION, kind.replace("-", "_"): rows}))
        else:
            following = f"\n\n{after_models(rows, call.typed.get('weights_dir'))}" if kind == "models" else ""
            show(rows_as_text(rows) + following)
    return 0


def _contact_sheets(call: Call, kind: str, chosen: set[str]) -> VerbCall:
    """``crossgraft list confounders --data``."""
    flags, example = options_of(SheetOptions), "crossgraft list confounders --data digits --out sheets"
    if kind != "confounders":
        raise UsageError(f"{flags[min(chosen)].flag} is for confounders, which can be shown on images: {example}.")
    if "data" not in chosen:
        raise UsageError(f"Name the images that confounders are shown on, for example: {example}.")
    if "out" not in chosen:
        raise UsageError(f"Name the folder that contact sheets are written to, for example: {example}.")
    return VerbCall("crossgraft.edit.contact_sheets:show_confounders", SheetOptions, named="list")
