"""One fold of a fine-tuning with folds: its model is a folder of its own, and its rows are drawn again."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from crossgraft.data import Dataset
from crossgraft.errors import DataError
from crossgraft.options.data import VAL_SHARE
from crossgraft.paths import read_whole
from crossgraft.progress import Reporter
from crossgraft.records.runs import RunRecord
from crossgraft.tune.edited_rows import edited_again
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.parts import TuningRows
from crossgraft.tune.planning.rows import open_rows
from crossgraft.tune.saving.saved_model import find_saved_model, read_facts

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
    found = _NAME.fullmatch(run.name)
    if found is None or run.parent.name != "folds" or not (run.parents[1] / "run.json").is_file():
        return None
    return FoldOfRun(run.parents[1], int(found[1]), run)


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
