"""The rows that a finished fine-tuning was made on, opened again for a verb that stands on its run, or on a fold of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from crossgraft.config import CONSENTS, first_refusal, settings_model
from crossgraft.data import DATA_OPTIONS, Dataset, Split
from crossgraft.errors import DataError, RunDirectoryError, UsageError
from crossgraft.options._option import from_mapping, options_of
from crossgraft.options.data import VAL_SHARE, Splits, Subsets
from crossgraft.options.models import Download
from crossgraft.paths import read_whole, real_path
from crossgraft.progress import Reporter
from crossgraft.records.base import RunRecord
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.parts import TuningRows
from crossgraft.tune.planning.edited_rows import edited_again
from crossgraft.tune.planning.rows import open_rows
from crossgraft.tune.saving.saved_model import SavedModel, find_saved_model, read_facts

_READING = {*DATA_OPTIONS} - {*CONSENTS, *options_of(Download), *options_of(Splits)}
_FOLLOWED = _READING | {"image_size", "resize_policy", "threshold_rule", "val_fraction"}
"""Arguments of ``fine_tune`` that are taken over from a run; what only a person can allow is none of them."""


def run_directory_of(run: Path) -> Path:
    """The run directory of a model that was named by its folder, too."""
    return run if (run / "run.json").is_file() else find_saved_model(run).parent


def options_of_run(run: Path) -> TuneOptions:
    """What was asked of the run; its record is data, and may have come with the folder from anywhere.

    The model without one domain lies in ``RUN/folds/without DOMAIN``, with the split that it was trained on.
    """
    directory = run_directory_of(run)
    is_part = not (directory / "run.json").is_file() and directory.parent.name == "folds"
    file = (directory.parents[1] if is_part else directory) / "run.json"
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


def refuse_join_outside(join: str | Path | Sequence[str | Path] | None, run: str | Path) -> None:
    """The same of data sets that the run was joined with."""
    for other in [join] if isinstance(join, str | Path) else join or ():
        if not real_path(other).is_relative_to(real_path(".")):
            raise UsageError(
                f"The run in {run} says that its images were joined with {other}, which is not in the current folder. A file "
                "cannot allow that. Give join=."
            )


def rows_of_run(
    data: str | Path | Dataset, asked: TuneOptions, run: Path, reporter: Reporter, *, allow_outside: bool
) -> TuningRows:
    """The rows of the run in the parts of its split, with the edits of their images."""
    names = {*options_of(Subsets), "seed", "val_fraction"} if isinstance(data, Dataset) else _READING | {"val_fraction"}
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


_NAME = re.compile(r"fold-(\d{1,4})")


@dataclass(frozen=True)
class FoldOfRun:
    """The folder of one fold.

    Attributes:
        run: Run directory of all folds.
        number: Number of the fold, from 0.
        folder: Where its model lies.
    """

    run: Path
    number: int
    folder: Path


class FoldOptions(BaseModel):
    """What a run says of its folds; its record is data, and may have come from anywhere."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    folds: int = Field(ge=2, le=10_000)
    val_fraction: float = Field(default=VAL_SHARE, ge=0, lt=1)
    per_class: int | None = Field(default=None, ge=1)


def fold_of_run(run: Path) -> FoldOfRun | None:
    """The fold whose folder this is: ``RUN/folds/fold-1``; None for another folder."""
    match = _NAME.fullmatch(run.name)
    if match is None or run.parent.name != "folds" or not (run.parents[1] / "run.json").is_file():
        return None
    return FoldOfRun(run.parents[1], int(match[1]), run)


def options_of_fold(fold: FoldOfRun) -> tuple[FoldOptions, int]:
    """How the folds were drawn, and the seed.

    Raises:
        DataError: The record of the run is damaged, or of a run without folds.
    """
    file = fold.run / "run.json"
    try:
        record = RunRecord.model_validate_json(read_whole(file))
        return FoldOptions.model_validate(record.config), record.seed
    except (OSError, ValidationError) as error:
        raise DataError(f"{file} does not say how its folds were drawn. Restore the file.") from error


def rows_of_fold(
    data: str | Path | Dataset, asked: TuneOptions, fold: FoldOfRun, reporter: Reporter, *, allow_outside: bool
) -> TuningRows:
    """The rows of all folds, with the edits of their images.

    Args:
        data: As the run was given it.
        asked: From ``options_of_run``.
        fold: The fold.
        reporter: Reporter of notices.
        allow_outside: Whether paths of a table may lead out of the folder of the images.

    Raises:
        DataError: As of ``options_of_fold``; or the data have no such fold.
    """
    drawn, _ = options_of_fold(fold)
    options = replace(asked, **drawn.model_dump(), allow_outside=allow_outside)
    rows = open_rows(data, options, reporter)
    if fold.number >= len(rows.parts):
        raise DataError(f"The run in {fold.run} has {len(rows.parts)} folds, and no fold {fold.number}.")
    return edited_again(rows, read_facts(find_saved_model(fold.folder)).trained_on.edits, reporter)
