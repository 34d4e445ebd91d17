"""``compare_fine_tunings``: several ways to fine-tune one model, measured on the same images."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from crossgraft.data import Dataset
from crossgraft.data.describe import describe_dataset, make_thumbnails
from crossgraft.data.opening import data_errors_first
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.options._option import given, options_of
from crossgraft.records.base import Reference, Thumbnail
from crossgraft.running.command_line import display_value
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import RunDirectory
from crossgraft.running.verb import Run, verb
from crossgraft.storage.atomic import scratch_folder
from crossgraft.tune.options import CompareOptions, TuneOptions
from crossgraft.tune.pictures import pictures_of_answers
from crossgraft.tune.planning.choices import point_name, read_grid
from crossgraft.tune.planning.edited_rows import edit_rows, read_edits
from crossgraft.tune.planning.fold_networks import model_of
from crossgraft.tune.planning.preparation import Request, as_typed, checks_of_rows, refuse_unknown_names
from crossgraft.tune.planning.rows import open_rows
from crossgraft.tune.result import look_at_known_results
from crossgraft.tune.tracking import open_tracking
from crossgraft.variants.comparison import FineTuningComparison
from crossgraft.variants.curves import draw_curves
from crossgraft.variants.domains import describe_left_out, tested_images
from crossgraft.variants.layer_pca import find_layer, layer_pca
from crossgraft.variants.pictures import answers_of_variants
from crossgraft.variants.record import FineTuningComparisonRecord
from crossgraft.variants.study import (
    DoneTraining,
    VariantStudy,
    foresee,
    plan_all,
    seconds_beside_training,
    train_all,
    variant_options,
)
from crossgraft.variants.summary import intervals_in_words, measure_variants, missed_targets, notes_on, summarise
from crossgraft.variants.variant import Entry, Variant, left_out, read_variants

_SAID_BY_VARIANTS = ("method", "objective", "regularizer", "feature_transform")
_NO_ADAPTER = (
    "--adapter does not go with --compare, which measures how far each variant moves from the pretrained network. Leave one of "
    "them out."
)
_JACKKNIFE = Reference(
    key="Differences",
    text="Test images by the delete-one-block jackknife (Efron and Stein, Annals of Statistics 9 (1981) 586), seeds by their "
    "variance; degrees of freedom after Satterthwaite, Biometrics Bulletin 2 (1946) 110.",
)


@verb("tune", CompareOptions)
def compare_fine_tunings(data: str | Path | Dataset, options: CompareOptions, run: Run) -> FineTuningComparison:
    """Fine-tune one model in several ways, and see what each gives and how much it keeps of what the model knew.

    All variants see the same split and the same preprocessing, and variant for variant the same seeds, so that they may be
    compared image by image. Each training is a run directory of its own, ``trainings/VARIANT-SEED`` in ``out``, with a model
    that ``predict`` uses. The same call with the same ``out`` goes on where it was stopped; a training that fails becomes a
    row with a reason, and the others go on.

    A variant is a method, or a regulariser that is added to ``full``; ``partial:3+l2_sp`` is both, and a number repeats the
    plug-in before it with another value of its first option. ``ablations.yaml`` is a list of mappings with a ``name`` and any
    settings of ``fine_tune``; see ``tune.variants.variant.read_variants``. What variants say themselves (``method``,
    ``regularizer``) cannot be given for all of them, nor can ``adapter`` and folds. ``keep`` is for those with a regulariser that
    compares with the start, ``batch_norm="frozen"`` not for ``scratch``; plan and page say who is trained without. From three
    ``seeds`` on, intervals are those of seeds.

    With ``leave_out`` each training is one that never sees a domain; ``each`` trains every variant and seed once for every
    domain, and the primary metric is the mean over them. Differences are to the first variant, of each domain, the mean and the
    worst, too.

    Where ``full`` is among the variants, the networks between it and the pretrained one (with the head of ``linear``, if
    that is there) are measured, too: they cost no training, so a variant should lie above their curve.

    Args:
        data: As in ``fine_tune``.
        {options}

    Returns:
        Every number, and with ``out`` also ``report.html``, ``report.json``, ``comparison.csv`` (one row per variant) and
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
    _refuse_what_variants_say(options)
    options, edits = read_edits(options)
    variants = read_variants(options.compare)
    if options.seeds < 1:
        raise UsageError(f"--seeds must be at least 1, not {options.seeds}.")
    _refuse_misspelled(variants, options)
    with data_errors_first(data, options):
        spec = model_of(options)
    request = Request(options, spec, read_grid(options.grid))
    tracking = open_tracking(options.track, run.reporter)
    if options.store and not options.plan:
        look_at_known_results(run.reporter)
    location = data.name if isinstance(data, Dataset) else data
    with _directory(run, request, options, variants, location) as directory:
        rows = open_rows(data, options, run.reporter)
        rows = edit_rows(rows, edits, options, run.reporter)
        if directory is not None:
            directory.describe_data(rows.dataset.fingerprint)
        checks = checks_of_rows(rows, strict=options.strict, reporter=run.reporter)
        seeds = [options.seed + number for number in range(options.seeds)]
        study = VariantStudy(rows, checks, request, variants, seeds, run.reporter)
        if options.layer_pca is not None and rows.has_several_models:
            raise UsageError(
                "--layer-pca draws one model of each variant, and --leave-out each makes one for every domain. Leave out "
                "--layer-pca, or leave one domain out."
            )
        layer = None if options.layer_pca is None else find_layer(study, options.layer_pca)
        plan = plan_all(study, directory)
        if directory is None:
            timed = plan.expected_seconds is not None
            beside = seconds_beside_training(study, plan) + run.seconds_beside if timed else None
            return FineTuningComparison(plan=plan.model_copy(update={"seconds_beside": beside}))
        foresee(study, plan, directory)
        done = train_all(study, plan, directory, tracking)
        result = FineTuningComparison(_record(study, done, directory, layer), plan=plan)
        return _write(result, study, done, directory, is_kept=options.out is not None)


