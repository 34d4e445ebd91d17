"""Whether shams and the starting network explain what an artefact does to the answers of a trained model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from crossgraft.audit.mitigation import FittedScorer, GroupedRows
from crossgraft.audit.mitigation._mitigation import logistic_scorer
from crossgraft.audit.pull import IN_WORDS, NUM_SHAMS, Pull, Sham, beside_shams, beside_start, pull_of, refuse_misfits, shifts
from crossgraft.audit.reliance import logits_of
from crossgraft.audit.subjects import Subject
from crossgraft.choice import spell
from crossgraft.data import Dataset
from crossgraft.data.inspection import without_name
from crossgraft.data.rows import ImageRows
from crossgraft.edit.edits import Editing
from crossgraft.errors import DataError
from crossgraft.features.passes import BatchLoader, collect, run_pass
from crossgraft.models import Backbone
from crossgraft.models.classifier import Classifier
from crossgraft.progress import Reporter
from crossgraft.seeding import generator
from crossgraft.types import Groups
from crossgraft.words.formatting import counted

NUM_HEADS = 20
"""Heads, each fitted to another draw of patients."""
SHARE_OF_HEAD = 0.8
"""Patients of a draw, without replacement, where the model itself is a head on the starting network; else as many as there are,
with replacement."""
PENALTIES = (10.0, 1.0, 0.1, 0.01, 0.001, 0.0001)
"""C of the logistic regressions; the one whose head answers most like the model on images without the artefact is taken."""
LEAST_IMAGES = 10
"""Images of each class that a head is fitted to, at least."""
_BATCH = 64

Features = Float[np.ndarray, "num_images num_features"]
Logits = Float64[np.ndarray, "num_heads num_images"]


class FittingRows(NamedTuple):
    """Images without the artefact that heads are fitted to.

    Attributes:
        features: (n, d) of the starting network.
        is_positive: (n,).
        groups: Patient of each image; None takes the images as independent.
    """

    features: Features
    is_positive: np.ndarray
    groups: Groups | None

    def take(self, rows: np.ndarray) -> FittingRows:
        """Some of the images, in this order."""
        groups = None if self.groups is None else self.groups[rows]
        return FittingRows(self.features[rows], self.is_positive[rows], groups)


@dataclass(frozen=True, eq=False)
class StartHeads:
    """Heads on one network.

    Attributes:
        scorers: One per head.
    """

    scorers: tuple[FittedScorer, ...]

    def logits(self, features: Features) -> Logits:
        """(heads, n) of the audited images, as they are or edited, in their order."""
        return np.stack([scorer.logits(features) for scorer in self.scorers])


def fit_heads(
    rows: FittingRows, audited: Features, answers: Float64[np.ndarray, " num_images"], *, is_head: bool = False, seed: int = 0
) -> StartHeads:
    """Heads on the starting network, as smooth as the one that answers most like the model on images without the artefact.

    Args:
        rows: Images without the artefact that the audited ones are not among.
        audited: (n, d) of the audited images as they are.
        answers: (n,) logits of the model for the audited images as they are.
        is_head: Whether the model is a head on the starting network, which learned from the same images: it differs less from
            these heads than a network that was trained whole.
        seed: Random seed of the draws.

    Raises:
        DataError: There are fewer than ``LEAST_IMAGES`` of a class.

    Cost: ``NUM_HEADS`` logistic regressions and one for each penalty.
    """
    number = int(rows.is_positive.sum())
    if min(number, len(rows.is_positive) - number) < LEAST_IMAGES:
        raise DataError(
            f"Heads on the starting network need {LEAST_IMAGES} images of each class without the artefact; there are {number} "
            f"positive and {len(rows.is_positive) - number} negative ones."
        )

    # of all images: what is hardly ever lit in a draw would be divided by next to nothing, and a letter that lights it explode
    scaler = StandardScaler().fit(rows.features.astype(np.float64))

    def fit(of_draw: FittingRows, penalty: float) -> FittedScorer:
        labels = of_draw.is_positive.astype(np.int64)
        grouped = GroupedRows(of_draw.features.astype(np.float64), labels, np.zeros_like(labels))
        return logistic_scorer(grouped, inverse_penalty=penalty, scaler=scaler)

    def agreement(penalty: float) -> float:
        return float(np.corrcoef(fit(rows, penalty).logits(audited), answers)[0, 1])

    penalty = max(PENALTIES, key=agreement)
    draws = (_draw(rows, generator(seed, "start head", each, 0), is_head=is_head) for each in range(NUM_HEADS))
    return StartHeads(tuple(fit(rows.take(each), penalty) for each in draws))


def features_of(
    network: Backbone | Classifier, images: ImageRows, reporter: Reporter, *, named: str = "the network that it started from"
) -> Features:
    """(n, d) penultimate features of images, in their order, kept nowhere.

    Cost: one pass over the images.
    """
    title = f"Looking at {len(images)} images with {named}"
    with reporter.stage(title, total=len(images), unit="images") as stage:
        loader = BatchLoader(images, network.preprocessing, [range(len(images))], batch_size=_BATCH, reporter=reporter)
        read: Callable[[Tensor], Tensor]
        if isinstance(network, Classifier):
            classifier = network
            read = lambda batch: classifier.features(batch).float().cpu()  # noqa: E731
            batches = run_pass(network, loader, read=read, like=network.head.weight, on_images=stage.advance)
        else:
            backbone = network
            read = lambda batch: backbone(batch).features.float().cpu()  # noqa: E731
            batches = run_pass(network, loader, read=read, on_images=stage.advance)
        return collect(batches).numpy()


def _draw(rows: FittingRows, rng: np.random.Generator, *, is_head: bool) -> np.ndarray:
    """Rows of patients that are drawn until both classes are there."""
    unit = np.arange(len(rows.features)) if rows.groups is None else np.unique(rows.groups, return_inverse=True)[1]
    order = np.argsort(unit, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(unit[order])) + 1)
    number = math.ceil(SHARE_OF_HEAD * len(members)) if is_head else len(members)
    while True:
        drawn = np.concatenate([members[each] for each in rng.choice(len(members), number, replace=not is_head)])
        if 0 < rows.is_positive[drawn].sum() < len(drawn):
            return drawn


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
        return FittingRows(features_of(self.network, self.rows, Reporter(quiet=True)), self.is_positive, self.rows.groups)


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
        pull = pull_of(shift, is_positive, images.groups)
    except DataError as error:
        return Explained(None, str(error))
    if not pull.may_rely:
        return Explained(pull)
    heads, start_in_words = _heads_of(start, images, is_positive, before, editing, reporter)
    of_start = None if heads is None else heads.shifts(edited)
    if of_start is not None:
        pull = beside_start(pull, shift, of_start, is_positive, images.groups)
        if not pull.is_beyond_start:
            return Explained(pull, start_in_words)
    try:
        of_shams = _shifts_of_shams(subject, column, before, images, is_positive, editing, reporter)
    except DataError as error:
        return Explained(pull, start_in_words, without_name(error))
    pull = beside_shams(pull, shift, of_shams, is_positive, images.groups)
    return Explained(pull, start_in_words, f"{NUM_SHAMS} shams: {IN_WORDS[editing.edits[0].sham or 'shuffled']}.")


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
        return (None, f"{start.in_words} is known, but no images to fit heads on it to: those of its training are needed.")
    if getattr(editing.edits[0], "scope", "global") == "local":
        carries = _carries(start.rows, start.rows.edited(Editing(editing.edits, editing.strength, editing.seed)))
        rows = rows.take(np.flatnonzero(~carries))
        left_out = f", without {counted(int(carries.sum()), 'image')} that carry it already" if carries.any() else ""
    audited = features_of(start.network, images, reporter)
    try:
        heads = fit_heads(rows, audited, answers, is_head=start.is_of_model, seed=editing.seed)
    except DataError as error:
        return None, str(error)
    in_words = f"{start.in_words} with {NUM_HEADS} heads that are fitted to {len(rows.features)} training images{left_out}."
    return _Heads(start.network, heads, heads.logits(audited), is_positive, reporter), in_words


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
    of_draws: list[np.ndarray] = []
    misfits = set[str]()
    for draw in range(NUM_SHAMS):
        sham = Sham(editing.edits[0], draw, editing.strength, editing.seed)
        with_sham = images.edited(sham)
        misfits |= sham.misfits
        refuse_misfits(len(misfits), len(images), spell(editing.edits[0]))
        of_draws.append(shifts(before, logits_of(subject.probabilities(with_sham, reporter)[:, column]), is_positive))
    return np.stack(of_draws)


def _carries(images: Dataset, edited: Dataset) -> Flags:
    """(n,) whether the edit changes nothing in an image."""
    return np.array([one == other for one, other in zip(images.image_digests, edited.image_digests, strict=True)])
