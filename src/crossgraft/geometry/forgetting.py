"""What a body still knows: accuracy of a linear probe on images that fine-tuning was not about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from pydantic import Field, InstanceOf

from crossgraft.data import Dataset
from crossgraft.errors import DataError, UsageError
from crossgraft.geometry._inputs import BATCH_SIZE, Network, NetworkImages, features_of, finite_features
from crossgraft.geometry.record import ForgettingRecord, ProbeRow
from crossgraft.metrics import Accuracy, accuracy, accuracy_difference
from crossgraft.progress import Reporter
from crossgraft.statistics import Estimate
from crossgraft.types import Groups

Features = Float[np.ndarray, "num_images num_features"]


@dataclass(frozen=True)
class ProbedBody:
    """One body.

    Attributes:
        accuracy: Accuracy of its probe on the test images, with an interval.
        correct: Whether each test image is right.
        difference: Its accuracy minus that of the reference on the same images, with an interval; None of the reference itself.
    """

    accuracy: Accuracy
    correct: Bool[np.ndarray, " num_test"]
    difference: Estimate | None


class Forgetting(ForgettingRecord):
    """What several bodies know of other images, with what no file holds: each probe and the images that it is right about."""

    bodies: dict[str, InstanceOf[ProbedBody]] = Field(exclude=True, description="Name → its probe.")


def forgetting(
    networks: Mapping[str, Network],
    train: Dataset,
    test: Dataset,
    *,
    reference: str | None = None,
    batch_size: int = BATCH_SIZE,
    reporter: Reporter | None = None,
) -> Forgetting:
    """Fit a linear probe to each body on ``train``, and compare them on ``test``, image by image.

    The probe is logistic regression (C = 1) on standardised penultimate features, so that scales do not matter. A body that
    fine-tuning has made forget tells less of other images than the one before; a difference below 0 is what was forgotten.

    Args:
        networks: Name → classifier or backbone.
        train: Images of other data, with one class each.
        test: Other images of the same classes; groups make intervals those of patients.
        reference: Name of the body before fine-tuning; the first where none is given.
        batch_size: Images at once.
        reporter: Reporter of progress.

    Raises:
        UsageError: There is no network, the reference is none of them, or images have several labels.
        DataError: Too few images, only one class, other classes in both parts, or features that are not finite.
        NotApplicable: All test images belong to one group.

    Cost: a forward pass per image and network, and a logistic regression each.

    Source: RepSim claims that features are kept, and shows accuracy on the new task alone.
    """
    _refuse(networks, train, test)
    fit: dict[str, Features] = {}
    seen: dict[str, Features] = {}
    stages = reporter or Reporter(quiet=True)
    with stages.stage(f"Reading features of {train.name}", total=len(networks), unit="networks") as stage:
        for name, network in networks.items():
            fit[name], seen[name] = (
                features_of(network, NetworkImages(part, network), batch_size=batch_size) for part in (train, test)
            )
            stage.advance()
    return forgetting_of_features(
        fit, seen, train.targets, test.targets, groups=test.groups, reference=reference, data=train.name
    )


def forgetting_of_features(
    train: Mapping[str, Features],
    test: Mapping[str, Features],
    train_classes: np.ndarray,
    test_classes: np.ndarray,
    *,
    groups: Groups | None = None,
    reference: str | None = None,
    data: str = "other images",
) -> Forgetting:
    """``forgetting`` of features that are there already: name → (n, d) of both parts, of images called ``data``.

    Raises:
        UsageError: There is none, or the reference is none of them.
        DataError: As ``forgetting``.
    """
    if not train or (reference is not None and reference not in train):
        raise UsageError(f"The reference {reference} is none of the bodies: {', '.join(train) or 'there is none'}.")
    if len(np.unique(train_classes)) < 2:
        raise DataError("A probe needs images of two classes or more to fit to; all have the same.")
    reference = next(iter(train)) if reference is None else reference
    counts = np.unique(train_classes, return_counts=True)
    common = counts[0][counts[1].argmax()]
    right = {name: probe_is_right(rows, test[name], train_classes, test_classes, name=name) for name, rows in train.items()}
    bodies: dict[str, ProbedBody] = {}
    rows: list[ProbeRow] = []
    for name, is_right in right.items():
        own = accuracy(is_right, groups)
        change = None if name == reference else accuracy_difference(is_right, right[reference], groups)
        bodies[name] = ProbedBody(own, is_right, change)
        difference, _, low, high = change or (None,) * 4
        rows.append(
            ProbeRow(
                network=name,
                accuracy=own.value,
                low=own.low,
                high=own.high,
                difference=difference,
                difference_low=low,
                difference_high=high,
            )
        )
    return Forgetting(
        data=data,
        reference=reference,
        num_train=len(train_classes),
        num_test=len(test_classes),
        num_groups=bodies[reference].accuracy.num_groups,
        majority=float((test_classes == common).mean()),
        rows=rows,
        bodies=bodies,
    )


def probe_is_right(
    train: Features, test: Features, train_classes: np.ndarray, test_classes: np.ndarray, *, name: str = "the body"
) -> Bool[np.ndarray, " num_test"]:
    """Whether a linear probe of ``train`` is right about each image of ``test``.

    Raises:
        DataError: Features are not finite, or as many as other classes.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    for part, classes in ((train, train_classes), (test, test_classes)):
        if len(finite_features(part, name)) != len(classes):
            raise DataError(f"Features of {name} are those of {len(part)} images, classes of {len(classes)}; they must match.")
    scaler = StandardScaler().fit(train.astype(np.float64))
    probe = LogisticRegression(max_iter=2000).fit(scaler.transform(train.astype(np.float64)), train_classes)
    return np.asarray(probe.predict(scaler.transform(test.astype(np.float64))) == test_classes)


def _refuse(networks: Mapping[str, Network], train: Dataset, test: Dataset) -> None:
    if not networks:
        raise UsageError("There is no body to probe. Give one before fine-tuning, and those after it.")
    if not (train.task.partitions and test.task.partitions):
        raise UsageError(f"A probe needs one class per image; {train.name} has several labels per image. Choose other data.")
    if tuple(train.class_names) != tuple(test.class_names):
        raise DataError(
            f"The probe is fitted to the classes {', '.join(train.class_names)} and tested on {', '.join(test.class_names)}; "
            "they must be the same."
        )
