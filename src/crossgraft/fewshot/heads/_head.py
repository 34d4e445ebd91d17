"""What every head has in common: it learns from the features of a support set, and names the class of a query.

A head is a scikit-learn classifier and a dataclass whose fields are its options.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from crossgraft.choice import as_array
from crossgraft.compute import reuse_freed_memory
from crossgraft.errors import CrossgraftWarning, DataError
from crossgraft.fewshot.heads._finite import refuse_logits, refuse_losses, refuse_rows
from crossgraft.types import Features, Labels

Rows = Float[Tensor, "rows width"]
Classes = Int[Tensor, " rows"]
Logits = Float[Tensor, "rows num_classes"]


@dataclass(eq=False, repr=False)
class Head(ClassifierMixin, BaseEstimator):
    """Base of all heads: ``adapt`` and ``logits_of`` are what a new one defines.

    float32 and float64 are kept as they come; any other type of number, float16 for example, becomes float64.

    Attributes:
        classes_: (C,) sorted labels of the support set.
        n_features_in_: Width of the features.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    reference: ClassVar[str]

    def adapt(self, support: Rows, classes: Classes, num_classes: int) -> None:
        """Learn from the support set; ``classes`` count from 0, and each has a row."""
        raise NotImplementedError

    def logits_of(self, query: Rows) -> Logits:
        """What the softmax of ``predict_proba`` takes; the first of the largest is predicted."""
        raise NotImplementedError

    def check(self) -> None:
        """Refuse options that are out of their range.

        Raises:
            UsageError: One is.
        """

    def fit(self, X: Features, y: Labels) -> Self:
        """Adapt to a support set.

        Args:
            X: (n, d) penultimate features of a frozen backbone, not normalised.
            y: (n,) labels of any type that sorts.

        Raises:
            DataError: NaN, arrays that do not belong together, or fewer than two classes.
            DivergedError: The loss is no longer a finite number.
            UsageError: An option is out of its range.
        """
        self.check()
        rows, labels = self._checked(X, y)
        self.classes_, classes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(
                f"{type(self).__name__} needs images of at least two classes; found one class: {self.classes_[0]}."
            )
        self._warn_of_zeros(rows)
        with reuse_freed_memory(), gradients_on():
            self.adapt(torch.from_numpy(rows), torch.from_numpy(classes), len(self.classes_))
        refuse_losses(self.name, getattr(self, "loss_curve_", []))
        return self

    def predict(self, X: Features) -> np.ndarray:
        """(m,) the most probable class of each row; of equally probable ones the first in ``classes_``.

        Raises:
            DivergedError: Logits are not finite.
            NotFittedError: ``fit`` was not called.
        """
        winners = self._finite_logits(X).argmax(dim=1).numpy()
        return self.classes_[winners]

    def predict_proba(self, X: Features) -> Float[np.ndarray, "num_samples num_classes"]:
        """(m, C) probability of each class, not calibrated, in the order of ``classes_``.

        Raises:
            DivergedError: Logits are not finite.
            NotFittedError: ``fit`` was not called.
        """
        return self._finite_logits(X).softmax(dim=1).numpy()

    def _finite_logits(self, query: Features) -> Logits:
        logits = self._logits(query)
        refuse_logits(self.name, logits, is_trained=hasattr(self, "learning_rate"))
        return logits

    def _logits(self, query: Features) -> Logits:
        check_is_fitted(self, "classes_")  # meta_fit leaves the number of features
        rows = self._validated(query, reset=False)
        tensor = torch.from_numpy(_writable(rows)).to(self._dtype)
        refuse_rows(tensor)
        return self.logits_of(tensor)

    def _checked(self, support: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
        found, classes = self._validated(support, labels, ensure_min_samples=2)
        rows = _writable(found)
        refuse_rows(torch.from_numpy(rows))
        self._dtype = torch.float64 if rows.dtype == np.float64 else torch.float32
        return rows, classes

    def _validated(self, *data: Any, **options: Any) -> Any:
        """What scikit-learn checks of data, but not for NaN, of which heads name the row."""
        plain: list[Any] = [as_array(each) if isinstance(each, Tensor) else each for each in data]
        try:
            checked: Any = validate_data(
                self, *plain, dtype=(np.float64, np.float32), ensure_all_finite=False, **options
            )
        except ValueError as error:
            raise DataError(str(error)) from error
        if len(data) > 1:
            _refuse_labels(checked[1])
        return checked

    def _warn_of_zeros(self, rows: np.ndarray) -> None:
        zeros = np.flatnonzero(~rows.any(axis=1))
        if len(zeros):
            warnings.warn(
                f"{len(zeros)} of {len(rows)} rows are all zeros (the first: {zeros[0]}), and have no direction: their "
                "cosine to anything counts as 0. Does the backbone see these images at all?",
                CrossgraftWarning,
                stacklevel=3,
            )


@contextmanager
def gradients_on() -> Generator[None]:
    """Inside the block training is possible, also where the caller has switched gradients off."""
    with torch.inference_mode(mode=False), torch.enable_grad():
        yield


def reads_images(head: object) -> bool:
    """Whether ``fit`` takes images instead of features; a classifier of scikit-learn takes features."""
    return bool(getattr(head, "reads_images", False))


def _refuse_labels(labels: np.ndarray) -> None:
    try:
        np.unique(labels)
        check_classification_targets(labels)
    except ValueError as error:
        raise DataError(str(error)) from error
    except TypeError as error:
        kinds = ", ".join(sorted({type(label).__name__ for label in labels}))
        raise DataError(
            f"Labels of several types, or without an order, cannot be sorted: {kinds}. Give all the same type; None is no label."
        ) from error


def _writable(rows: np.ndarray) -> np.ndarray:
    """Row by row in memory; a copy of what is mapped read-only, of which torch would warn."""
    return np.require(rows, requirements=["C", "W"])
