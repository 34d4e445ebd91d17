"""Any number of labels per image."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy
from jaxtyping import Bool, Float, Float64

from crossgraft.errors import DataError
from crossgraft.tasks._task import (
    DEFAULT_THRESHOLD,
    Decisions,
    Logits,
    Marks,
    Probabilities,
    Task,
    Thresholds,
    checked_thresholds,
)
from crossgraft.tasks.multi_class import OF_THEIR_OWN
from crossgraft.types import Targets


class MultiLabelTask(Task):
    """Every image has any number of labels, or none: questions beside each other."""

    name = "multi-label"
    recorded = "multi-label"
    noun, nouns, of, among = "label", "labels", "with", "with"
    heading = "Labels"
    activation = "sigmoid"
    usual_loss = "multi_label"
    primary_metric = "auc"  # labels are rare
    fewest_classes = 1
    partitions = False
    largest_squared_error = 1.0
    default_decision = f"every label from probability {DEFAULT_THRESHOLD} on"
    surest = "Certainty of the least certain label"

    def marks(self, targets: Targets, num_classes: int) -> Marks:
        """As they are."""
        return targets.astype(bool)

    def members(self, targets: Targets, index: int) -> Bool[np.ndarray, " num_samples"]:
        """Images with this label."""
        return targets[:, index] == 1

    def names_of(self, target: np.ndarray | np.integer, class_names: Sequence[str]) -> list[str]:
        """All names; empty without a label."""
        return [class_names[int(column)] for column in np.flatnonzero(target)]

    def refuse_useless(self, targets: Targets, class_names: Sequence[str], data: str) -> None:
        """Refuse labels that no image has, and a label for each image."""
        counts = targets.sum(axis=0)
        if not counts.any():
            raise DataError(f"None of the {len(targets)} images of {data} has any label. Choose other label columns.")
        if len(class_names) > 2 and (counts == 1).all() and (targets.sum(axis=1) <= 1).all():
            raise DataError(OF_THEIR_OWN.format(number=len(targets), data=data))

    def probabilities(self, logits: Logits, temperature: float | None = None) -> Float64[np.ndarray, "n c"]:
        """Sigmoid of every label."""
        return scipy.special.expit(logits.astype(np.float64) / (1.0 if temperature is None else temperature))

    def likelihood_slope(self, logits: Logits, targets: Targets) -> Callable[[float], float]:
        """For all labels of an image, and their absence."""
        signed = np.where(targets == 1, logits, -logits)

        def slope(inverse: float) -> float:
            return float(-(scipy.special.expit(-inverse * signed) * signed).sum(axis=1).mean())

        return slope

    def threshold_columns(self, num_classes: int) -> list[int]:
        """Every label."""
        return list(range(num_classes))

    def decide(self, probabilities: Probabilities, thresholds: Thresholds | None = None) -> Decisions:
        """Every label that reaches its own threshold."""
        return (probabilities >= checked_thresholds(thresholds, *probabilities.shape)).astype(np.int64)

    def decision_in_words(self, class_names: Sequence[str], *, fitted: bool) -> str:
        """By the thresholds, or by 0.5."""
        return f"every label whose probability reaches {'its threshold' if fitted else DEFAULT_THRESHOLD}"

    def certainty(self, probabilities: Probabilities) -> Float[np.ndarray, " num_samples"]:
        """The least distance of a probability from 0.5, times two."""
        return np.abs(2 * probabilities - 1).min(axis=1)

    def lowest_certainty(self, num_classes: int) -> float:
        """A label may be as probable as not."""
        return 0

    def shares_right(self, decisions: Decisions, targets: Targets) -> np.ndarray:
        """Share of the labels that are right."""
        return (decisions == targets).mean(axis=1)

    def confidences(
        self, probabilities: Probabilities, targets: Targets
    ) -> list[tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]]:
        """The probability of each label."""
        return list(zip(probabilities.T, targets.astype(bool).T, strict=True))

    def wrong_answers(self, probabilities: Probabilities, decisions: Decisions, targets: Targets) -> Float[np.ndarray, "n c"]:
        """The probability of each label that was wrongly given, or that a label is absent which was wrongly left out."""
        stated = np.where(decisions == 1, probabilities, 1.0 - probabilities)
        return np.where(decisions != targets, stated, np.nan)

    def chances(self, probabilities: Probabilities, truth: Marks) -> Float[np.ndarray, "n c"]:
        """The probability of each label where it is there, of its absence where not."""
        return np.where(truth, probabilities, 1.0 - probabilities)

    def squared_error(self, squares: Float[np.ndarray, "n c"]) -> Float[np.ndarray, " n"]:
        """The mean over the labels."""
        return squares.mean(axis=1)
