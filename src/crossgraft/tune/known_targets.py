"""True classes of images that are predicted: found by name, and what they say about the model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from crossgraft.data.rows import ImageRows
from crossgraft.metrics import evaluate_predictions
from crossgraft.progress import Reporter
from crossgraft.records import MetricRecord
from crossgraft.tasks import recorded_task, task_of
from crossgraft.tune.looks import fingerprint_of_tested
from crossgraft.tune.measuring.metric_records import metric_records
from crossgraft.tune.saving.inference import Answering, in_words, thresholds_of
from crossgraft.tune.saving.saved_model import SavedModel
from crossgraft.types import Targets
from crossgraft.words.formatting import counted, joined
from crossgraft.words.looks_words import NOT_SEEN

_UNKNOWN = -1
MEASURED_ON = "these images"


class KnownTargets(NamedTuple):
    """True classes in the numbering of the model.

    Attributes:
        targets: (n,) class or −1 where the model has no such class, or (n, L) of 0 and 1; None: not known.
        names: What the data call the class or the labels of each image; empty: not known.
        warnings: What the user should know, one sentence each.
    """

    targets: np.ndarray | None = None
    names: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def true_classes(
    images: ImageRows, facts: Answering, reporter: Reporter, *, seen_before: str | None, has_test: bool = False
) -> KnownTargets:
    """The labels of ``images`` as classes of the model, found by their names.

    Args:
        images: Images, perhaps with labels.
        facts: What is known of the model.
        reporter: Reporter of what the user should know.
        seen_before: Sentence about the images that the model has learned from; None: none of them.
        has_test: Whether ``use_split="test"`` would leave them out.
    """
    if images.targets is None:
        return KnownTargets()
    find = _classes if recorded_task(facts).partitions else _labels
    found = find(images, images.targets, facts)
    warnings = list(found.warnings)
    if found.targets is not None and seen_before is not None:
        rows_of_test = " (the test rows: --use-split test)" if has_test else ""
        warnings.append(f"{seen_before}, so the metrics are too high. {NOT_SEEN}{rows_of_test}.")
    for warning in warnings:
        reporter.warn(warning)
    return found._replace(warnings=tuple(warnings))


def seen_in_training(images: ImageRows, model: SavedModel) -> str | None:
    """How many of the images were seen; of the whole data set where the model was passed on without its run."""
    if model.known_images is None:
        same = images.fingerprint in model.facts.trained_on.fingerprints
        return "These are the images that the model was fine-tuned on" if same else None
    number = sum(digest.hex() in model.known_images for digest in images.image_digests)
    return (
        f"{number} of {counted(len(images), 'image')} had a part in the fine-tuning (training or validation)"
        if number
        else None
    )


def is_of_run(images: ImageRows, model: SavedModel) -> bool:
    """Whether the images are the test images of the fine-tuning, or had a part in it, all of them."""
    if model.known_images is not None and all(digest.hex() in model.known_images for digest in images.image_digests):
        return True
    return fingerprint_of_tested(images, np.arange(len(images))) == model.facts.test_fingerprint


def _classes(images: ImageRows, targets: Targets, facts: Answering) -> KnownTargets:
    if not task_of(targets).partitions:
        return KnownTargets(
            warnings=("The data have several labels per image and the model gives one, so nothing is measured.",)
        )
    place = {name: index for index, name in enumerate(facts.class_names)}
    of_label = np.asarray([place.get(name, _UNKNOWN) for name in images.class_names])
    unknown = [name for name in images.class_names if name not in place]
    names = tuple(images.class_names[int(target)] for target in targets)
    if len(unknown) == len(images.class_names):
        text = (
            f"None of the classes of the data ({joined(unknown)}) is a class of the model ({joined(facts.class_names)})"
        )
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
    """Every metric with its interval on the images whose true class the model has; empty where none is known."""
    if known.targets is None:
        return []
    rows = (known.targets != _UNKNOWN).reshape(len(known.targets), -1).all(axis=1)
    found = evaluate_predictions(
        probabilities[rows],
        known.targets[rows],
        task=recorded_task(facts),
        class_names=facts.class_names,
        groups=None if groups is None else groups[rows],
        thresholds=thresholds_of(facts),
    )
    return metric_records(found, split=MEASURED_ON)