def _refuse_what_variants_say(options: CompareOptions) -> None:
    """Raise for options that do not go with a comparison."""
    asked = given(options)
    for name in (*_SAID_BY_VARIANTS, "folds"):
        if name in asked and options.preset is not None:
            typed = name.replace("_", "-")
            raise UsageError(
                f"--preset {options.preset} does not go with --compare: it stands for --{typed}, too. Train with it alone, or "
                "give its other settings one by one (crossgraft list presets)."
            )
    for name in _SAID_BY_VARIANTS:
        if name in asked:
            typed = name.replace("_", "-")
            raise UsageError(
                f"--{typed} does not go with --compare, whose variants say it themselves: full+l2_sp, partial:3+l2_sp."
            )
    if "adapter" in asked:
        raise UsageError(_NO_ADAPTER)
    for name in ("folds", "fold"):
        if name in asked:
            raise UsageError(
                f"--{name} does not go with --compare: differences are measured on the same test images, and each fold has "
                "others. Compare on one split, or with a saved split of a fold (--split)."
            )


def _as_typed(compare: Entry | Sequence[Entry]) -> list[str]:
    """As a command line would give it, without the folders of files."""
    entries: list[Entry] = [compare] if isinstance(compare, str | Path | Mapping) else list(compare)
    items = [str(each["name"]) if isinstance(each, Mapping) else str(each) for each in entries]
    return [str(display_value(part)) for item in items for part in item.split(",")]


def _refuse_misspelled(variants: Sequence[Variant], options: CompareOptions) -> None:
    """What is wrong with a name or an option comes to light before any image is read."""
    left_out(options, variants)
    for variant in variants:
        of_it = variant_options(options, variant)
        if of_it.adapter is not None:
            raise UsageError(_NO_ADAPTER)
        try:
            read_grid(of_it.grid)
            refuse_unknown_names(of_it)
        except UnknownNameError:
            raise  # says the name already
        except UsageError as error:
            raise UsageError(f"The variant {variant.name}: {error}") from error


