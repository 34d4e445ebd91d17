"""The rows that a finished fine-tuning was made on, opened again for a verb that stands on its run directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np
from jaxtyping import Bool
from pydantic import ValidationError

from crossgraft.choice import spell
from crossgraft.config import CONSENTS, first_refusal, settings_model
from crossgraft.data import DATA_OPTIONS, Dataset, Split
from crossgraft.data.rows import ImageRows
from crossgraft.data.splits import PARTS
from crossgraft.edit.options import EditsBefore
from crossgraft.edit.record import ALL_PARTS, EditedImagesRecord, EditedPartRow
from crossgraft.edit.words import edited_images_in_words
from crossgraft.errors import DataError, RunDirectoryError, UnknownNameError, UsageError
from crossgraft.options._option import from_mapping, given, options_of
from crossgraft.options.data import Splits, Subsets
from crossgraft.options.models import Download
from crossgraft.paths import read_whole, real_path
from crossgraft.progress import Reporter
from crossgraft.records.base import RunRecord
from crossgraft.tune.looks import fingerprint_of_tested
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.parts import TuningRows
from crossgraft.tune.planning.rows import open_rows
from crossgraft.tune.saving.saved_model import SavedModel, find_saved_model, read_facts
from crossgraft.words.formatting import counted

if TYPE_CHECKING:  # confounders need parts of SciPy that a training without edits does not
    from crossgraft.edit.edits import AskedEdits

TuneT = TypeVar("TuneT", bound=TuneOptions)


def read_edits(options: TuneT) -> tuple[TuneT, AskedEdits | None]:
    """What ``tune`` is to do to images, and its options with all of that as text.

    Raises:
        UnknownNameError: There is no such edit or part; the message gives the nearest names.
        UsageError: An option has no meaning.
    """
    about_edits = [name for name in options_of(EditsBefore) if name in given(options)]
    if not about_edits:
        return options, None
    if not options.edits:
        flag = options_of(EditsBefore)[about_edits[0]].flag
        raise UsageError(f"{flag} says which images are edited, and no edit is named. Add one, for example --with tag.")
    from crossgraft.edit.edits import AskedEdits

    asked = AskedEdits.of(
        options.edits,
        share=options.edit_share,
        among=options.edit_among,
        unit=options.edit_unit,
        strength=options.edit_strength,
        seed=options.seed,
        flags="--edit-",
    )
    parts = _parts(options)
    texts = {"edits": tuple(map(spell, asked.edits)), "edit_among": asked.among, "edit_parts": ",".join(parts)}
    return replace(options, **cast("dict[str, Any]", texts)), asked


def edit_rows(rows: TuningRows, asked: AskedEdits | None, options: TuneOptions, reporter: Reporter) -> TuningRows:
    """The rows with edited images; as they are where nothing is asked for. Arguments as ``read_edits`` gives them.

    Raises:
        DataError: An edit cannot be done to an image; the message names it.
        UnknownNameError: There is no such class.
        UsageError: Patients are to be drawn, and the data have no groups.
    """
    if asked is None:
        return rows
    edited = _edited_rows(rows, asked, _named_parts(options), reporter)
    if edited.edits is not None and not edited.edits.num_edited and asked.share:
        reporter.warn(edited_images_in_words(edited.edits))
    return edited


def edited_again(rows: TuningRows, record: EditedImagesRecord | None, reporter: Reporter) -> TuningRows:
    """The rows with the edits of an earlier run; arguments and errors otherwise as of ``edit_rows``."""
    if record is None:
        return rows
    from crossgraft.edit.edits import AskedEdits

    asked = AskedEdits.of(
        [row.edit for row in record.edits],
        share=record.share,
        among=record.among,
        unit=record.unit,
        strength=record.strength,
        seed=record.seed,
    )
    return _edited_rows(rows, asked, record.chosen_parts, reporter)


def _edited_rows(rows: TuningRows, asked: AskedEdits, chosen: Sequence[str], reporter: Reporter) -> TuningRows:
    """Each part has its own share; with folds, where an image is in every part once, all images are one part."""
    dataset = rows.dataset
    used, parts = np.zeros(len(dataset), dtype=bool), np.full(len(dataset), "", dtype="U5")
    for fold in rows.parts:
        for part in PARTS:
            used[fold.rows(part)] = part in chosen
            parts[fold.rows(part)] = ALL_PARTS if rows.num_folds is not None else part
    carriers = asked.carriers(dataset, parts, rows=used)
    edited = asked.apply(dataset, carriers, reporter)
    names = [ALL_PARTS] if rows.num_folds is not None else PARTS
    record = EditedImagesRecord(
        edits=edited.editing.facts(),
        parts=[
            EditedPartRow(name=name, num_images=int(here.sum()), num_edited=int((here & carriers).sum()))
            for name in names
            if (here := parts == name).any()
        ],
        chosen_parts=list(chosen),
        among=None if asked.among is None else list(asked.among),
        share=asked.share,
        strength=asked.strength,
        unit=asked.unit,
        seed=asked.seed,
        unedited_fingerprint=dataset.fingerprint,
        references=edited.editing.references(),
    )
    return replace(rows, dataset=edited.dataset, edits=record, unedited=dataset)


def _parts(options: TuneOptions) -> tuple[str, ...]:
    """Parts of the data whose images are edited, in their usual order."""
    named = _named_parts(options)
    for name in named:
        if name not in PARTS:
            raise UnknownNameError("part", name, PARTS)
    if not named:
        raise UsageError("--edit-parts names no part. Leave it out to edit images of train, val and test alike.")
    if options.folds is not None and set(named) != set(PARTS):
        raise UsageError("With --folds each image is in every part once, so that --edit-parts has no meaning. Leave it out.")
    return tuple(part for part in PARTS if part in named)


def _named_parts(options: TuneOptions) -> tuple[str, ...]:
    from crossgraft.edit.edits import names_between_commas

    return names_between_commas(options.edit_parts)


class AlreadySeen(NamedTuple):
    """Images that had a part in what a model has learned.

    Attributes:
        rows: (n,) true where it had one, or another image of its group; None: not known of each.
        sentence: Their number in words; None where of none it is known.
    """

    rows: Bool[np.ndarray, " num_images"] | None
    sentence: str | None

    @property
    def number(self) -> int | None:
        """Number of them; None: not known."""
        return None if self.rows is None else int(self.rows.sum())


def seen_in_training(images: ImageRows, model: SavedModel) -> AlreadySeen:
    """The images that a fine-tuned model was trained on or picked with, found pixel by pixel.

    A model that was handed over without its run knows the fingerprint of its whole data set and no image of it.
    """
    if model.known_images is None:
        same = images.fingerprint in model.facts.trained_on.fingerprints
        return AlreadySeen(None, "These are the images that the model was fine-tuned on" if same else None)
    seen = np.array([digest.hex() in model.known_images for digest in images.image_digests], dtype=bool)
    number = int(seen.sum())
    of_all = f"{number} of {counted(len(images), 'image')} had a part in the fine-tuning (training or validation)"
    return AlreadySeen(seen, of_all if number else None)


def seen_in_support(support: ImageRows, images: ImageRows) -> AlreadySeen:
    """The images that are in a support set, pixel by pixel, or are of a group that is."""
    learned, same_column = set(support.image_digests), support.group_column == images.group_column
    shared = sorted(_known_groups(support) & _known_groups(images)) if same_column else []
    same = np.array([digest in learned for digest in images.image_digests], dtype=bool)
    of_group = np.zeros(len(images), dtype=bool) if images.groups is None else np.isin(images.groups, shared)
    overlaps = [f"{same.sum()} of {counted(len(images), 'image')} are in the support set, pixel by pixel"] if any(same) else []
    overlaps += [f"images of {counted(len(shared), 'group')} (column {images.group_column}) are on both sides"] if shared else []
    return AlreadySeen(same | of_group, ", and ".join(overlaps) or None)


def is_of_run(images: ImageRows, model: SavedModel, seen: AlreadySeen) -> bool:
    """Whether the images, or those that had no part in the fine-tuning, are its test images, or there are no others."""
    if are_its_test_images(images, model):
        return True
    others = np.arange(len(images)) if seen.rows is None else np.flatnonzero(~seen.rows)
    return len(others) == 0 or fingerprint_of_tested(images, others) == model.facts.test_fingerprint


def are_its_test_images(images: ImageRows, model: SavedModel) -> bool:
    """Whether the images are the test images of the fine-tuning, all of them and no other."""
    return fingerprint_of_tested(images, np.arange(len(images))) == model.facts.test_fingerprint


def _known_groups(images: ImageRows) -> set[str]:
    if images.groups is None:
        return set()
    return set(images.groups if images.groups_known is None else images.groups[images.groups_known])


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
