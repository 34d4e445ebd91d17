"""What commands do that are more than to call one verb: ``rank`` and ``tune``, which choose one, and those without any.

What is heavy is imported when a command runs, so that ``--help`` of all commands is quick.
"""

from __future__ import annotations

import json

from crossgraft.cli.call import Call
from crossgraft.cli.output import print_json, show
from crossgraft.errors import UsageError
from crossgraft.options import (
    CompareOptions,
    ListOptions,
    Published,
    PublishedOptions,
    RankOptions,
    ReportOptions,
    SplitOptions,
    TuneOptions,
    options_of,
)


def rank(call: Call) -> int:
    """``crossgraft rank``, of images or of published results."""
    data = call.inputs["data"]
    if "published" in call.typed:
        surplus = {*call.typed} - {*options_of(Published), *options_of(PublishedOptions), "json", "quiet", "debug"}
        if data is not None or surplus:
            what = "DATA" if data is not None else "--" + min(surplus).replace("_", "-")
            raise UsageError(f"--published evaluates results that are there already; it cannot be used with {what}.")
        verb = "crossgraft.verbs.evaluate_published:evaluate_published"
        return call.do(verb, PublishedOptions, call.typed["published"], named="rank")
    if data is None:
        raise UsageError("Name the images to rank for, for example: crossgraft rank digits (or --published thesis).")
    return call.do("crossgraft.verbs.rank_models:rank_models", RankOptions, data, named="rank")


def split(call: Call) -> int:
    """``crossgraft split``, to split.json where no file was named."""
    asked = {"out": "split.json", **call.asked(SplitOptions)}
    verb = "crossgraft.verbs.split_data:split_data"
    return call.do(verb, SplitOptions, call.inputs["data"], named="split", asked=asked)


def tune(call: Call) -> int:
    """``crossgraft tune``, one way or several."""
    if "model" not in call.typed and call.config is None:
        raise UsageError("Name the model to fine-tune, for example: --model mobilenetv2_100.")
    data, asked = call.inputs["data"], call.asked(CompareOptions)
    if asked.get("compare") is not None:
        verb = "crossgraft.verbs.compare_fine_tunings:compare_fine_tunings"
        return call.do(verb, CompareOptions, data, named="compare", asked=asked)
    if asked.get("seeds") is not None:
        raise UsageError(
            "--seeds says how often each way of --compare is trained. Give --compare too, or --seed for one training."
        )
    if asked.get("layer_pca") is not None:
        raise UsageError("--layer-pca draws a layer in each way of --compare. Give --compare too, or leave it out.")
    return call.do("crossgraft.verbs.fine_tune:fine_tune", TuneOptions, data, named="tune", asked=asked)


def report(call: Call) -> int:
    """``crossgraft report``."""
    from crossgraft.report.page import write_report
    from crossgraft.words.visible import visible

    runs = call.inputs["runs"]
    show(visible(str(write_report(runs[0] if len(runs) == 1 else runs, **call.values(ReportOptions)))))
    return 0


def list_plugins(call: Call) -> int:
    """``crossgraft list``."""
    from crossgraft.cli.listing import rows_as_text, rows_of
    from crossgraft.records import SCHEMA_VERSION

    kind = call.inputs["what"]
    rows = rows_of(kind, **call.values(ListOptions))
    if call.typed.get("json", False):
        print_json(json.dumps({"schema_version": SCHEMA_VERSION, kind.replace("-", "_"): rows}))
    else:
        show(rows_as_text(rows))
    return 0