@contextmanager
def _directory(
    run: Run, request: Request, options: CompareOptions, variants: Sequence[Variant], location: str | Path
) -> Generator[RunDirectory | None]:
    """The run directory; without ``out`` one that goes away with the block, and none at all for a plan."""
    defaults = {name: each.default for name, each in options_of(TuneOptions).items()}
    settings = [{"name": each.name, **as_typed({**defaults, **each.settings})} for each in variants]
    usual = as_typed(defaults)
    resolved = {
        "model": request.spec.describe(),
        "compare": [{name: each[name] for name in each if name == "name" or each[name] != usual[name]} for each in settings],
        "grid": [point_name(point) for point in request.points],
    }
    typed = {**request.typed(), "compare": _as_typed(options.compare), "seeds": options.seeds}
    with scratch_folder("comparison") as temporary:
        out = None if options.plan else options.out or temporary / "comparison"
        with run.directory(location, typed=typed, resolved=resolved, out=out) as directory:
            yield directory


def _record(
    study: VariantStudy, done: Sequence[DoneTraining], run: RunDirectory, layer: str | None
) -> FineTuningComparisonRecord:
    first = next(each.record for each in done if each.record is not None)
    rows = study.rows
    metric = rows.dataset.task.primary_metric
    images = tested_images(rows, metric)
    measured = measure_variants(done, images)
    curves, reason = draw_curves(study, done, metric, run)
    data = replace(rows.dataset, split_method=rows.split_in_words)
    references = {each.text: each for one in done if one.record is not None for each in one.record.references}
    references |= {each.text: each for curve in curves for each in curve.record.references}
    failed = [each for each in done if each.record is None]
    counted_looks = [each.record.looks for each in done if each.record is not None and each.record.looks is not None]
    return FineTuningComparisonRecord(
        dataset=describe_dataset(data, show_names=study.request.options.show_names),
        splits=rows.split_rows(),
        leakage=rows.leakage,
        leakage_checked=rows.is_leakage_known,
        model=first.model.model_copy(update={"from_scratch": False}),
        seeds=list(study.seeds),
        primary_metric=metric,
        variants=summarise(measured, curves, images),
        trainings=[each.row for each in done],
        interpolation=[curve.record for curve in curves],
        layer_pca=None if layer is None else layer_pca(study, done, layer),
        domains=describe_left_out(rows, study.variants[0].name),
        interpolation_reason=reason,
        looks=max(counted_looks, key=lambda looks: looks.number, default=None),
        interval_words=intervals_in_words(len(study.seeds), on_domains=rows.left_out is not None),
        seconds=sum(each.row.seconds for each in done),
        checks=study.checks,
        warnings=[
            *(f"{each.variant.name} with seed {each.seed} failed: {each.row.reason}" for each in failed),
            *missed_targets(measured),
        ],
        notes=notes_on(study, curves),
        references=[*references.values(), _JACKKNIFE],
        edits=rows.edits,
    )


def _write(
    result: FineTuningComparison, study: VariantStudy, done: Sequence[DoneTraining], run: RunDirectory, *, is_kept: bool
) -> FineTuningComparison:
    """Tables, record and page; nothing of it stays without ``out``."""
    if not is_kept:
        run.finish()
        trainings = [row.model_copy(update={"folder": None}) for row in result.record.trainings]
        return replace(result, found=result.record.model_copy(update={"trainings": trainings}))
    record = result.record
    run.update(weights_fingerprints={record.model.name: record.model.weights_fingerprint})
    thumbnails = None if study.request.options.no_images else lambda: _thumbnails(record, study, done)
    page = publish(
        run,
        record,
        study.reporter,
        tables={"comparison.csv": result.to_frame(), "trainings.csv": result.trainings()},
        split=study.rows.split_record(),
        thumbnails=thumbnails,
    )
    return replace(result, out=run.path, report=page)


def _thumbnails(record: FineTuningComparisonRecord, study: VariantStudy, done: Sequence[DoneTraining]) -> list[Thumbnail]:
    """Examples of each class to learn from, and the images that were answered."""
    data = study.rows.dataset
    answers = answers_of_variants(done, [row.variant for row in record.variants], data)
    return [*make_thumbnails(data.take(study.rows.parts[0].train)), *pictures_of_answers(answers, data)]
