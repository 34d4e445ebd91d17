"""The rows that a finished fine-tuning was made on, opened again for a verb that stands on its run directory."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from crossgraft.config import CONSENTS, first_refusal, settings_model
from crossgraft.data import DATA_OPTIONS, Dataset, Split
from crossgraft.errors import DataError, RunDirectoryError, UsageError
from crossgraft.options._option import from_mapping, options_of
from crossgraft.options.data import Splits
from crossgraft.options.models import Download
from crossgraft.paths import read_whole, real_path
from crossgraft.progress import Reporter
from crossgraft.records.runs import RunRecord
from crossgraft.tune.edited_rows import edited_again
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.parts import TuningRows
from crossgraft.tune.planning.rows import open_rows
from crossgraft.tune.saving.saved_model import SavedModel, find_saved_model, read_facts

_READING = {*DATA_OPTIONS} - {*CONSENTS, *options_of(Download), *options_of(Splits)}
_FOLLOWED = _READING | {"image_size", "resize_policy", "threshold_rule", "val_fraction"}
"""Arguments of ``fine_tune`` that are taken over from a run; what only a person can allow is none of them."""


def run_directory_of(run: Path) -> Path:
    """The run directory of a model that was named by its folder, too."""
    return run if (run / "run.json").is_file() else find_saved_model(run).parent


def options_of_run(run: Path) -> TuneOptions:
    """What was asked of the run; its record is data, and may have come with the folder from anywhere."""
    file = run_directory_of(run) / "run.json"
    try:
        record = RunRecord.model_validate_json(read_whole(file))
    except (OSError, ValidationError) as error:
        raise RunDirectoryError(
            f"{file} is missing or cannot be read, so the options of the run are not known. Give the whole run directory."
        ) from error
    given = {name: value for name, value in record.config.items() if name in _FOLLOWED}
    others = set(options_of(TuneOptions)) - _FOLLOWED
    try:
        options = settings_model(TuneOptions, leave_out=others).model_validate({**given, "seed": record.seed})
    except ValidationError as error:
        raise DataError(f"{file} is damaged: {first_refusal(error)[0]} Restore the file.") from error
    return from_mapping(TuneOptions, {**options.model_dump(), "model": ""})


def split_of_run(run: Path) -> Split:
    """The split that a run has saved."""
    return Split.load(run_directory_of(run) / "split.json")


def refuse_root_outside(image_root: str | Path | None, run: str | Path) -> None:
    """Refuse a folder of images that the record of a run names outside the current one."""
    if image_root is not None and not real_path(image_root).is_relative_to(real_path(".")):
        raise UsageError(
            f"The run in {run} says that paths of a table start from {image_root}, which is not in the current folder. A file "
            "cannot allow that. Give image_root=."
        )


def rows_of_run(
    data: str | Path | Dataset, asked: TuneOptions, run: Path, reporter: Reporter, *, allow_outside: bool
) -> TuningRows:
    """The rows of the run in the parts of its split, with the edits of their images."""
    names = {"limit", "per_class", "seed", "val_fraction"} if isinstance(data, Dataset) else _READING | {"val_fraction"}
    reading = {name: value for name in names if (value := getattr(asked, name)) is not None}
    options = {**reading, "model": "", "split": run_directory_of(run) / "split.json", "allow_outside": allow_outside}
    rows = open_rows(data, from_mapping(TuneOptions, options), reporter)
    return edited_again(rows, read_facts(find_saved_model(run)).trained_on.edits, reporter)


def refuse_other_data(dataset: Dataset, full: SavedModel, run: str | Path) -> None:
    """Raise unless these are the images of the run."""
    facts = full.facts.trained_on
    if dataset.fingerprint != facts.fingerprint:
        raise DataError(
            f"{dataset.name} is not what the run in {run} was made on ({facts.name}, {facts.num_images} images): images, labels "
            "or groups differ. Give the same data."
        )
