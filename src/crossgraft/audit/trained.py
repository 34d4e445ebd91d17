"""What an artefact does to a model that is trained already: every test image without it and with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool

from crossgraft.audit.detectability import Detectability, detectability
from crossgraft.audit.explained import NO_START, Explained, Start, explain
from crossgraft.audit.group_metrics import GroupMetrics, group_metrics
from crossgraft.audit.options import AuditOptions
from crossgraft.audit.pull import Pull
from crossgraft.audit.reliance import flip_effect
from crossgraft.audit.subjects import Probabilities, Subject
from crossgraft.data import Dataset
from crossgraft.data.transforms import prepare_batch
from crossgraft.edit._image_edit import ImageEdit
from crossgraft.edit.edits import Editing
from crossgraft.edit.record import EditRow
from crossgraft.errors import DataError, UsageError
from crossgraft.features.passes import run_pass
from crossgraft.metrics import MetricValue, auc, auc_difference
from crossgraft.models import ModelSpec, load_backbone
from crossgraft.models.zoo import zoo_as_asked
from crossgraft.progress import Reporter
from crossgraft.tune.pretrained_start import pretrained_start
from crossgraft.tune.result import FineTuningResult
from crossgraft.tune.rows_of_run import run_directory_of, split_of_run
from crossgraft.tune.saving.saved_model import SavedModel

_ONLY_THE_HEAD = "linear"
"""Method that leaves the network as it was."""


def named_start(options: AuditOptions, reporter: Reporter) -> ModelSpec | None:
    """The model of ``--start``.

    Raises:
        UsageError: It names several.
        UnknownNameError: There is no such model.
        MissingWeightsError: Its weights are not on this machine.
    """
    if options.start is None:
        return None
    specs = zoo_as_asked(options.start, options, reporter)
    if len(specs) != 1:
        raise UsageError(f"--start is one network, and {options.start} names {len(specs)}. Add its name: zoo.yaml:NAME.")
    return specs[0]


def start_of(
    model: Any,
    subject: Subject,
    dataset: Dataset,
    audited: np.ndarray,
    is_positive: np.ndarray,
    options: AuditOptions,
    reporter: Reporter,
    device: str,
) -> Start | str:
    """The starting network with the images that its heads are fitted to; or why there is none, as a sentence.

    Args:
        model: What was given.
        subject: The same, as what is asked.
        dataset: All images.
        audited: Numbers of the audited rows.
        is_positive: (n,) whether an image is of the class in question.
        options: Options of the audit.
        reporter: Reporter of progress.
        device: Where the network of ``--start`` goes.
    """
    rows = _training_rows(model, subject, dataset)
    rows = rows[~np.isin(rows, audited)]
    fitting = None if not len(rows) else dataset.take(rows)
    is_fitting = None if fitting is None else is_positive[rows]
    saved = subject.model
    spec = named_start(options, reporter)
    if spec is not None:
        side = None
        if saved is not None:
            wanted = saved.classifier.preprocessing
            side = wanted.height_pixels if wanted.height_pixels == wanted.width_pixels else None
        network = load_backbone(
            spec,
            seed=options.seed,
            device=device,
            weights_dir=options.weights_dir,
            allow_download=options.allow_download,
            image_size=side,
            reporter=reporter,
        )
        return Start(network, f"{spec.name} as named", fitting, is_fitting)
    if saved is None:
        return NO_START
    if any(each.kind == "method" and each.spelling == _ONLY_THE_HEAD for each in saved.facts.plugins):
        in_words = f"{subject.name}, of which only the head was trained,"
        return Start(saved.classifier, in_words, fitting, is_fitting, is_of_model=True)
    pretrained = pretrained_start(model, saved, options, reporter)
    if isinstance(pretrained, str):
        return f"{pretrained} Or name it with --start."
    return Start(pretrained, f"{subject.name} as it was pretrained", fitting, is_fitting)


def _training_rows(model: Any, subject: Subject, dataset: Dataset) -> np.ndarray:
    """Rows that the model learned from, where the data are those of its run; else those that the data themselves train with."""
    run = model.out if isinstance(model, FineTuningResult) else model
    facts = None if subject.model is None else subject.model.facts
    is_its_own = facts is not None and dataset.fingerprint in facts.trained_on.fingerprints
    if is_its_own and isinstance(run, str | Path) and (run_directory_of(Path(run)) / "split.json").is_file():
        split, known = split_of_run(Path(run)), None if subject.model is None else subject.model.known_images
        if split.num_images == len(dataset):
            return np.sort(np.concatenate([split.rows("train"), split.rows("val")]))
        if known is not None:  # the fewer rows of --limit, --class-shares or --pair-by
            return np.flatnonzero([digest.hex() in known for digest in dataset.image_digests])
    if dataset.splits is None:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero((dataset.splits == "train") | (dataset.splits == "val"))


Outcome = Literal["relies", "sensitive", "passes", "undecided", "undetectable", "untrained"]
LEAST_AUC = 0.55
"""Below this clean AUC a model has learned nothing that an artefact could spoil."""
LARGEST_DROP = 0.05
"""A model passes where the whole intervals of its drop and of its reverse drop lie below this."""
_AT_ONCE = 64


@dataclass(frozen=True)
class TrainedAudit:
    """One artefact and one trained model.

    Attributes:
        outcome: Verdict, one of six; see ``verdict``.
        clean: AUC where nobody carries the artefact, with its interval.
        aligned: AUC where every positive carries it, and no negative.
        ood: AUC where every negative carries it, and no positive.
        both: AUC where everybody carries it.
        drop: Clean minus o.o.d., of the same images.
        reverse_drop: Clean minus aligned: above 0 the artefact speaks for the negative class.
        pull: How far the artefact pulls answers, and whether shams and the starting network explain it; None where the answers
            within both classes are all equal.
        start: What the pull was compared with, or why there is no starting network, as a sentence; empty: it was not needed.
        shams: What shams were asked, or why there are none, as a sentence; empty: they were not needed.
        fewest: Patients, or images, of the smaller class.
        decided_otherwise: Shares of positives and of negatives of which the decision changes.
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
    pull: Pull | None
    start: str
    shams: str
    fewest: int
    decided_otherwise: tuple[float, float]
    flip_effect_positives: float
    flip_effect_negatives: float
    groups: GroupMetrics
    edit: EditRow
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
    start: Start | str = NO_START,
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
        start: The network that the model started from, or why there is none, as a sentence.
        reporter: Reporter of progress.

    Raises:
        DataError: Images have several labels, a class that the model does not know, or are of one class.
        UsageError: An edit cannot be done.

    Cost: two passes over all images, for a saved run four; one less with ``before``. Where the artefact pulls answers, two of the
    starting network and one over the images that its heads are fitted to; where it pulls the model more, eight more of the model.

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
    with_class = np.where(is_positive, after, clean_scores)
    drop = auc_difference(clean_scores, ood, labels, patients)
    reverse = auc_difference(clean_scores, with_class, labels, patients)
    clean = auc(clean_scores, labels, patients)
    facts = editing.facts()[0]
    reach = None if subject.model is None else _reach(subject.model, images, edited)
    is_seen = strength == 0 or (facts.rms > 0 and (reach is None or reach[1].is_detectable))
    asked = Explained(None, "", "")
    if is_seen and strength:
        both = clean_scores, after
        asked = explain(subject, column, images, edited, is_positive, editing, start, both, reporter)
    fewest = fewest_of_a_class(labels, patients)
    changed = (clean_scores >= threshold) != (after >= threshold)
    return TrainedAudit(
        outcome=verdict(clean, drop, reverse, asked.pull, is_seen=is_seen),
        clean=clean,
        aligned=auc(with_class, labels, patients),
        ood=auc(ood, labels, patients),
        both=auc(after, labels, patients),
        drop=drop,
        reverse_drop=reverse,
        pull=asked.pull,
        start=asked.start,
        shams=asked.shams,
        fewest=fewest,
        decided_otherwise=(float(changed[is_positive].mean()), float(changed[~is_positive].mean())),
        flip_effect_positives=flip_effect(clean_scores[is_positive], after[is_positive]),
        flip_effect_negatives=flip_effect(clean_scores[~is_positive], after[~is_positive]),
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
        raise DataError(f"{subject.name} does not know the class {unknown[0]}: its classes are {', '.join(subject.class_names)}.")
    members = np.array(images.class_names)[images.targets] == name
    if members.all() or not members.any():
        raise DataError(f"An audit needs images of {name} and of other classes; {int(members.sum())} of {len(images)} are.")
    return members, subject.class_names.index(name)


def _reach(model: SavedModel, images: Dataset, edited: Dataset) -> tuple[float, Detectability]:
    """How much of the edit is left at the input, and how well the features show it."""
    squares, samples = 0.0, 0
    features: list[list[np.ndarray]] = [[], []]
    for first in range(0, len(images), _AT_ONCE):
        rows = range(first, min(first + _AT_ONCE, len(images)))
        pair = [prepare_batch([each.read(row) for row in rows], model.classifier.preprocessing) for each in (images, edited)]
        squares += float((pair[1] - pair[0]).double().square().sum())
        samples += pair[0].numel()
        weight = model.classifier.head.weight
        for kept, answers in zip(
            features, run_pass(model.classifier, pair, read=model.classifier.features, like=weight), strict=True
        ):
            kept.append(answers.float().cpu().numpy())
    before, after = (np.concatenate(parts) for parts in features)
    return float(np.sqrt(squares / samples)), detectability(before, after, images.groups)


def fewest_of_a_class(labels: np.ndarray, patients: np.ndarray | None) -> int:
    """Patients, or images, of the smaller class."""
    units = np.arange(len(labels)) if patients is None else np.unique(patients, return_inverse=True)[1]
    return min(len(np.unique(units[labels == each])) for each in (0, 1))


def verdict(clean: MetricValue, drop: MetricValue, reverse: MetricValue, pull: Pull | None, *, is_seen: bool = True) -> Outcome:
    """What numbers of a trained model and an artefact say.

    ``passes``: drop and reverse drop lie below ``LARGEST_DROP``, all of their intervals. ``relies``: not so, and the model
    learned the artefact, see ``Pull.relies``, be it all that it learned. ``untrained``: the clean AUC is below ``LEAST_AUC``.
    ``undetectable``: the edit changes nothing, or does not reach the network. ``sensitive``: drop or reverse drop lies above 0.
    ``undecided``: none of these, for want of images.

    Args:
        clean: AUC of images without the artefact.
        drop: Clean minus o.o.d.
        reverse: Clean minus aligned.
        pull: How far the artefact pulls answers.
        is_seen: Whether the artefact changes images and reaches the network, or nothing was to be changed.
    """
    is_small = all(each.high is not None and each.high < LARGEST_DROP for each in (drop, reverse))
    if is_seen and pull is not None and pull.relies and not is_small:
        return "relies"  # also where the artefact is all that it learned
    if clean.value < LEAST_AUC:
        return "untrained"
    if not is_seen:
        return "undetectable"
    if any(each.high is None for each in (drop, reverse)):
        return "undecided"
    if is_small:
        return "passes"
    return "sensitive" if any(each.low is not None and each.low > 0 for each in (drop, reverse)) else "undecided"
