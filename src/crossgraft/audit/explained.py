"""Whether shams and the starting network explain what an artefact does to the answers of a trained model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from crossgraft.audit.pull import Pull, beside_shams, beside_start, pull_of, shifts
from crossgraft.audit.reliance import logits_of
from crossgraft.audit.shams import IN_WORDS, NUM_SHAMS, Sham, refuse_misfits
from crossgraft.audit.start_heads import NUM_HEADS, FittingRows, StartHeads, features_of, fit_heads
from crossgraft.audit.subjects import Subject
from crossgraft.choice import spell
from crossgraft.data import Dataset
from crossgraft.data.edits import without_name
from crossgraft.edit.edits import Editing
from crossgraft.errors import DataError
from crossgraft.models import Backbone
from crossgraft.models.classifier import Classifier
from crossgraft.progress import Reporter
from crossgraft.words.formatting import counted

NO_START = "Which network it started from is not known: name it with --start."
Flags = Bool[np.ndarray, " num_images"]


class Explained(NamedTuple):
    """A pull, and what it was compared with, in sentences that are empty where it was not needed.

    Attributes:
        pull: None where answers leave nothing to measure a shift by.
        start: Network that stands for the start, or the reason that none does.
        shams: Shams that were asked, or the reason that there are none.
    """

    pull: Pull | None
    start: str = ""
    shams: str = ""


@dataclass(frozen=True, eq=False)
class Start:
    """The network that a model started from, and images that heads on it are fitted to.

    Attributes:
        network: In eval mode.
        in_words: What it is, as the subject of a sentence.
        rows: Images of the training; None: they are not known, so that the network cannot be asked.
        is_positive: (n,) of these.
        is_of_model: Whether only a head was trained on it.
    """

    network: Backbone | Classifier
    in_words: str
    rows: Dataset | None = None
    is_positive: Flags | None = None
    is_of_model: bool = False

    @cached_property
    def fitting(self) -> FittingRows | None:
        """``rows`` as heads are fitted to them, looked at once for all artefacts."""
        if self.rows is None or self.is_positive is None:
            return None
        return FittingRows(
            features_of(self.network, self.rows, Reporter(quiet=True)), self.is_positive, self.rows.groups
        )


@dataclass(frozen=True, eq=False)
class _Heads:
    """Heads on the starting network, and what they say of the audited images as they are."""

    network: Backbone | Classifier
    heads: StartHeads
    clean: Float64[np.ndarray, "num_heads num_images"]
    is_positive: Flags
    reporter: Reporter

    def shifts(self, edited: Dataset) -> Float64[np.ndarray, "num_heads num_images"]:
        after = self.heads.logits(features_of(self.network, edited, self.reporter))
        pairs = zip(self.clean, after, strict=True)
        return np.stack([shifts(before, now, self.is_positive) for before, now in pairs])


def explain(
    subject: Subject,
    column: int,
    images: Dataset,
    edited: Dataset,
    is_positive: Flags,
    editing: Editing,
    start: Start | str,
    probabilities: tuple[Float64[np.ndarray, " num_images"], Float64[np.ndarray, " num_images"]],
    reporter: Reporter,
) -> Explained:
    """Compare the pull of an artefact with that of heads on the starting network, and with shams.

    Each is asked only where the one before leaves the question open: a pull that may be 0 needs neither, and one that heads on
    the starting network have, too, needs no shams. Images that the artefact does not change carry it already, and say nothing.

    Args:
        subject: The model.
        column: Column of the class in question.
        images: The audited images as they are.
        edited: The same images with the artefact.
        is_positive: (n,) whether an image is of the class in question.
        editing: The artefact.
        start: The starting network, or why there is none, as a sentence.
        probabilities: Probabilities of the class in question, of the images as they are and with the artefact.
        reporter: Reporter of progress.
    """
    changed = np.flatnonzero(~_carries(images, edited))
    images, edited, is_positive = images.take(changed), edited.take(changed), is_positive[changed]
    before, after = (logits_of(each[changed]) for each in probabilities)
    try:
        shift = shifts(before, after, is_positive)
        found = pull_of(shift, is_positive, images.groups)
    except DataError as error:
        return Explained(None, str(error))
    if not found.may_rely:
        return Explained(found)
    heads, said = _heads_of(start, images, is_positive, before, editing, reporter)
    of_start = None if heads is None else heads.shifts(edited)
    if of_start is not None:
        found = beside_start(found, shift, of_start, is_positive, images.groups)
        if not found.is_beyond_start:
            return Explained(found, said)
    try:
        of_shams = _shifts_of_shams(subject, column, before, images, is_positive, editing, reporter)
    except DataError as error:
        return Explained(found, said, without_name(error))
    found = beside_shams(found, shift, of_shams, is_positive, images.groups)
    return Explained(found, said, f"{NUM_SHAMS} shams: {IN_WORDS[editing.edits[0].sham or 'shuffled']}.")


def _heads_of(
    start: Start | str,
    images: Dataset,
    is_positive: Flags,
    answers: Float64[np.ndarray, " num_images"],
    editing: Editing,
    reporter: Reporter,
) -> tuple[_Heads | None, str]:
    """Heads, and what they are in a sentence; or None, and why."""
    if isinstance(start, str):
        return None, start
    rows, left_out = start.fitting, ""
    if rows is None or start.rows is None:  # heads on the audited images themselves called a sound head guilty
        return (
            None,
            f"{start.in_words} is known, but no images to fit heads on it to: those of its training are needed.",
        )
    if getattr(editing.edits[0], "scope", "global") == "local":
        carries = _carries(start.rows, start.rows.edited(Editing(editing.edits, editing.strength, editing.seed)))
        rows = rows.take(np.flatnonzero(~carries))
        left_out = f", without {counted(int(carries.sum()), 'image')} that carry it already" if carries.any() else ""
    audited = features_of(start.network, images, reporter)
    try:
        heads = fit_heads(rows, audited, answers, is_head=start.is_of_model, seed=editing.seed)
    except DataError as error:
        return None, str(error)
    said = f"{start.in_words} with {NUM_HEADS} heads that are fitted to {len(rows.features)} training images{left_out}."
    return _Heads(start.network, heads, heads.logits(audited), is_positive, reporter), said


def _shifts_of_shams(
    subject: Subject,
    column: int,
    before: Float64[np.ndarray, " num_images"],
    images: Dataset,
    is_positive: Flags,
    editing: Editing,
    reporter: Reporter,
) -> Float64[np.ndarray, "num_draws num_images"]:
    """Shifts of the model by each sham.

    Raises:
        DataError: The artefact has no sham, or shams do not fit the images.
    """
    found: list[np.ndarray] = []
    misfits = set[str]()
    for draw in range(NUM_SHAMS):
        sham = Sham(editing.edits[0], draw, editing.strength, editing.seed)
        with_sham = images.edited(sham)
        misfits |= sham.misfits
        refuse_misfits(len(misfits), len(images), spell(editing.edits[0]))
        found.append(shifts(before, logits_of(subject.probabilities(with_sham, reporter)[:, column]), is_positive))
    return np.stack(found)


def _carries(images: Dataset, edited: Dataset) -> Flags:
    """(n,) whether the edit changes nothing in an image."""
    return np.array([one == other for one, other in zip(images.image_digests, edited.image_digests, strict=True)])
