"""Predictions of the models, by their own head or by a linear probe, and whether two of them fail on the same images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crossgraft.compare.record import SharedMistakes
from crossgraft.data.rows import ImageRows
from crossgraft.metrics import share_of_images
from crossgraft.similarity import prediction_similarity

_ITERATIONS = 2000


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions of one model for the images that are looked at.

    Attributes:
        classes: Places in the classes of the data; None where there are none.
        reason: Reason that there are none.
        by_probe: Whether a linear probe made them.
    """

    classes: Int[np.ndarray, " num_images"] | None
    reason: str | None = None
    by_probe: bool = False


def own_predictions(
    name: str,
    class_names: tuple[str, ...] | None,
    logits: Float[np.ndarray, "num_images num_outputs"] | None,
    images: ImageRows,
) -> Predicted:
    """What the head of a model says; the classes of the model and of the data must be the same, in any order."""
    if not images.task.partitions:
        return Predicted(None, "images have several labels each")
    if class_names is None or logits is None:
        return Predicted(None, f"{name} has no head for these classes (--linear-probe trains one on its features)")
    if set(class_names) != set(images.class_names):
        return Predicted(
            None,
            f"{name} tells {', '.join(class_names)} apart, and these images are {', '.join(images.class_names)}",
        )
    places = np.array([images.class_names.index(each) for each in class_names])
    return Predicted(places[logits.argmax(axis=1)])


def probe_predictions(
    train: Float[np.ndarray, "num_train num_features"],
    targets: Int[np.ndarray, " num_train"],
    test: Float[np.ndarray, "num_images num_features"],
) -> Predicted:
    """Logistic regression on standardised features of the training images.

    Source: none of the thesis, whose released code has no predictions before fine-tuning.
    """
    if len(np.unique(targets)) < 2:
        return Predicted(None, "the training images are of one class, so no linear probe can be trained")
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=_ITERATIONS))
    return Predicted(probe.fit(train, targets).predict(test), by_probe=True)


def shared_mistakes(
    one: Predicted, other: Predicted, targets: Int[np.ndarray, " num_images"], groups: np.ndarray | None
) -> tuple[SharedMistakes | None, str | None]:
    """Prediction similarity, or why there is none."""
    if one.classes is None or other.classes is None:
        return None, one.reason or other.reason
    found = prediction_similarity(one.classes, other.classes, targets)
    of_images = share_of_images((one.classes != targets) == (other.classes != targets), groups)
    return (
        SharedMistakes(
            num_images=found.n,
            value=float(found),
            low=of_images.low,
            high=of_images.high,
            no_interval_reason=of_images.note,
            accuracy=found.accuracy_a,
            other_accuracy=found.accuracy_b,
            independent=found.independent,
            independent_low=found.low,
            independent_high=found.high,
            p_value=found.p_value,
            kappa=found.kappa,
            agreement=found.agreement,
            by_probe=one.by_probe or other.by_probe,
        ),
        None,
    )
