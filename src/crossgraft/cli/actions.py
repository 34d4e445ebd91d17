"""What each command does: call one verb with what was typed, print what it found, and return the exit code.

Verbs and their texts are imported when a command runs, so that ``--help`` of all commands is quick.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from crossgraft.cli.call import Call, in_own_directory
from crossgraft.cli.output import show
from crossgraft.errors import UsageError
from crossgraft.options import (
    CheckOptions,
    CompareOptions,
    DemoOptions,
    ExportOptions,
    ListOptions,
    PredictOptions,
    Published,
    PublishedOptions,
    RankOptions,
    ReportOptions,
    TuneOptions,
    options_of,
)

EXIT_UNSOUND = 3
EXIT_PARTIAL = 6


def demo(call: Call) -> int:
    """``crossgraft demo``."""
    from crossgraft.cli.demo_text import demo_text
    from crossgraft.demo import write_demo

    values = call.values(DemoOptions)
    record, report = write_demo(reporter=call.reporter, **values)
    call.show(record.model_dump_json, lambda: demo_text(record, Path(values["out"]), report))
    return 0


def check(call: Call) -> int:
    """``crossgraft check``: 3 where something unsound was found."""
    from crossgraft.cli.check_text import check_text
    from crossgraft.verbs.check_data import check_data

    data, values = call.inputs["data"], call.values(CheckOptions)
    found = in_own_directory("check", data, values, lambda **each: check_data(data, reporter=call.reporter, **each))
    call.show(found.to_json, lambda: check_text(found.record, found.report))
    return 0 if found.is_sound else EXIT_UNSOUND


def rank(call: Call) -> int:
    """``crossgraft rank``, of images or of published results."""
    from crossgraft.cli.ranking_text import ranking_text
    from crossgraft.verbs.rank_models import rank_models

    if "published" in call.typed:
        return _evaluate_again(call)
    data = call.inputs["data"]
    if data is None:
        raise UsageError("Name the images to rank for, for example: crossgraft rank digits (or --published thesis).")
    values = call.values(RankOptions)
    ranking = in_own_directory("rank", data, values, lambda **each: rank_models(data, reporter=call.reporter, **each))
    call.show(ranking.to_json, lambda: ranking_text(ranking.record, ranking.report))
    return 0


def _evaluate_again(call: Call) -> int:
    from crossgraft.cli.published_text import published_text
    from crossgraft.progress import Reporter
    from crossgraft.verbs.evaluate_published import evaluate_published

    name = call.typed["published"]
    surplus = {*call.typed} - {*options_of(Published), *options_of(PublishedOptions), "json", "quiet", "debug"}
    if call.inputs["data"] is not None or surplus:
        what = "DATA" if call.inputs["data"] is not None else "--" + min(surplus).replace("_", "-")
        raise UsageError(f"--published evaluates results that are there already; it cannot be used with {what}.")
    record, page = in_own_directory(
        "rank",
        name,
        call.values(PublishedOptions),
        lambda **each: (evaluate_published(name, reporter=Reporter(quiet=True), **each), each["out"] / "report.html"),
    )
    call.show(record.model_dump_json, lambda: published_text(record, page if page.is_file() else None))
    return 0


def tune(call: Call) -> int:
    """``crossgraft tune``, one way or several: 6 where some trainings failed."""
    from crossgraft.cli.tune_text import tuning_text
    from crossgraft.verbs.fine_tune import fine_tune

    if "model" not in call.typed and call.config is None:
        raise UsageError("Name the model to fine-tune, for example: --model mobilenetv2_100.")
    data, asked = call.inputs["data"], call.asked(CompareOptions)
    if asked.get("compare") is not None:
        return _compare(call, data, call.values(CompareOptions, asked))
    if asked.get("seeds") is not None:
        raise UsageError(
            "--seeds says how often each way of --compare is trained. Give --compare too, or --seed for one training."
        )
    values = call.values(TuneOptions, asked)
    tuned = in_own_directory("tune", data, values, lambda **each: fine_tune(data, reporter=call.reporter, **each))
    if tuned.tuning is None:
        call.show(tuned.to_json, tuned.plan.summary)
        return 0
    call.show(tuned.to_json, lambda: tuning_text(tuned.record, tuned.out, tuned.report))
    return EXIT_PARTIAL if any(row.state == "failed" for row in tuned.tuning.grid) else 0


def _compare(call: Call, data: str, values: dict[str, Any]) -> int:
    from crossgraft.cli.comparison_text import comparison_text
    from crossgraft.verbs.compare_fine_tunings import compare_fine_tunings

    found = in_own_directory(
        "compare", data, values, lambda **each: compare_fine_tunings(data, reporter=call.reporter, **each)
    )
    if found.comparison is None:
        call.show(found.to_json, found.summary)
        return 0
    call.show(found.to_json, lambda: comparison_text(found.record, found.report))
    return EXIT_PARTIAL if any(row.state == "failed" for row in found.record.trainings) else 0


def predict(call: Call) -> int:
    """``crossgraft predict``."""
    from crossgraft.cli.predict_text import predict_text
    from crossgraft.verbs.predict import predict as predict_images

    run, images, values = call.inputs["run"], call.inputs["images"], call.values(PredictOptions)
    predictions = in_own_directory(
        "predict", images, values, lambda **each: predict_images(run, images, reporter=call.reporter, **each)
    )
    call.show(predictions.to_json, lambda: predict_text(predictions))
    return 0


def export(call: Call) -> int:
    """``crossgraft export``."""
    from crossgraft.cli.export_text import export_text
    from crossgraft.verbs.export_model import export_model

    exported = export_model(call.inputs["run"], reporter=call.reporter, **call.values(ExportOptions))
    call.show(exported.to_json, lambda: export_text(exported))
    return 0


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
    document = {"schema_version": SCHEMA_VERSION, kind.replace("-", "_"): rows}
    call.show(lambda: json.dumps(document), lambda: rows_as_text(rows))
    return 0
