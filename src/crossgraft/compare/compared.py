"""The models that ``compare`` is given, and the rows that they are compared on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crossgraft.compare import (
    ComparedNetwork,
    StoredFeatures,
    are_stored_features,
    network_of_backbone,
    network_of_saved,
    read_stored_features,
)
from crossgraft.compare.networks import Model, Rows
from crossgraft.compare.options import CentreOptions, CompareModelsOptions
from crossgraft.data import Dataset
from crossgraft.data.opening import open_divided
from crossgraft.errors import DataError, OtherImagesError, RunDirectoryError, UsageError
from crossgraft.models import Backbone, ModelSpec, load_as_asked
from crossgraft.models.trusted_code import TrustedCode
from crossgraft.models.zoo import inside_checkpoint
from crossgraft.progress import Reporter
from crossgraft.tune.planning.fold_networks import find_model
from crossgraft.tune.result import FineTuningResult
from crossgraft.tune.rows_of_run import (
    fold_of_run,
    options_of_fold,
    options_of_run,
    refuse_join_outside,
    refuse_root_outside,
    rows_of_fold,
    rows_of_run,
    split_of_run,
)
from crossgraft.tune.saving.saved_model import SavedModel, load_saved_model

_ALLOW = "Give the data of the runs, or allow others: --other-data."


@dataclass(frozen=True, eq=False)
class Given:
    """One of the models as it was given.

    Attributes:
        model: What is compared.
        run: Its run directory, where it has one.
        spec: What it was loaded by, where it is a pretrained model that was named.
    """

    model: Model
    run: Path | None = None
    spec: ModelSpec | None = None

    @property
    def network(self) -> ComparedNetwork:
        """The network.

        Raises:
            TypeError: It is features on disk.
        """
        if not isinstance(self.model, ComparedNetwork):
            raise TypeError(f"{self.model.name} is features on disk and no network.")
        return self.model

    @property
    def saved(self) -> SavedModel | None:
        """The fine-tuned model, if it is one."""
        return self.model.saved if isinstance(self.model, ComparedNetwork) else None


@dataclass(frozen=True, eq=False)
class ComparedRows:
    """The rows.

    Attributes:
        dataset: All rows; None where every model is features on disk.
        rows: Those that models are compared on.
        train: Those that linear probes learn from.
        in_words: What the rows are.
        notes: Sentences about them.
        as_they_came: All rows before they were edited; None: they were not.
    """

    dataset: Dataset | None
    rows: Rows
    train: Rows
    in_words: str
    notes: tuple[str, ...] = ()
    as_they_came: Dataset | None = None

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the data."""
        return "" if self.dataset is None else self.dataset.fingerprint

    @property
    def name(self) -> str:
        """Name of the data."""
        return "" if self.dataset is None else self.dataset.name


def open_model(
    given: Any,
    label: str,
    options: CompareModelsOptions | CentreOptions,
    trusted: TrustedCode,
    *,
    device: str,
    reporter: Reporter,
) -> Given:
    """A checkpoint, timm name, zoo entry, run of ``tune`` (or of one fold), or features on disk; or the object of one.

    Raises:
        RunDirectoryError: A run has no single model; the message names those of its folds.
        UsageError: The object is none of these.
        DataError, MissingWeightsError: As of ``read_stored_features`` and ``load_backbone``.
    """
    if isinstance(given, FineTuningResult):
        return Given(network_of_saved(given.model, name=given.model.facts.model.name), given.out)
    if isinstance(given, SavedModel):
        return Given(network_of_saved(given, name=given.facts.model.name))
    if isinstance(given, Backbone):
        return Given(network_of_backbone(given))
    if are_stored_features(given):
        return Given(read_stored_features(given))
    if isinstance(given, str | Path) and Path(given).is_dir():
        run = Path(given)
        _refuse_folds(run)
        saved = load_saved_model(run, device=device, allow_code=trusted)
        return Given(network_of_saved(saved, name=saved.facts.model.name), run)
    if not isinstance(given, str | Path | ModelSpec):
        raise UsageError(f"{label} is a {type(given).__name__}; give a run, a model, or a file of features.")
    spec = find_model(given, options.weights_dir, options.allow_code, allow_download=options.allow_download, reporter=reporter)
    if spec.has_checkpoint:
        spec = inside_checkpoint(spec, options.weights_key, options.weights_prefix)
    return Given(
        network_of_backbone(load_as_asked(spec, options, device=device, for_training=True, reporter=reporter)), spec=spec
    )


def as_typed(given: object) -> object:
    """What stands for a model in a configuration: no object and no path."""
    if isinstance(given, ModelSpec):
        return given.typed
    return str(given) if isinstance(given, str | Path) else type(given).__name__


