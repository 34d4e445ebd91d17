"""What is known of images before they are predicted: which of them the model has learned from, and their true classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from crossgraft.data.rows import ImageRows
from crossgraft.metrics import evaluate_predictions
from crossgraft.metrics.record import MetricRecord
from crossgraft.metrics.words import NOT_SEEN
from crossgraft.progress import Reporter
from crossgraft.tasks import recorded_task, task_of
from crossgraft.tune.looks import fingerprint_of_tested
from crossgraft.tune.measuring.evaluation import metric_records
from crossgraft.tune.saving.saved_model import Answering, SavedModel, in_words, thresholds_of
from crossgraft.types import Targets
from crossgraft.words.formatting import counted, joined


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


_UNKNOWN = -1
MEASURED_ON = "these images"


class KnownTargets(NamedTuple):
    """True classes in the numbering of the model.

    Attributes:
        targets: (n,) class or −1 where the model has no such class, or (n, L) of 0 and 1; None: not known.
        names: What the data call the class or the labels of each image; empty: not known.
        warnings: What the user should know, one sentence each.
        measured: Numbers of the images that metrics are measured on; empty: nothing is measured.
        unseen: Whether none of them had a part in what the model has learned, as far as is known.
    """

    targets: np.ndarray | None = None
    names: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    measured: Int[np.ndarray, " _"] = np.zeros(0, dtype=np.intp)
    unseen: bool = True


def true_classes(
    images: ImageRows, facts: Answering, reporter: Reporter, *, seen: AlreadySeen, has_test: bool = False
) -> KnownTargets:
    """The labels of ``images`` as classes of the model, found by their names, and the images that can be measured.

    Images that the model has learned from are left out of what is measured, unless there are no others.

    Args:
        images: Images, perhaps with labels.
        facts: What is known of the model.
        reporter: Reporter of what the user should know.
        seen: The images that the model has learned from.
        has_test: Whether ``use_split="test"`` would leave them out.
    """
    if images.targets is None:
        return KnownTargets()
    find = _classes if recorded_task(facts).partitions else _labels
    known = find(images, images.targets, facts)
    if known.targets is not None:
        known = _without_seen(known, known.targets, seen, has_test=has_test)
    for warning in known.warnings:
        reporter.warn(warning)
    return known


def _without_seen(targets_known: KnownTargets, targets: np.ndarray, seen: AlreadySeen, *, has_test: bool) -> KnownTargets:
    """What is measured: the images of known classes that the model has not learned from; all of them where there are none."""
    known = (targets != _UNKNOWN).reshape(len(targets), -1).all(axis=1)
    others = np.flatnonzero(known if seen.rows is None else known & ~seen.rows)
    if seen.sentence is None:
        return targets_known._replace(measured=others)
    if seen.rows is not None and len(others) > 0:
        text = f"{seen.sentence}. They are not measured: the metrics are of {counted(len(others), 'other image')}."
        return targets_known._replace(measured=others, warnings=(*targets_known.warnings, text))
    rows_of_test = " (the test rows: --use-split test)" if has_test else ""
    text = f"{seen.sentence}, so the metrics are too high. {NOT_SEEN}{rows_of_test}."
    return targets_known._replace(measured=np.flatnonzero(known), unseen=False, warnings=(*targets_known.warnings, text))


def _classes(images: ImageRows, targets: Targets, facts: Answering) -> KnownTargets:
    if not task_of(targets).partitions:
        return KnownTargets(warnings=("The data have several labels per image and the model gives one, so nothing is measured.",))
    place = {name: index for index, name in enumerate(facts.class_names)}
    of_label = np.asarray([place.get(name, _UNKNOWN) for name in images.class_names])
    unknown = [name for name in images.class_names if name not in place]
    names = tuple(images.class_names[int(target)] for target in targets)
    if len(unknown) == len(images.class_names):
        text = f"None of the classes of the data ({joined(unknown)}) is a class of the model ({joined(facts.class_names)})"
        return KnownTargets(None, names, (f"{text}, so nothing is measured.",))
    mapped = of_label[targets]
    if not unknown:
        return KnownTargets(mapped, names)
    number = counted(int((mapped == _UNKNOWN).sum()), "image")
    warning = f"The model does not know the classes {joined(unknown)}; {number} of them are predicted but not measured."
    return KnownTargets(mapped, names, (warning,))


def _labels(images: ImageRows, targets: Targets, facts: Answering) -> KnownTargets:
    missing = [name for name in facts.class_names if name not in images.class_names]
    if missing or task_of(targets).partitions:
        what = f"no labels {joined(missing)}" if missing else "one class per image"
        return KnownTargets(warnings=(f"The data have {what}, so nothing is measured.",))
    mapped = targets[:, [images.class_names.index(name) for name in facts.class_names]]
    names = tuple(in_words(recorded_task(facts).names_of(row, facts.class_names)) for row in mapped)
    return KnownTargets(mapped, names)


def measure(
    probabilities: Float[np.ndarray, "num_images num_outputs"],
    known: KnownTargets,
    facts: Answering,
    groups: Shaped[np.ndarray, " num_images"] | None,
) -> list[MetricRecord]:
    """Every metric with its interval on the images that can be measured; empty where there are none."""
    if known.targets is None or len(known.measured) == 0:
        return []
    rows = known.measured
    metrics = evaluate_predictions(
        probabilities[rows],
        known.targets[rows],
        task=recorded_task(facts),
        class_names=facts.class_names,
        groups=None if groups is None else groups[rows],
        thresholds=thresholds_of(facts),
    )
    return metric_records(metrics, split=MEASURED_ON)
