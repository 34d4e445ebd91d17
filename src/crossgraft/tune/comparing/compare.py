"""``compare_fine_tunings``: several ways to fine-tune one model, measured on the same images."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from crossgraft.data import Dataset
from crossgraft.data.describe import describe_dataset, make_thumbnails
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models import ModelSpec
from crossgraft.progress import Reporter
from crossgraft.records import FineTuningComparisonRecord, Reference
from crossgraft.report import finish_run
from crossgraft.runs import RunDirectory, open_command_run
from crossgraft.runs.command_line import display_value
from crossgraft.storage.temporaries import scratch_folder
from crossgraft.tune.assemble import PRIMARY_METRICS
from crossgraft.tune.comparing.comparison import FineTuningComparison
from crossgraft.tune.comparing.curves import draw_curves
from crossgraft.tune.comparing.differences import MeasuredImages
from crossgraft.tune.comparing.limits import intervals_in_words, notes_on
from crossgraft.tune.comparing.study import Study, plan_all
from crossgraft.tune.comparing.summary import measure_variants, summarise
from crossgraft.tune.comparing.trainings import DoneTraining, train_all
from crossgraft.tune.comparing.variants import Entry, Variant, read_variants
from crossgraft.tune.fine_tune import DEFAULTS, NOT_CONFIGURATION, as_typed, fine_tune
from crossgraft.tune.measuring.thresholds import parse_threshold_rule
from crossgraft.tune.planning.fold_data import task_of
from crossgraft.tune.planning.grid import point_name, read_grid
from crossgraft.tune.planning.preparation import checks_of_rows, plugins_of, rows_of_call
from crossgraft.tune.planning.rows import columns_of
from crossgraft.tune.planning.starting_model import find_model
from crossgraft.tune.result_rows import look_at_known_results
from crossgraft.tune.tracking import open_tracking
from crossgraft.words.csv_cells import frame_csv

_SAID_BY_VARIANTS = ("method", "regularizer")
_NO_ADAPTER = (
    "--adapter does not go with --compare, which measures how far each variant moves from the pretrained network. Leave one of "
    "them out."
)
_JACKKNIFE = Reference(
    key="Differences",
    text="Test images by the delete-one-block jackknife (Efron and Stein, Annals of Statistics 9 (1981) 586), seeds by their "
    "variance; degrees of freedom after Satterthwaite, Biometrics Bulletin 2 (1946) 110.",
)


def compare_fine_tunings(
    data: str | Path | Dataset,
    *,
    model: str | Path | ModelSpec,
    compare: Entry | Sequence[Entry],
    seeds: int = 1,
    reporter: Reporter | None = None,
    **options: Any,
) -> FineTuningComparison:
    """Fine-tune one model in several ways, and see what each gives and how much it keeps of what the model knew.

    All variants see the same split and the same preprocessing, and variant for variant the same seeds, so that they may be
    compared image by image. Each training is a run directory of its own, ``trainings/VARIANT-SEED`` in ``out``, with a model
    that ``predict`` uses. The same call with the same ``out`` goes on where it was stopped; a training that fails becomes a
    row with a reason, and the others go on.

    Where ``full`` is among the variants, the networks between it and the pretrained one (with the head of ``linear``, if
    that is there) are measured, too: they cost no training, so a variant should lie above their curve.

    Args:
        data: As in ``fine_tune``.
        model: As in ``fine_tune``.
        compare: ``full,linear,hcs:0.8,0.6,repsim``: methods, or regularisers that are added to ``full``; ``partial:3+l2_sp``
            for both; a number repeats the plug-in before it with another value of its first option. ``ablations.yaml`` is a
            list of mappings with a ``name`` and any settings of ``fine_tune``; see ``tune.comparing.variants.read_variants``.
        seeds: How many of each: ``seed``, ``seed + 1`` and so on. From three on, intervals are those of seeds.
        reporter: Where progress goes; silent when None.
        options: Everything else that ``fine_tune`` takes, for all variants alike, but ``method`` and ``regularizer``, which
            the variants say, and ``folds``.

    Returns:
        Every number, and with ``out`` also ``report.html``, ``report.json``, ``comparison.csv`` (one row a variant) and
        ``trainings.csv`` (one row a training) there.

    Raises:
        DataError: Something is wrong with the images or labels, or no training ended with a model.
        UsageError: A variant or an argument is wrong, or contradicts another; nothing was trained then.
        UnknownNameError: A name is not known; the message gives the nearest ones.
        MissingWeightsError: Weights are not on this machine.
        RunDirectoryError: ``out`` is in use or holds another run.

    Cost:
        That of all trainings, and with ``full`` eleven forward passes of val and test a seed; ``plan=True`` says how long.
    """
    call = _call_of(options, model=model, reporter=reporter)
    reporter = reporter or Reporter(quiet=True)
    variants = read_variants(compare)
    if seeds < 1:
        raise UsageError(f"--seeds must be at least 1, not {seeds}.")
    _refuse_misspelled(variants, call)
    spec = find_model(model, call["weights_dir"], call["allow_code"])
    tracking = open_tracking(call["track"], reporter)
    if call["store"] and not call["plan"]:
        look_at_known_results(reporter)
    location = data.name if isinstance(data, Dataset) else data
    typed = {"compare": _as_typed(compare), "seeds": seeds}
    with _run_of(call, typed, variants, location=location, model=spec.describe()) as run:
        rows = rows_of_call(data, call, reporter)
        columns_of(rows.dataset, call["subgroups"])
        if run is not None:
            run.describe_data(rows.dataset.fingerprint)
        checks = checks_of_rows(rows, strict=call["strict"], reporter=reporter)
        study = Study(rows, checks, call, spec, variants, [call["seed"] + number for number in range(seeds)], reporter)
        plan = plan_all(study, run)
        if run is None:
            return FineTuningComparison(plan)
        done = train_all(study, plan, run, tracking)
        result = FineTuningComparison(plan, _record(study, done, run))
        return _write(result, study, run, is_kept=call["out"] is not None)


def _call_of(options: Mapping[str, Any], **own: Any) -> dict[str, Any]:
    """All arguments of ``fine_tune``, those that were not given at their defaults.

    Raises:
        UnknownNameError: ``fine_tune`` has no such argument.
        UsageError: It is one that does not go with a comparison.
    """
    known = [name for name in DEFAULTS if name != "data"]
    for name in options:
        if name not in known:
            raise UnknownNameError("argument", name, [*known, "compare", "seeds"])
    given = {name: value for name, value in options.items() if value != DEFAULTS[name]}
    for name in _SAID_BY_VARIANTS:
        if name in given:
            raise UsageError(
                f"--{name} does not go with --compare, whose variants say it themselves: full+l2_sp, partial:3+l2_sp."
            )
    if "adapter" in given:
        raise UsageError(_NO_ADAPTER)
    for name in ("folds", "fold"):
        if name in given:
            raise UsageError(
                f"--{name} does not go with --compare: differences are measured on the same test images, and each fold has "
                "others. Compare on one split, or with a saved split of a fold (--split)."
            )
    return {name: value for name, value in {**DEFAULTS, **options, **own}.items() if name not in ("data", "reporter")}


def _as_typed(compare: Entry | Sequence[Entry]) -> list[str]:
    """As a command line would give it, without the folders of files."""
    entries: list[Entry] = [compare] if isinstance(compare, str | Path | Mapping) else list(compare)
    items = [str(each["name"]) if isinstance(each, Mapping) else str(each) for each in entries]
    return [str(display_value(part)) for item in items for part in item.split(",")]


def _refuse_misspelled(variants: Sequence[Variant], call: Mapping[str, Any]) -> None:
    """What is wrong with a name or an option comes to light before any image is read."""
    for variant in variants:
        of_it = {**call, **variant.settings}
        if of_it["adapter"] is not None:
            raise UsageError(_NO_ADAPTER)
        try:
            read_grid(of_it["grid"])
            plugins_of(of_it, "multi-class")
            parse_threshold_rule(of_it["threshold_rule"] or "youden")
        except UnknownNameError:
            raise  # says the name already
        except UsageError as error:
            raise UsageError(f"The variant {variant.name}: {error}") from error


@contextmanager
def _run_of(
    call: Mapping[str, Any],
    typed: Mapping[str, Any],
    variants: Sequence[Variant],
    *,
    location: str | Path,
    model: Mapping[str, Any],
) -> Generator[RunDirectory | None]:
    """The run directory; without ``out`` one that goes away with the block, and none at all for a plan."""
    configuration = {name: value for name, value in call.items() if name not in NOT_CONFIGURATION}
    settings = [{"name": each.name, **as_typed({**DEFAULTS, **each.settings})} for each in variants]
    changed = [
        {name: each[name] for name in each if name == "name" or each[name] != DEFAULTS[name]} for each in settings
    ]
    resolved: dict[str, Any] = {
        "model": model,
        "compare": changed,
        "grid": [point_name(point) for point in read_grid(call["grid"])],
    }
    with scratch_folder("comparison") as temporary:
        out = None if call["plan"] else call["out"] or temporary / "comparison"
        with open_command_run(
            compare_fine_tunings,
            "tune",
            data=location,
            call={**as_typed(configuration), **typed},
            resolved=resolved,
            out=out,
            overwrite=call["overwrite"],
        ) as run:
            yield run


def _record(study: Study, done: Sequence[DoneTraining], run: RunDirectory) -> FineTuningComparisonRecord:
    first = next(each.record for each in done if each.record is not None)
    rows = study.rows
    metric = PRIMARY_METRICS[task_of(rows.dataset)]
    images = MeasuredImages.of(rows.dataset.take(rows.parts[0].test), metric)
    curves, reason = draw_curves(study, done, metric, run)
    data = replace(rows.dataset, split_method=rows.split_in_words)
    references = {each.text: each for one in done if one.record is not None for each in one.record.references}
    references |= {each.text: each for curve in curves for each in curve.record.references}
    failed = [each for each in done if each.record is None]
    return FineTuningComparisonRecord(
        dataset=describe_dataset(data, show_names=study.call["show_names"]),
        splits=rows.split_rows(),
        leakage=rows.leakage,
        leakage_checked=rows.dataset.groups is not None,
        model=first.model.model_copy(update={"from_scratch": False}),
        seeds=list(study.seeds),
        primary_metric=metric,
        variants=summarise(measure_variants(done, images), curves, images),
        trainings=[each.row for each in done],
        interpolation=[curve.record for curve in curves],
        interpolation_reason=reason,
        interval_words=intervals_in_words(len(study.seeds)),
        seconds=sum(each.row.seconds for each in done),
        checks=study.checks,
        warnings=[f"{each.variant.name} with seed {each.seed} failed: {each.row.reason}" for each in failed],
        notes=notes_on(study, curves),
        references=[*references.values(), _JACKKNIFE],
    )


def _write(result: FineTuningComparison, study: Study, run: RunDirectory, *, is_kept: bool) -> FineTuningComparison:
    """Tables, record and page; nothing of it stays without ``out``."""
    if not is_kept:
        run.finish()
        return replace(result, comparison=_without_folders(result.record))
    record = result.record
    run.update(weights_fingerprints={record.model.name: record.model.weights_fingerprint})
    run.write("comparison.csv", frame_csv(result.to_frame()))
    run.write("trainings.csv", frame_csv(result.trainings()))
    if (split := study.rows.split_record()) is not None:
        run.write_record("split.json", split)
    run.write_record("report.json", record)
    images = study.rows.dataset.take(study.rows.parts[0].train)
    thumbnails = None if study.call["no_images"] else lambda: make_thumbnails(images)
    return replace(result, out=run.path, report=finish_run(run, study.reporter, thumbnails=thumbnails))


def _without_folders(record: FineTuningComparisonRecord) -> FineTuningComparisonRecord:
    trainings = [row.model_copy(update={"folder": None}) for row in record.trainings]
    return record.model_copy(update={"trainings": trainings})


def _signature() -> inspect.Signature:
    """With the arguments of ``fine_tune`` by name, for ``help`` and for the command line that a run records."""
    own = inspect.signature(compare_fine_tunings)
    named = [each for each in own.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    left_out = {*own.parameters, *_SAID_BY_VARIANTS, "adapter", "folds", "fold"}
    theirs = [each for name, each in inspect.signature(fine_tune).parameters.items() if name not in left_out]
    return own.replace(parameters=[*named, *theirs])


compare_fine_tunings.__signature__ = _signature()  # pyright: ignore[reportFunctionMemberAccess]
