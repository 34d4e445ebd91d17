"""A finished fine-tuning as a row of the user's results store, from which later rankings start."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from crossgraft.errors import DataError
from crossgraft.models import ModelSpec
from crossgraft.options._option import options_of
from crossgraft.progress import Reporter
from crossgraft.rank.known_record import KnownResult
from crossgraft.rank.results_file import add_known_results, read_known_results
from crossgraft.running.secondary import secondary
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.parts import TuningRows
from crossgraft.tune.planning.grid import KEEP_FACTOR
from crossgraft.tune.record import TuningRecord
from crossgraft.words.formatting import counted

_NOT_STATED = "not stated"


def look_at_known_results(reporter: Reporter) -> None:
    """A damaged file comes to light before hours of training, so that it can be repaired meanwhile."""
    try:
        read_known_results()
    except DataError as error:
        reporter.warn(f"{error} Training goes on; its result can only be added if the file is sound by then.")


def keep_known_result(
    record: TuningRecord, spec: ModelSpec, rows: TuningRows, options: TuneOptions, reporter: Reporter
) -> None:
    """Add the result to the user's known ones; a warning where that cannot be done. Arguments as of ``known_result``."""
    result = known_result(record, spec, rows, options)
    if result is not None:
        with secondary("The result was not added to the known results", reporter):
            add_known_results([result])


def known_result(record: TuningRecord, spec: ModelSpec, rows: TuningRows, options: TuneOptions) -> KnownResult | None:
    """The primary metric on unseen rows; None where it has no value, or training did not begin with the pretrained weights.

    Nor is there one of edited images, which say little of the model on others.

    Only equal protocols are compared, so the protocol says everything that differs between two ways to tune one model, and
    nothing that differs between models.
    """
    found = record.metric(record.primary_metric)
    if found is None or found.value is None or record.model.from_scratch:
        return None
    if options.adapter is not None or record.edits is not None:
        return None
    model, _, source = (spec.known_as or "").partition("/")
    return KnownResult(
        model=model or record.model.name,
        weights=record.model.weights_fingerprint,
        source=source or _NOT_STATED,
        target=record.dataset.name,
        target_fingerprint=rows.ranked_fingerprint,
        protocol=protocol_of(record, options),
        metric=found.metric,
        value=found.value,
        low=found.low,
        high=found.high,
        origin="crossgraft tune",
    )


def protocol_of(record: TuningRecord, options: TuneOptions) -> str:
    """How a model was tuned and tested, in words that are the same for every model of one study.

    Settings that were asked for belong to the protocol.
    """
    slots = [plugin.used for plugin in record.plugins]
    head_first = ["head first"] if any(row.stage == "head" for row in record.history) else []
    asked = [f"{name} {getattr(options, name)}" for name in _asked(options)]
    points = dict.fromkeys(said for row in record.grid if (said := _in_words(row.values)))
    grid = [f"best of {' or '.join(points)}"] if points else []
    how = ", ".join([*slots, *head_first, *asked, *grid])
    return f"{how}; {_rows_in_words(record, options)}, picked by {record.selection_metric}"


def _asked(options: TuneOptions) -> list[str]:
    """Settings that somebody asked for; what was left open follows from the model by one fixed rule."""
    return [
        name
        for name, each in options_of(type(options)).items()
        if each.about.in_protocol and getattr(options, name) not in (None, each.default)
    ]


def _rows_in_words(record: TuningRecord, options: TuneOptions) -> str:
    """What was trained on, and what was tested; with folds, the training images of one."""
    if not record.folds:
        of_part = {row.name: row for row in record.splits}
        return f"{counted(of_part['train'].num_images, 'training image')}, test {of_part['test'].origin}"
    of_each = [fold.num_train for fold in record.folds]
    images = counted(record.dataset.num_images, "image")
    if options.fold is not None:
        return f"{counted(of_each[0], 'training image')}, test fold {options.fold} of {options.folds} of {images}"
    return f"{counted(round(fmean(of_each)), 'training image')} a fold, test each of {len(of_each)} folds of {images}"


def _in_words(values: Mapping[str, float | int | str]) -> str:
    """A point of the grid; what --keep found is no setting, and differs between models."""
    return ",".join(f"{name}={value}" for name, value in values.items() if name != KEEP_FACTOR)
