"""What every task answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Float, Float64

from crossgraft.errors import DataError
from crossgraft.types import ClassIndices, RecordedTask, Targets, TaskName

Probabilities = Float[np.ndarray, "num_samples num_classes"]
Thresholds = float | Sequence[float] | Float[np.ndarray, " num_labels"] | Float[np.ndarray, "num_samples num_labels"]
DEFAULT_THRESHOLD = 0.5


def checked_thresholds(
    thresholds: Thresholds | None, num_images: int, num_labels: int
) -> Float64[np.ndarray, " _"] | Float64[np.ndarray, "num_samples num_labels"]:
    """One threshold for all, one per label, or one per image and label.

    Raises:
        DataError: Another number of them, or one that is no number.
    """
    limits = np.atleast_1d(np.asarray(DEFAULT_THRESHOLD if thresholds is None else thresholds, dtype=np.float64))
    fits = len(limits) in (1, num_labels) if limits.ndim == 1 else limits.shape == (num_images, num_labels)
    if not fits or not np.isfinite(limits).all():
        raise DataError(f"Give one threshold, or one for each of {num_labels} labels; got {limits.tolist()}.")
    return limits


Decisions = Targets
Logits = Float[np.ndarray, "num_samples num_classes"]
Marks = Bool[np.ndarray, "num_samples num_classes"]


class Task(str, ABC):
    """What is to be predicted for an image. The value, as text, is its name.

    Targets are one class per image (n,), or 0 and 1 for every label (n, L); training always sees a matrix (n, C).

    Attributes:
        name: Name as losses declare it.
        recorded: Name in records, which do not tell two classes from more.
        noun: Word for one class or label.
        nouns: The plural.
        of: Preposition of "images of the class", "images with the label".
        among: Preposition of "images in each class", "images with each label".
        heading: Heading of a list of the classes or labels.
        activation: Function that makes probabilities of logits.
        usual_loss: Name of the loss that is meant where none is chosen.
        primary_metric: Name of the metric that headlines are about.
        fewest_classes: Number of classes below which there is nothing to learn.
        partitions: Whether every image is in exactly one class, so that class sizes add up to the number of images.
        in_order: Whether the order of the classes has a meaning.
        is_question: Whether all is said by one question: is it the last class?
        largest_squared_error: Upper bound of ``squared_error``.
        default_decision: Decision without fitted thresholds, in words.
        surest: What ``certainty`` is, in words.
    """

    name: ClassVar[TaskName]
    recorded: ClassVar[RecordedTask]
    noun: ClassVar[str]
    nouns: ClassVar[str]
    of: ClassVar[str]
    among: ClassVar[str]
    heading: ClassVar[str]
    activation: ClassVar[Literal["softmax", "sigmoid"]]
    usual_loss: ClassVar[str]
    primary_metric: ClassVar[str]
    fewest_classes: ClassVar[int]
    partitions: ClassVar[bool]
    in_order: ClassVar[bool] = False
    is_question: ClassVar[bool] = False
    largest_squared_error: ClassVar[float]
    default_decision: ClassVar[str]
    surest: ClassVar[str]

    def __new__(cls, _name: str = "") -> Task:
        """The name comes from the class; a pickle gives it again."""
        return super().__new__(cls, cls.name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def num_outputs(self, num_classes: int) -> int:
        """Outputs of the head: one per class or label, of two classes two."""
        return num_classes

    @abstractmethod
    def marks(self, targets: Targets, num_classes: int) -> Marks:
        """Targets as a matrix, one column per class or label."""

    @abstractmethod
    def members(self, targets: Targets, index: int) -> Bool[np.ndarray, " num_samples"]:
        """Whether each image is of this class (has this label)."""

    @abstractmethod
    def names_of(self, target: np.ndarray | np.integer, class_names: Sequence[str]) -> list[str]:
        """Names of the class, or of all labels, of one image."""

    def classes_of_scores(self, targets: Targets) -> ClassIndices | None:
        """What a score of ``rank`` sees of all images at once; None where it sees one label at a time."""
        return targets if self.partitions else None

    def views(self, targets: Targets) -> list[ClassIndices]:
        """What can be answered by itself: the classes, or each label."""
        return [targets] if self.partitions else list(targets.T)

    def present(self, targets: Targets, num_classes: int) -> list[int]:
        """Classes with an image; all labels, because an image without one is a negative example."""
        return [index for index in range(num_classes) if not self.partitions or index in targets]

    def names_every_image(self, num_images: int, num_classes: int) -> bool:
        """Whether each image has a class of its own, as names of images would be."""
        return self.partitions and num_classes == num_images > 2

    @abstractmethod
    def refuse_useless(self, targets: Targets, class_names: Sequence[str], data: str) -> None:
        """Raise for targets that no model can be compared with; ``data`` is the name of the data.

        Raises:
            DataError: There is nothing to tell apart, or every image has a class or label of its own.
        """

    def target_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of the targets that belong to logits or probabilities of ``shape``."""
        return shape[:1] if self.partitions else shape

    def check_predictions(self, probabilities: Probabilities, targets: Targets, num_classes: int) -> None:
        """Raise for what is not n rows of C probabilities with their targets.

        Raises:
            DataError: No image, shapes that do not match, or numbers that are no probabilities or no targets.
        """
        shape, expected = probabilities.shape, self.target_shape((len(probabilities), num_classes))
        if len(probabilities) == 0 or shape[1] != num_classes or targets.shape != expected:
            raise DataError(
                f"{self} predictions of {num_classes} classes are (n, {num_classes}) with n ≥ 1 and targets {expected}; got "
                f"{shape} and {targets.shape}."
            )
        if not ((probabilities >= 0) & (probabilities <= 1)).all():
            raise DataError("Probabilities must be in [0, 1]; pass them after softmax or sigmoid, not logits.")
        largest = num_classes - 1 if self.partitions else 1
        if targets.min() < 0 or targets.max() > largest:
            raise DataError(f"{self} targets must be whole numbers from 0 to {largest}; some are not.")

    @abstractmethod
    def probabilities(self, logits: Logits, temperature: float | None = None) -> Float64[np.ndarray, "n c"]:
        """(n, C) in double precision, of logits over the temperature."""

    @abstractmethod
    def likelihood_slope(self, logits: Logits, targets: Targets) -> Callable[[float], float]:
        """The derivative in β of the negative log-likelihood per image of logits times β, for fitting a temperature 1/β."""

    @abstractmethod
    def threshold_columns(self, num_classes: int) -> list[int]:
        """Columns that are decided for by a threshold of their own; none where the largest probability decides."""

    def curve_columns(self, num_classes: int) -> list[int]:
        """Columns with a ROC curve."""
        return list(range(num_classes))

    @abstractmethod
    def decide(self, probabilities: Probabilities, thresholds: Thresholds | None = None) -> Decisions:
        """Decisions in the form of targets.

        Raises:
            DataError: A wrong number of thresholds, or one that is no number.
        """

    @abstractmethod
    def decision_in_words(self, class_names: Sequence[str], *, fitted: bool) -> str:
        """How is decided, with or without fitted thresholds."""

    @abstractmethod
    def certainty(self, probabilities: Probabilities) -> Float[np.ndarray, " num_samples"]:
        """How sure each decision is, in [0, 1]."""

    @abstractmethod
    def lowest_certainty(self, num_classes: int) -> float:
        """Value that ``certainty`` cannot fall below."""

    def asked_scores(self, probabilities: Probabilities) -> np.ndarray:
        """Probabilities as rank metrics (AUC, average precision) take them."""
        return probabilities

    def asked_decisions(self, decisions: Decisions) -> np.ndarray:
        """Decisions or targets as the F1 score takes them."""
        return decisions

    @abstractmethod
    def shares_right(self, decisions: Decisions, targets: Targets) -> np.ndarray:
        """Share of each image that is right."""

    @abstractmethod
    def confidences(
        self, probabilities: Probabilities, targets: Targets
    ) -> list[tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]]:
        """Stated probabilities, and whether what they were stated of is true, once per question."""

    @abstractmethod
    def wrong_answers(
        self, probabilities: Probabilities, decisions: Decisions, targets: Targets
    ) -> Float[np.ndarray, "num_samples num_classes"]:
        """Stated probability of each answer that was given and is wrong, one column per class or label; nan elsewhere."""

    @abstractmethod
    def chances(self, probabilities: Probabilities, truth: Marks) -> Float[np.ndarray, "n _"]:
        """Probabilities of what was true, one column per question."""

    @abstractmethod
    def squared_error(self, squares: Float[np.ndarray, "n c"]) -> Float[np.ndarray, " n"]:
        """Brier's loss of each image from the squared error of each column."""


AnyTask = Task | TaskName
"""As public functions take it: the task, or its name."""
