"""What an artefact does to a model that is trained already: every test image without it and with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool

from crossgraft.audit._image_edit import ImageEdit
from crossgraft.audit.detectability import Detectability, detectability
from crossgraft.audit.edits import EditFacts, Editing
from crossgraft.audit.group_metrics import GroupMetrics, group_metrics
from crossgraft.audit.reliance import ExactTestScores, flip_effect
from crossgraft.audit.subjects import Probabilities, Subject
from crossgraft.data import Dataset
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import DataError
from crossgraft.features.passes import run_pass
from crossgraft.metrics import MetricValue, auc, auc_difference
from crossgraft.progress import Reporter
from crossgraft.tune.saving.saved_model import SavedModel

Outcome = Literal["relies", "passes", "undecided", "undetectable", "untrained"]
LEAST_AUC = 0.55
"""Below this clean AUC a model has learned nothing that an artefact could spoil."""
LARGEST_DROP = 0.05
"""A model passes where the whole interval of its drop lies below this, and relies where not, and all of it lies above 0."""
_AT_ONCE = 64


@dataclass(frozen=True)
class TrainedAudit:
    """One artefact and one trained model.

    Attributes:
        outcome: Verdict, one of five. ``passes``: the interval of the drop lies below ``LARGEST_DROP``, and 3 / n does where no
            order changed, with n patients of the smaller class. ``relies``: not so, and it lies above 0; or that of
            ``reverse_drop`` does, with a value above ``LARGEST_DROP``. ``undecided``: neither, for want of images.
            ``undetectable``: the edit changes nothing, or does not reach the network, so that nothing can be said.
            ``untrained``: nor where the clean AUC is below ``LEAST_AUC``.
        clean: AUC where nobody carries the artefact, with its interval.
        aligned: AUC where every positive carries it, and no negative.
        ood: AUC where every negative carries it, and no positive.
        both: AUC where everybody carries it.
        drop: Clean minus o.o.d., of the same images.
        reverse_drop: Clean minus aligned: above 0 the artefact speaks for the negative class.
        flip_effect_positives: Mean change of the logit of positives that get it.
        flip_effect_negatives: The same of negatives: above 0 the artefact speaks for the positive class.
        groups: Accuracy of the four cells and gaps; each image is there without and with it.
        edit: What it changes in the images.
        input_rms: Root mean square of what it changes at the input of the network, in its units; None for what can only be
            asked.
        detectability: Detectability of the edit in the features of the network; None for what can only be asked.
    """

    outcome: Outcome
    clean: MetricValue
    aligned: MetricValue
    ood: MetricValue
    both: MetricValue
    drop: MetricValue
    reverse_drop: MetricValue
    flip_effect_positives: float
    flip_effect_negatives: float
    groups: GroupMetrics
    edit: EditFacts
    input_rms: float | None
    detectability: Detectability | None


def audit_trained(
    subject: Subject,
    images: Dataset,
    edit: ImageEdit,
    *,
    positive: str | None = None,
    strength: float = 1.0,
    threshold: float = 0.5,
    seed: int = 0,
    before: Probabilities | None = None,
    reporter: Reporter | None = None,
) -> TrainedAudit:
    """Score every image without and with an artefact, and compare where it goes with the class and where it goes against it.

    Args:
        subject: From ``subject_of``.
        images: Labelled images that the model has not learned from; their classes are among those of the subject.
        edit: The artefact.
        positive: Class that is told from all others; by default the last one.
        strength: Multiple of what the edit changes; with 0 every drop is exactly 0.
        threshold: Probability of the positive class from which on an image is decided positive.
        seed: Random seed of the edit.
        before: (n, C) what the subject says of the images as they are; None: it is asked.
        reporter: Reporter of progress.

    Raises:
        DataError: Images have several labels, a class that the model does not know, or are of one class.
        UsageError: An edit cannot be done.

    Cost: two passes over all images, for a saved run four; one less with ``before``.

    Source: the exact test mode of this project; the o.o.d. protocol is that of Juodelyte's thesis, chapter 4.
    """
    reporter = reporter or Reporter(quiet=True)
    is_positive, column = positives_of(subject, images, positive)
    editing = Editing([edit], strength=strength, seed=seed)
    edited = images.edited(editing)
    known = subject.probabilities(images, reporter) if before is None else before
    clean_scores, after = known[:, column], subject.probabilities(edited, reporter)[:, column]
    labels, patients = is_positive.astype(np.int64), images.groups
    ood = np.where(is_positive, clean_scores, after)
    scores = ExactTestScores(
        clean_scores[is_positive], after[is_positive], clean_scores[~is_positive], after[~is_positive]
    )
    with_class = np.where(is_positive, after, clean_scores)
    drop = auc_difference(clean_scores, ood, labels, patients)
    reverse = auc_difference(clean_scores, with_class, labels, patients)
    clean = auc(clean_scores, labels, patients)
    facts = editing.facts()[0]
    reach = None if subject.model is None else _reach(subject.model, images, edited)
    return TrainedAudit(
        outcome=_outcome(
            clean,
            drop,
            reverse,
            None if reach is None else reach[1],
            _fewest(labels, patients),
            facts if strength else None,
        ),
        clean=clean,
        aligned=auc(with_class, labels, patients),
        ood=auc(ood, labels, patients),
        both=auc(after, labels, patients),
        drop=drop,
        reverse_drop=reverse,
        flip_effect_positives=flip_effect(scores.positives, scores.positives_edited),
        flip_effect_negatives=flip_effect(scores.negatives, scores.negatives_edited),
        groups=group_metrics(
            np.r_[clean_scores, after],
            np.r_[labels, labels],
            np.repeat([0, 1], len(labels)),
            threshold=threshold,
            groups=np.r_[patients, patients] if patients is not None else np.tile(np.arange(len(labels)), 2),
        ),
        edit=facts,
        input_rms=None if reach is None else reach[0],
        detectability=None if reach is None else reach[1],
    )


def positives_of(subject: Subject, images: Dataset, positive: str | None) -> tuple[Bool[np.ndarray, " _"], int]:
    """Which images are positive, and the column of their class.

    Raises:
        DataError: Images have several labels, a class that the model does not know, or are of one class.
    """
    if not images.task.partitions:
        raise DataError("An audit tells one class from the others, and these images have several labels each.")
    name = subject.class_names[-1] if positive is None else positive
    unknown = [each for each in (*images.class_names, name) if each not in subject.class_names]
    if unknown:
        raise DataError(
            f"{subject.name} does not know the class {unknown[0]}: its classes are {', '.join(subject.class_names)}."
        )
    members = np.array(images.class_names)[images.targets] == name
    if members.all() or not members.any():
        raise DataError(
            f"An audit needs images of {name} and of other classes; {int(members.sum())} of {len(images)} are."
        )
    return members, subject.class_names.index(name)


def _reach(model: SavedModel, images: Dataset, edited: Dataset) -> tuple[float, Detectability]:
    """How much of the edit is left at the input, and how well the features show it."""
    squares, samples = 0.0, 0
    features: list[list[np.ndarray]] = [[], []]
    for first in range(0, len(images), _AT_ONCE):
        rows = range(first, min(first + _AT_ONCE, len(images)))
        pair = [
            prepare_batch([each.read(row) for row in rows], model.classifier.preprocessing) for each in (images, edited)
        ]
        squares += float((pair[1] - pair[0]).double().square().sum())
        samples += pair[0].numel()
        weight = model.classifier.head.weight
        for kept, said in zip(
            features, run_pass(model.classifier, pair, read=model.classifier.features, like=weight), strict=True
        ):
            kept.append(said.float().cpu().numpy())
    before, after = (np.concatenate(parts) for parts in features)
    return float(np.sqrt(squares / samples)), detectability(before, after, images.groups)


def _fewest(labels: np.ndarray, patients: np.ndarray | None) -> int:
    """Patients, or images, of the smaller class."""
    units = np.arange(len(labels)) if patients is None else np.unique(patients, return_inverse=True)[1]
    return min(len(np.unique(units[labels == each])) for each in (0, 1))


def speaks_for_negatives(reverse: MetricValue) -> bool:
    """Whether the artefact is a cue of the negative class: positives that carry it are taken for negatives."""
    return reverse.low is not None and reverse.low > 0 and reverse.value > LARGEST_DROP


def _outcome(
    clean: MetricValue,
    drop: MetricValue,
    reverse: MetricValue,
    reach: Detectability | None,
    fewest: int,
    facts: EditFacts | None,
) -> Outcome:
    """``facts`` are None where nothing was to be changed."""
    if clean.value < LEAST_AUC:
        return "untrained"
    if facts is not None and (facts.rms == 0 or (reach is not None and not reach.is_detectable)):
        return "undetectable"
    if drop.low is None or drop.high is None:
        return "undecided"
    if speaks_for_negatives(reverse):
        return "relies"
    # no image of a class changed places: by the rule of three up to 3 / n of all such images may
    high = drop.high if drop.high > drop.low else drop.high + 3 / fewest
    if high < LARGEST_DROP:
        return "passes"
    return "relies" if drop.low > 0 else "undecided"
