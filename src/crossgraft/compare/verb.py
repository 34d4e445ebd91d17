"""``compare_models``: what fine-tuning changed, and whether two models see and fail alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from crossgraft.compare import AskedGeometry, Comparison, HowToCompare, OtherImages, StoredFeatures, read_geometry
from crossgraft.compare.compared import ComparedRows, Given, as_typed, open_compared_rows, open_model
from crossgraft.compare.comparison import layers_frame
from crossgraft.compare.geometry_of_images import open_others
from crossgraft.compare.measures import Predicted, prepared_alike
from crossgraft.compare.networks import Rows
from crossgraft.compare.options import CompareModelsOptions
from crossgraft.compare.record import ComparedModel, ModelComparisonRecord
from crossgraft.compare.words import answer_in_words
from crossgraft.compute import available_cores, limit_threads, resolve_device, reuse_freed_memory
from crossgraft.data import Dataset
from crossgraft.data.checks import check_rows
from crossgraft.data.describe import thumbnail_png
from crossgraft.data.given_images import location_of
from crossgraft.data.opening import data_errors_first
from crossgraft.errors import UsageError
from crossgraft.models import ModelSpec
from crossgraft.models.trusted_code import NOTHING, TrustedCode, trusted_code
from crossgraft.options._option import configuration, options_of
from crossgraft.options._values import refuse_given
from crossgraft.options.data import DatasetOptions
from crossgraft.progress import Reporter
from crossgraft.records.base import ImageAnswer, LooksRecord, Thumbnail
from crossgraft.report.source import configuration_without_absolute_paths
from crossgraft.result import Result
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import RunDirectory
from crossgraft.running.verb import Run, verb
from crossgraft.tune.looks import count_test_look
from crossgraft.tune.pictures import Answered, pictures_of_answers
from crossgraft.tune.pretrained_start import start_as_typed

_LABELS = ("A", "B", "A before", "B before")


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(Result[ModelComparisonRecord]):
    """Two models beside each other: ``record`` holds every number."""

    def summary(self) -> str:
        """How alike features and mistakes are."""
        return answer_in_words(self.record)

    @property
    def primary(self) -> Mapping[str, object]:
        """The first measure of the penultimate features of the first pair."""
        rows = [row for pair in self.record.pairs for row in pair.features]
        return {} if not rows else {"metric": "value", "value": rows[0].value, "measure": rows[0].measure}

    def to_frame(self) -> pd.DataFrame:
        """One row per pair of models and measure of their penultimate features."""
        return pd.DataFrame(
            [
                {"first": pair.first, "second": pair.second, **row.model_dump(exclude={"notes"})}
                for pair in self.record.pairs
                for row in pair.features
            ]
        )


@verb("compare", CompareModelsOptions)
def compare_models(a: Any, b: Any, options: CompareModelsOptions, run: Run) -> ModelComparison:
    """Measure how alike two models are, layer by layer, in their features and in their mistakes.

    Each number stands beside that of two untrained networks of the same architectures, which are more alike than one would
    think. With ``before`` the comparison is that of chapter 3 of the thesis: what fine-tuning changed in each model, and whether
    it made the two more alike. Networks are only looked at: weights, modes and hooks stay as they are.

    Args:
        a: Run directory of ``crossgraft tune``, or of one of its folds; a checkpoint, timm name or zoo entry as ``rank`` takes
            it; or features on disk, an npz or safetensors file of arrays (n, d), one per layer (``features:FILE``).
        b: The other model, of any of these kinds. Sizes and preprocessing may differ.
        {options}

    Returns:
        CKA of all pairs of layers, penultimate features by every measure, CCA of layers by the protocol of the thesis, shared
        mistakes, and where weights and features lie; with ``probe`` also what was forgotten. With ``out`` also ``report.html``,
        ``report.json``, ``layers.csv``, ``features.csv`` and ``run.json`` there.

    Raises:
        DataError: The data are others than those of the runs, or features are NaN or of another number of images; or there
            are fewer than four images.
        RunDirectoryError: A run has no single model (folds), or ``out`` is in use or holds another run.
        UsageError: An argument is wrong, or contradicts another; or a measure of geometry that was named applies to neither
            model.
        UnknownNameError: A layer, model or measure of geometry is not known; the message gives the nearest names.
        MissingWeightsError: Weights are not on this machine.

    Cost: one forward pass of each network, and of two untrained ones, per image; with ``linear_probe`` also per training image,
    and with ``probe`` per other image. Sharpness takes 13 forward and 11 backward passes, a path 11 forward passes, each filter
    of 7×7 pixels or more 0.1 s.
    """
    reporter, began = run.reporter, time.perf_counter()
    if options.data is None:
        refuse_given(options, _OF_IMAGES, "is about images, and none are given (--data)")
    device, threads = resolve_device(options.device), options.workers or available_cores()
    typed = {**configuration(options), "a": as_typed(a), "b": as_typed(b), "data": location_of(options.data)}
    if options.probe is not None:
        typed["probe"] = location_of(options.probe)
    with limit_threads(threads), reuse_freed_memory():
        trusted = _trusted(options, (a, b))
        how = HowToCompare(
            layers=_names(options.layers),
            layers_b=_names(options.layers_b),
            pool=options.pool,
            cca_preset=options.cca_preset,
            linear_probe=options.linear_probe,
            seed=options.seed,
            geometry=_geometry(options),
        )
        with _data_first(a, b, options):
            given = _open_all(a, b, options, trusted, device=device, run=run)
            given, prepared = prepared_alike(given, options, device=device, reporter=reporter)
        comparison = Comparison({label: each.model for label, each in given.items()}, how, trusted=trusted, reporter=reporter)
        resolved = {"models": {label: _fingerprint(each) for label, each in given.items()}}
        with run.directory(location_of(options.data), typed=typed, resolved=resolved, out=options.out) as directory:
            if directory:
                directory.describe_machine(reporter, threads=threads, device=device)
            rows = open_compared_rows(list(given.values()), options, reporter)
            checks = [] if rows.dataset is None else check_rows(rows.dataset, strict=options.strict, reporter=reporter)
            targets = None if rows.dataset is None else rows.dataset.targets
            others = open_others(options, reporter)
            words = rows.in_words if rows.dataset is None else f"test images of {rows.name}"
            record = comparison.run(rows.dataset, rows.rows, rows.train, targets, in_words=words, others=others)
            record = record.model_copy(
                update={
                    "models": [_with_start(each, given[each.label].run) for each in record.models],
                    "images_in_words": rows.in_words,
                    "checks": list(checks),
                    "notes": [*prepared, *rows.notes, *record.notes],
                    "seconds": time.perf_counter() - began,
                }
            )
            if options.ledger:
                record = _with_looks(record, list(given.values()), rows, others, reporter, has_probes=options.linear_probe)
            return _finish(ModelComparison(record), rows, comparison.predicted, directory, options, reporter)


def _with_start(model: ComparedModel, run: Path | None) -> ComparedModel:
    """With the flags that named what it was fine-tuned from, without places of this machine."""
    flags = {} if run is None else start_as_typed(run)
    typed = {flag: str(configuration_without_absolute_paths(value)) for flag, value in flags.items()}
    return model.model_copy(update={"started_with": typed})


_OF_IMAGES = ("linear_probe", "probe", "strict", *options_of(DatasetOptions))


def _with_looks(
    record: ModelComparisonRecord,
    given: Sequence[Given],
    rows: ComparedRows,
    others: OtherImages,
    reporter: Reporter,
    *,
    has_probes: bool,
) -> ModelComparisonRecord:
    """Test images that were looked at, also those of linear probes on other data.

    A fine-tuned model is the look of its training, and networks without a head for the classes are together one look.
    """
    saved = [each.saved.facts.look_key for each in given if each.saved is not None]
    bare = [_fingerprint(each) for each in given if each.saved is None]
    images = rows.as_they_came or rows.dataset  # an edit shows nobody new
    looks = [_look(images, rows.rows, [key], reporter) for key in saved]
    if bare:
        probed = ["linear probe"] if has_probes else []
        looks.append(_look(images, rows.rows, [*bare, *probed], reporter, is_result=has_probes))
    numbered: dict[str, LooksRecord | None] = {"looks": max(filter(None, looks), key=lambda look: look.number, default=None)}
    if record.geometry is not None and record.geometry.forgetting is not None:
        everything = [_fingerprint(each) for each in given]
        numbered["probe_looks"] = _look(others.probe, others.probe_test, everything, reporter)
    return record.model_copy(update=numbered)


def _look(
    images: Dataset | None, tested: Rows, measured: Sequence[str], reporter: Reporter, *, is_result: bool = True
) -> LooksRecord | None:
    if images is None:
        return None
    return count_test_look(images, tested, measured, None, command="compare", reporter=reporter, is_result=is_result)


def _open_all(a: Any, b: Any, options: CompareModelsOptions, trusted: TrustedCode, *, device: str, run: Run) -> dict[str, Given]:
    """All models by their label."""
    before = _before(options.before)
    named = dict(zip(_LABELS, [a, b, *before], strict=False))
    opened = {
        label: open_model(each, label, options, trusted, device=device, reporter=run.reporter) for label, each in named.items()
    }
    specs = [each.spec for each in opened.values() if each.spec is not None]
    is_inside = options.weights_key is not None or options.weights_prefix is not None
    if is_inside and not any(spec.has_checkpoint for spec in specs):
        raise UsageError(
            "--weights-key and --weights-prefix name a place inside a checkpoint, and none of the models is one. Leave them out."
        )
    for label in ("A", "B"):
        start, after = opened.get(f"{label} before"), opened[label]
        if start is not None and (isinstance(start.model, StoredFeatures) or isinstance(after.model, StoredFeatures)):
            raise UsageError("--before is about networks, and one of the models is features on disk. Leave it out.")
        if start is not None and after.saved is not None:
            _refuse_other_start(start, after, label)
    return opened


def _data_first(a: Any, b: Any, options: CompareModelsOptions) -> AbstractContextManager[None]:
    """Data are listed first as they were typed; those of a run are read with its options, which are not known before it is."""
    is_run = any(isinstance(each, str | Path) and Path(each).is_dir() for each in (a, b))
    data = options.data
    return nullcontext() if is_run or data is None else data_errors_first(data, options)


def _before(given: object) -> list[Any]:
    """The starts of A and B; one alone is that of both."""
    if given is None:
        return []
    named = [each.strip() for each in given.split(",")] if isinstance(given, str) else given
    several = list(named) if isinstance(named, Sequence) else [named]
    if len(several) not in (1, 2):
        raise UsageError(f"--before names the starts of A and B, with a comma, or one for both; got {len(several)}.")
    return several * 2 if len(several) == 1 else several


def _refuse_other_start(start: Given, after: Given, label: str) -> None:
    if isinstance(start.model, StoredFeatures) or isinstance(after.model, StoredFeatures):
        return
    if start.model.weights_fingerprint != after.model.start_fingerprint:
        raise UsageError(
            f"{label} was not fine-tuned from {start.model.name}: its pretrained weights are others. Name the start of {label} "
            "in --before."
        )


def _geometry(options: CompareModelsOptions) -> AskedGeometry:
    """What was asked for; images of the source ask for attention."""
    asked = read_geometry(options.geometry)
    if options.source_images is None or "attention" in asked.names:
        return asked
    return replace(asked, names=(*asked.names, "attention"))


def _names(given: str | Sequence[str] | None) -> list[str] | None:
    if given is None:
        return None
    return [each.strip() for each in given.split(",")] if isinstance(given, str) else list(given)


def _trusted(options: CompareModelsOptions, models: Sequence[object]) -> TrustedCode:
    """The code that the user named, and that of specs which were made with some."""
    trusted = trusted_code(options.allow_code)
    for each in models:
        trusted = trusted.and_also(each.code if isinstance(each, ModelSpec) else NOTHING)
    return trusted


def _fingerprint(given: Given) -> str:
    model = given.model
    return model.fingerprint if isinstance(model, StoredFeatures) else model.weights_fingerprint


def _finish(
    result: ModelComparison,
    rows: ComparedRows,
    predicted: Mapping[str, Predicted],
    run: RunDirectory | None,
    options: CompareModelsOptions,
    reporter: Reporter,
) -> ModelComparison:
    if run is None:
        return result
    if rows.dataset is not None:
        run.describe_data(rows.dataset.fingerprint)
    fingerprints = {each.label: each.weights_fingerprint for each in result.record.models if each.weights_fingerprint}
    run.update(weights_fingerprints=fingerprints)
    tables = {"features.csv": result.to_frame(), "layers.csv": layers_frame(result.record)}
    pictures = None if options.no_images else _pictures(result.record, rows, predicted)
    page = publish(run, result.record, reporter, tables=tables, thumbnails=pictures)
    return replace(result, out=run.path, report=page)


def _pictures(
    record: ModelComparisonRecord, rows: ComparedRows, predicted: Mapping[str, Predicted]
) -> Callable[[], list[Thumbnail]] | None:
    """Those whose attention is drawn, and those that A and B have answers for; None without images."""
    shown = None if record.geometry is None else record.geometry.attention
    images = rows.dataset
    if images is None:
        return None
    drawn = [] if shown is None else shown.drawn
    names = {model.label: f"{model.label}, {model.name}" for model in record.models}
    answered = [(names[label], predicted[label]) for label in ("A", "B") if predicted[label].classes is not None]
    if not drawn and len(answered) < 2:
        return None
    return lambda: [
        *(Thumbnail(row=place + 1, png_base64=thumbnail_png(images.read(int(rows.rows[place])))) for place in drawn),
        *(pictures_of_answers(_answers(answered, images, rows.rows), images) if len(answered) == 2 else []),
    ]


def _answers(answered: Sequence[tuple[str, Predicted]], images: Dataset, rows: Rows) -> list[Answered]:
    return [
        Answered(
            row=int(row),
            split="compared",
            target=images.class_names[int(images.targets[row])],
            answers=tuple(
                ImageAnswer(
                    model=name,
                    decision=images.class_names[int(each.classes[place])],
                    certainty=round(float(each.certainty[place]), 4),
                    is_right=bool(each.classes[place] == images.targets[row]),
                )
                for name, each in answered
                if each.classes is not None and each.certainty is not None
            ),
        )
        for place, row in enumerate(rows)
    ]
