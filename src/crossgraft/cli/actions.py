"""What commands do that are more than to call one verb: ``rank`` and ``tune``, which choose one, and those without any.

What is heavy is imported when a command runs, so that ``--help`` of all commands is quick.
"""

from __future__ import annotations

import json

from crossgraft.cli.call import Call
from crossgraft.cli.output import print_json, show
from crossgraft.errors import UsageError
from crossgraft.options import (
    CompareModelsOptions,
    CompareOptions,
    DistilOptions,
    EditOptions,
    FewshotOptions,
    ListOptions,
    Published,
    PublishedOptions,
    RankOptions,
    Replay,
    ReplayOptions,
    ReportOptions,
    SelectOptions,
    SheetOptions,
    SplitOptions,
    SupportOptions,
    TuneOptions,
    options_of,
)

_OF_EVERY_COMMAND = ("json", "quiet", "debug", "config")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def rank(call: Call) -> int:
    """``crossgraft rank``, of images or of published results."""
    data = call.inputs["data"]
    if "published" in call.typed:
        surplus = {*call.typed} - {*options_of(Published), *options_of(PublishedOptions), "json", "quiet", "debug"}
        if data is not None or surplus:
            what = "DATA" if data is not None else _flag(min(surplus))
            raise UsageError(f"--published evaluates results that are there already; it cannot be used with {what}.")
        verb = "crossgraft.verbs.evaluate_published:evaluate_published"
        return call.do(verb, PublishedOptions, call.typed["published"], named="rank")
    if data is None:
        raise UsageError("Name the images to rank for, for example: crossgraft rank digits (or --published thesis).")
    return call.do("crossgraft.verbs.rank_models:rank_models", RankOptions, data, named="rank")


def select(call: Call) -> int:
    """``crossgraft select``, from images or from a table of results."""
    data = call.inputs["data"]
    if "replay" in call.typed:
        surplus = {*call.typed} - {*options_of(Replay), *options_of(ReplayOptions), *_OF_EVERY_COMMAND}
        if data is not None or surplus:
            what = "DATA" if data is not None else _flag(min(surplus))
            raise UsageError(f"--replay looks results up and trains nothing; it cannot be used with {what}.")
        verb = "crossgraft.verbs.replay_selection:replay_selection"
        return call.do(verb, ReplayOptions, call.typed["replay"], named="select")
    surplus = {"known", "cold"} & {*call.typed}
    if surplus:
        raise UsageError(f"{_flag(min(surplus))} is for --replay TABLE.csv.")
    if data is None:
        raise UsageError(
            "Name the images to select a model for, for example: crossgraft select digits --models zoo.yaml (or --replay "
            "TABLE.csv)."
        )
    return call.do("crossgraft.verbs.select_model:select_model", SelectOptions, data, named="select")


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
        return call.do(verb, CompareOptions, data, named="tune-compare", asked=asked, once="compare")
    if asked.get("seeds") is not None:
        raise UsageError(
            "--seeds says how often each way of --compare is trained. Give --compare too, or --seed for one training."
        )
    if asked.get("layer_pca") is not None:
        raise UsageError("--layer-pca draws a layer in each way of --compare. Give --compare too, or leave it out.")
    return call.do("crossgraft.verbs.fine_tune:fine_tune", TuneOptions, data, named="tune", asked=asked)


def compare(call: Call) -> int:
    """``crossgraft compare``, in a directory named after the data, or after the features."""
    a, b, asked = call.inputs["a"], call.inputs["b"], call.asked(CompareModelsOptions)
    about = str(asked.get("data") or a)
    verb = "crossgraft.verbs.compare_models:compare_models"
    return call.do(verb, CompareModelsOptions, a, b, named="compare", about=about, asked=asked)


