"""One of two classes: a question about the last of them, with a threshold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from crossgraft.errors import DataError
from crossgraft.tasks._task import Decisions
from crossgraft.tasks._thresholds import Probabilities, Thresholds, checked_thresholds
from crossgraft.tasks.multi_class import MultiClassTask
from crossgraft.types import Targets


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