def open_compared_rows(given: Sequence[Given], options: CompareModelsOptions, reporter: Reporter) -> ComparedRows:
    """The test rows of the runs, or of the split of the data.

    Raises:
        UsageError: There are no data, and a network is among the models; or runs have other test rows.
        DataError: The data are others than those of a run, and ``other_data`` is not allowed.
    """
    if options.data is None:
        stored = [each.model for each in given if isinstance(each.model, StoredFeatures)]
        if len(stored) < len(given):
            raise UsageError("Networks are compared on images: give --data.")
        rows = np.arange(len(stored[0]))
        return ComparedRows(None, rows, rows[:0], f"all {len(rows)} rows of the files")
    runs = [each.run for each in given if each.run is not None]
    saved = [each.saved for each in given if each.saved is not None]
    if not runs or options.other_data:
        return _rows_of_split(options, reporter, may_have_seen=bool(saved))
    of_run = _rows_of_run(runs[0], options, reporter)
    others = [each for each in saved if each.facts.trained_on.fingerprint != of_run.fingerprint]
    if not others:
        for run in runs[1:]:
            _refuse_other_split(runs[0], run)
        return of_run
    facts = others[0].facts.trained_on
    raise DataError(
        f"{of_run.name} is not what {others[0].facts.model.name} was fine-tuned on ({facts.name}, {facts.num_images} images): "
        f"images, labels or groups differ. {_ALLOW}"
    )


def _rows_of_run(run: Path, options: CompareModelsOptions, reporter: Reporter) -> ComparedRows:
    """The rows that a run was tested on."""
    fold = fold_of_run(run)
    asked = options_of_run(run if fold is None else fold.run)
    given = {"image_root": options.image_root, "class_names": options.class_names, "join": options.join}
    if options.image_root is None:
        refuse_root_outside(asked.image_root, run)
    if options.join is None:
        refuse_join_outside(asked.join, run)
    asked = replace(asked, **{name: value for name, value in given.items() if value is not None})
    if fold is None:
        try:
            opened = rows_of_run(options.data, asked, run, reporter, allow_outside=options.allow_outside)
        except OtherImagesError as error:
            raise DataError(f"{error} {_ALLOW}") from error
        parts, in_words = opened.parts[0], "test rows of the run"
    else:
        opened = rows_of_fold(options.data, asked, fold, reporter, allow_outside=options.allow_outside)
        parts, in_words = opened.parts[fold.number], f"test rows of fold {fold.number}"
    rows, train = np.sort(parts.test), np.sort(parts.train)
    return ComparedRows(opened.dataset, rows, train, f"{len(rows)} {in_words}", as_they_came=opened.as_they_came)


def _refuse_other_split(run: Path, other: Path) -> None:
    """Raise unless two runs were tested on the same rows."""
    folds = fold_of_run(run), fold_of_run(other)
    if folds[0] is None and folds[1] is None:
        same = split_of_run(run).rows("test").tolist() == split_of_run(other).rows("test").tolist()
    else:
        same = None not in folds and folds[0].number == folds[1].number  # type: ignore[union-attr]
        same = same and options_of_fold(folds[0]) == options_of_fold(folds[1])  # type: ignore[arg-type]
    if not same:
        raise UsageError(
            f"The runs in {run} and {other} have other test rows, so one of them may have learned from those of the other. Use "
            "runs of the same --seed, --split and fold, or give models without their runs and --other-data."
        )


def _rows_of_split(options: CompareModelsOptions, reporter: Reporter, *, may_have_seen: bool) -> ComparedRows:
    """The test rows of the split that every command draws."""
    dataset = open_divided(options.data, options, use_split=None, reporter=reporter)
    splits = np.full(len(dataset), "test") if dataset.splits is None else dataset.splits
    rows = np.flatnonzero(splits == "test")
    if len(rows) == 0:
        raise DataError(f"{dataset.name} has no test rows. Leave out --holdout 0, or give a --split with some.")
    note = "A fine-tuned model may have learned from some of these images: they are not known to be test images of it."
    return ComparedRows(
        dataset, rows, np.flatnonzero(splits == "train"), f"{len(rows)} test rows", (note,) if may_have_seen else ()
    )


def _refuse_folds(run: Path) -> None:
    """Raise where a run has a model per fold, and none of its own."""
    folds = sorted(path.parents[1] for path in run.glob("folds/*/model/model.json"))
    if folds and not (run / "model").is_dir():
        raise RunDirectoryError(f"The run in {run} has one model per fold, and a comparison needs one. Name a fold: {folds[0]}.")