def fewshot(call: Call) -> int:
    """``crossgraft fewshot``, of tasks drawn from images or of one support set."""
    data, asked = call.inputs["data"], call.asked(SupportOptions)
    if not {"support", "query"} & {*asked}:
        if data is None:
            raise UsageError(
                "Name the images that tasks are drawn from, for example: crossgraft fewshot digits --model resnet18; or what to "
                "learn and what to predict: --support DIR --query DIR."
            )
        if "head" in call.typed:
            raise UsageError("--head is for --support and --query. Tasks drawn from images compare --heads.")
        surplus = {*call.typed} - {*options_of(FewshotOptions), *_OF_EVERY_COMMAND}
        if surplus:
            raise UsageError(f"{_flag(min(surplus))} is for --support and --query, and tasks are drawn from {data}.")
        verb = "crossgraft.verbs.run_episodes:run_episodes"
        return call.do(verb, FewshotOptions, data, named="fewshot")
    surplus = {*call.typed} - {*options_of(SupportOptions), *_OF_EVERY_COMMAND}
    if data is not None or surplus:
        what = "DATA" if data is not None else _flag(min(surplus))
        raise UsageError(f"--support and --query are one task; they cannot be used with {what}.")
    for name in ("support", "query", "model"):
        if name not in asked:
            raise UsageError(f"One task needs --support, --query and --model; there is no --{name}.")
    verb = "crossgraft.verbs.predict_from_support:predict_from_support"
    return call.do(verb, SupportOptions, named="fewshot", about=str(asked["query"]), asked=asked)


def distil(call: Call) -> int:
    """``crossgraft distil``, of any number of runs."""
    runs = call.inputs["runs"]
    about = "-".join(run.name for run in runs)
    return call.do("crossgraft.verbs.distil:distil", DistilOptions, runs, named="distil", about=about)


def edit(call: Call) -> int:
    """``crossgraft edit``, into the folder that was named."""
    asked, folder = call.asked(EditOptions), call.inputs["to"]
    if (folder is None) == (asked.get("out") is None):
        raise UsageError("Name one folder to write, for example: crossgraft edit digits edited --with tag.")
    asked = {**asked, "out": folder or asked["out"]}
    return call.do("crossgraft.verbs.edit_data:edit_data", EditOptions, call.inputs["data"], named="edit", asked=asked)


def report(call: Call) -> int:
    """``crossgraft report``."""
    from crossgraft.report.page import write_report
    from crossgraft.words.visible import visible

    runs = call.inputs["runs"]
    show(visible(str(write_report(runs[0] if len(runs) == 1 else runs, **call.values(ReportOptions)))))
    return 0


def list_plugins(call: Call) -> int:
    """``crossgraft list``, as a table or, of confounders, on images."""
    from crossgraft.cli.listing import after_models, rows_as_text, rows_of
    from crossgraft.compute import without_cycle_collection
    from crossgraft.records import SCHEMA_VERSION

    kind = call.inputs["what"]
    if asked := {*call.typed} & {*options_of(SheetOptions)}:
        return _contact_sheets(call, kind, asked)
    with without_cycle_collection():
        rows = rows_of(kind, **call.values(ListOptions))
        if call.typed.get("json", False):
            print_json(json.dumps({"schema_version": SCHEMA_VERSION, kind.replace("-", "_"): rows}))
        else:
            following = f"\n\n{after_models(rows, call.typed.get('weights_dir'))}" if kind == "models" else ""
            show(rows_as_text(rows) + following)
    return 0


def _contact_sheets(call: Call, kind: str, asked: set[str]) -> int:
    """``crossgraft list confounders --data``."""
    flags, example = options_of(SheetOptions), "crossgraft list confounders --data digits --out sheets"
    if kind != "confounders":
        raise UsageError(f"{flags[min(asked)].flag} is for confounders, which can be shown on images: {example}.")
    if "data" not in asked:
        raise UsageError(f"Name the images that confounders are shown on, for example: {example}.")
    if "out" not in asked:
        raise UsageError(f"Name the folder that contact sheets are written to, for example: {example}.")
    return call.do("crossgraft.verbs.show_confounders:show_confounders", SheetOptions, named="list")
