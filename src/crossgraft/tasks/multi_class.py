"""One of several classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy
from jaxtyping import Bool, Float, Float64

from crossgraft.errors import DataError
from crossgraft.tasks._task import Decisions, Logits, Marks, Probabilities, Task, Thresholds, checked_thresholds
from crossgraft.types import Targets


class MultiClassTask(Task):
    """Every image is of exactly one class."""

    name = "multi-class"
    recorded = "multi-class"
    noun, nouns, of, among = "class", "classes", "of", "in"
    heading = "Tells apart"
    activation = "softmax"
    usual_loss = "cross_entropy"
    primary_metric = "balanced_accuracy"  # does not reward naming the frequent class
    fewest_classes = 2
    partitions = True
    largest_squared_error = 2.0
    default_decision = "the most probable class"
    surest = "Probability of the most probable class"

    def marks(self, targets: Targets, num_classes: int) -> Marks:
        """One-hot."""
        return targets.astype(np.int64)[:, None] == np.arange(num_classes)

    def members(self, targets: Targets, index: int) -> Bool[np.ndarray, " num_samples"]:
        """Images of this class."""
        return targets == index

    def names_of(self, target: np.ndarray | np.integer, class_names: Sequence[str]) -> list[str]:
        """The one name."""
        return [class_names[int(target)]]

    def refuse_useless(self, targets: Targets, class_names: Sequence[str], data: str) -> None:
        """Refuse a single class, and a class for each image."""
        if len(class_names) < self.fewest_classes:
            raise DataError(
                f"All {len(targets)} images of {data} have the class {', '.join(class_names)}. At least two classes are "
                "needed to compare models."
            )
        if self.names_every_image(len(targets), len(class_names)):
            raise DataError(OF_THEIR_OWN.format(number=len(targets), data=data))

    def check_predictions(self, probabilities: Probabilities, targets: Targets, num_classes: int) -> None:
        """As of every task; rows must sum to 1."""
        super().check_predictions(probabilities, targets, num_classes)
        if not np.allclose(probabilities.sum(axis=1), 1, atol=1e-3):
            raise DataError("The probabilities of the classes of an image must sum to 1; some rows do not.")

    def probabilities(self, logits: Logits, temperature: float | None = None) -> Float64[np.ndarray, "n c"]:
        """Softmax."""
        return scipy.special.softmax(logits.astype(np.float64) / (1.0 if temperature is None else temperature), axis=1)

    def likelihood_slope(self, logits: Logits, targets: Targets) -> Callable[[float], float]:
        """For the true classes: mean_i (E_p[z] − z_y)."""
        true = logits[np.arange(len(logits)), targets]

        def slope(inverse: float) -> float:
            return float(np.mean((scipy.special.softmax(inverse * logits, axis=1) * (logits - true[:, None])).sum(axis=1)))

        return slope

    def threshold_columns(self, num_classes: int) -> list[int]:
        """None: the largest probability decides."""
        return []

    def decide(self, probabilities: Probabilities, thresholds: Thresholds | None = None) -> Decisions:
        """The most probable class, the first of equal ones; thresholds are refused."""
        if thresholds is not None:
            raise DataError("One class of several is decided by the largest probability; leave the thresholds out.")
        return probabilities.argmax(axis=1)

    def decision_in_words(self, class_names: Sequence[str], *, fitted: bool) -> str:
        """The most probable class."""
        return self.default_decision

    def certainty(self, probabilities: Probabilities) -> Float[np.ndarray, " num_samples"]:
        """The largest probability."""
        return probabilities.max(axis=1)

    def lowest_certainty(self, num_classes: int) -> float:
        """All classes equally probable."""
        return 1 / num_classes

    def shares_right(self, decisions: Decisions, targets: Targets) -> np.ndarray:
        """Right or wrong."""
        return decisions == targets

    def confidences(
        self, probabilities: Probabilities, targets: Targets
    ) -> list[tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]]:
        """The largest probability, and whether its class is the true one."""
        return [(probabilities.max(axis=1), probabilities.argmax(axis=1) == targets)]

    def wrong_answers(self, probabilities: Probabilities, decisions: Decisions, targets: Targets) -> Float[np.ndarray, "n c"]:
        """The probability of the class that was decided for, where it is not the true one."""
        is_wrong = self.marks(decisions, probabilities.shape[1]) & (decisions != targets)[:, None]
        return np.where(is_wrong, probabilities, np.nan)

    def chances(self, probabilities: Probabilities, truth: Marks) -> Float[np.ndarray, "n 1"]:
        """The probability of the true class."""
        return np.where(truth, probabilities, 0.0).sum(axis=1, keepdims=True)

    def squared_error(self, squares: Float[np.ndarray, "n c"]) -> Float[np.ndarray, " n"]:
        """The sum over the classes, as Brier wrote it."""
        return squares.sum(axis=1)


OF_THEIR_OWN = (
    "Each of the {number} images of {data} has a label of its own, so the labels look like numbers or names of images, not "
    "classes. Choose other labels (--label-column)."
)


class BinaryTask(MultiClassTask):
    """Every image is of one of two classes; the last one is the positive one."""

    name = "binary"
    is_question = True
    largest_squared_error = 1.0

    def check_predictions(self, probabilities: Probabilities, targets: Targets, num_classes: int) -> None:
        """As of classes; there must be two of them."""
        if num_classes != 2:
            raise DataError(f"binary means two classes; there are {num_classes}.")
        super().check_predictions(probabilities, targets, num_classes)

    def threshold_columns(self, num_classes: int) -> list[int]:
        """The positive class."""
        return [num_classes - 1]

    def curve_columns(self, num_classes: int) -> list[int]:
        """The positive class; the curve of the other one is its mirror image."""
        return self.threshold_columns(num_classes)

    def decide(self, probabilities: Probabilities, thresholds: Thresholds | None = None) -> Decisions:
        """The last class where its probability is at least the threshold."""
        limits = checked_thresholds(thresholds, len(probabilities), 1)
        return (probabilities[:, -1] >= limits[..., 0]).astype(np.int64)

    def decision_in_words(self, class_names: Sequence[str], *, fitted: bool) -> str:
        """By the threshold where there is one."""
        if not fitted:
            return self.default_decision
        return f"{class_names[-1]} where its probability reaches its threshold, else {class_names[0]}"

    def asked_scores(self, probabilities: Probabilities) -> np.ndarray:
        """(n,) of the positive class."""
        return probabilities[:, 1]

    def asked_decisions(self, decisions: Decisions) -> np.ndarray:
        """(n, 1) 1 for the positive class."""
        return decisions[:, None]

    def squared_error(self, squares: Float[np.ndarray, "n c"]) -> Float[np.ndarray, " n"]:
        """That of the positive class: both columns have the same."""
        return squares.mean(axis=1)


class OrdinalTask(MultiClassTask):
    """One of several classes whose order has a meaning: a multi-class task, and it says so.

    No loss, metric or score uses the order yet; reports name it.
    """

    in_order = True


class OrdinalBinaryTask(BinaryTask):
    """One of two classes in an order: the question whether it is the higher one."""

    in_order = True
