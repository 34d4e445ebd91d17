"""What every head has in common: it learns from the features of a support set, and names the class of a query.

A head is a scikit-learn classifier and a dataclass whose fields are its options.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from crossgraft.choice import as_array
from crossgraft.compute import reuse_freed_memory
from crossgraft.errors import CrossgraftWarning, DataError, DivergedError, UsageError
from crossgraft.types import Features, Labels

RATES = {"seen": 0.1, "unseen": 1.0}
"""Learning rates of Adadelta in URL and TSA: for a domain that the backbone was trained on, and for any other."""
NOTABLE_RISE = 0.01
"""In units of the loss, a mean cross-entropy: less is noise of a training that had nothing to learn."""


def refuse_rows(rows: Tensor) -> None:
    """Refuse features with NaN, an infinite value, or a length that overflows their number type; the first row is named."""
    lengths = torch.linalg.vector_norm(rows, dim=1)
    if bool(lengths.isfinite().all()):
        return
    refuse_values(rows)
    first = int((~lengths.isfinite()).nonzero()[0])
    kind = str(rows.dtype).removeprefix("torch.")
    raise DataError(
        f"Row {first} of the features is so long that its length overflows {kind}: its largest value is "
        f"{float(rows[first].abs().max()):.3g}. Divide all features by one number, or pass them as float64."
    )


def refuse_values(values: Tensor, *, name: str = "Row") -> None:
    """Refuse NaN and infinite values in (n, …), of which one is called ``name``; the first of the n is named."""
    finite = values.isfinite().flatten(1).all(dim=1)
    bad = (~finite).nonzero()[:, 0]
    if len(bad):
        raise DataError(
            f"{name} {int(bad[0])} holds NaN or infinite (inf) values, the first of {len(bad)} of {len(values)}. Leave these "
            "out, or find where the values come from."
        )


def refuse_losses(head: str, losses: Sequence[float]) -> None:
    """Refuse a training that left the finite numbers, by the losses before each step; the first such step is named."""
    first = next((number for number, loss in enumerate(losses, start=1) if not math.isfinite(loss)), None)
    if first == 1:
        raise DivergedError(
            f"The loss of {head} is not finite before anything was learned: the features are too large. Scale them."
        )
    if first is not None:
        raise DivergedError(
            f"The training of {head} diverged: its loss is not finite before step {first}. Lower "
            "learning_rate, or scale the features."
        )


def warn_of_rise(head: str, losses: Sequence[float]) -> None:
    """Tell of a training that ended with a larger loss on its own images than it began with."""
    if losses and losses[-1] > losses[0] + NOTABLE_RISE:
        warnings.warn(
            f"The loss of {head} on the support set ended above where it began: the learning rate is too large for this "
            "network and these images. Lower learning_rate.",
            CrossgraftWarning,
            stacklevel=3,
        )


def refuse_logits(head: str, logits: Tensor, *, is_trained: bool) -> None:
    """Refuse logits (m, C) from which no class follows; the first row is named, and the learning rate of a head that has one."""
    bad = (~logits.isfinite().all(dim=1)).nonzero()[:, 0]
    if len(bad):
        why = "its training diverged, or the features are" if is_trained else "the features are"
        raise DivergedError(
            f"{head} gives no finite numbers for {len(bad)} of {len(logits)} queries (the first: row {int(bad[0])}): {why} too "
            f"large. {'Lower learning_rate, or scale' if is_trained else 'Scale'} the features."
        )


def logits_for(head: str, logits: object, shape: tuple[int, int]) -> Tensor:
    """The logits that a head gave: of another shape, they would name classes that nobody asked for.

    Raises:
        UsageError: They do not have this shape.
    """
    if not isinstance(logits, Tensor) or logits.shape != shape:
        found = f"a tensor of shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else f"a {type(logits).__name__}"
        raise UsageError(f"{head} gave {found} as logits, not a tensor of shape {shape}: queries and classes. Mend it.")
    return logits


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

    def check_numbers(self, *options: str, least: float = 0, above: bool = False) -> None:
        """Refuse options that are not finite numbers of at least ``least``, or above it."""
        for option in options:
            check_number(option, self.name, getattr(self, option), least=least, above=above)

    def check_counts(self, *options: str) -> None:
        """Refuse options that are not whole numbers of at least 0."""
        for option in options:
            check_count(option, self.name, getattr(self, option))

    def check_seed(self) -> None:
        """Refuse a seed that is not a whole number between 0 and 2**63 - 1; numpy's whole numbers are some."""
        value: object = getattr(self, "seed", 0)
        if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < 2**63:
            raise UsageError(f"seed of {self.name} must be a whole number between 0 and 2**63 - 1, got {value!r}.")

    def check_rate(self, rate: object) -> None:
        """Refuse a learning rate that is neither a name of ``RATES`` nor a number above 0."""
        if not isinstance(rate, str):
            check_number("learning_rate", self.name, rate, least=0, above=True)
        elif rate not in RATES:
            raise UsageError(f"learning_rate of {self.name} must be a number, seen or unseen, got {rate!r}.")

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
            raise DataError(f"{type(self).__name__} needs images of at least two classes; found one class: {self.classes_[0]}.")
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
        return logits_for(self.name, self.logits_of(tensor), (len(tensor), len(self.classes_)))

    def _checked(self, support: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
        validated, classes = self._validated(support, labels, ensure_min_samples=2)
        rows = _writable(validated)
        refuse_rows(torch.from_numpy(rows))
        self._dtype = torch.float64 if rows.dtype == np.float64 else torch.float32
        return rows, classes

    def _validated(self, *data: Any, **options: Any) -> Any:
        """What scikit-learn checks of data, but not for NaN, of which heads name the row."""
        plain: list[Any] = [as_array(each) if isinstance(each, Tensor) else each for each in data]
        try:
            checked: Any = validate_data(self, *plain, dtype=(np.float64, np.float32), ensure_all_finite=False, **options)
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


# Unit-length rows, class means, and the gradients through them that heads share.
#
# Notation of URL and CoPA: rows are images, u(Z) = Z / ‖row‖₂, and a linear head W has no bias, Z = X Wᵀ.

Prototypes = Float[Tensor, "num_classes width"]
Weights = Float[Tensor, "width_out width"]

COSINE_SCALE = 10.0
"""What the cosines are multiplied by before a softmax, in all of the sources."""
_SHORTEST = 1e-12


class UnitRows(NamedTuple):
    """u(Z), and the lengths (n, 1) that Z was divided by."""

    rows: Rows
    lengths: Float[Tensor, "rows 1"]


def unit_rows(rows: Rows, *, out: Rows | None = None) -> UnitRows:
    """Each row divided by its length, or by 1e-12 if it is shorter; written to ``out``, which may be ``rows`` itself.

    A row whose length overflows becomes NaN, which heads refuse: divided by infinity it would be as near to every class.
    """
    lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp_min(_SHORTEST)
    lengths = lengths.masked_fill(lengths.isinf(), math.nan)
    return UnitRows(torch.div(rows, lengths, out=out), lengths)


def through_unit_rows(unit: UnitRows, gradient: Rows) -> Rows:
    """∂L/∂Z from ∂L/∂u(Z), in its place: what is left of it at right angles to the row, over the length."""
    along = torch.linalg.vecdot(unit.rows, gradient)[:, None]
    return gradient.addcmul_(unit.rows, along, value=-1).div_(unit.lengths)


class Members(NamedTuple):
    """Which images belong to which class.

    Attributes:
        classes: (n,) class of each image.
        counts: (C,) n_c, images of each class.
    """

    classes: Classes
    counts: Float[Tensor, " num_classes"]

    @classmethod
    def of(cls, classes: Classes, num_classes: int, like: Tensor) -> Members:
        """In the number type of ``like``."""
        return cls(classes, torch.bincount(classes, minlength=num_classes).to(like.dtype))

    def means(self, rows: Rows) -> Prototypes:
        """P = diag(1/n_c) Yhᵀ X: mean of the raw rows of each class."""
        sums = rows.new_zeros(len(self.counts), rows.shape[1]).index_add_(0, self.classes, rows)
        return sums.div_(self.counts[:, None])

    def expand(self, prototypes: Prototypes) -> Rows:
        """Yh P: the prototype of each image."""
        return prototypes.index_select(0, self.classes)

    def of_own(self, similarities: Logits) -> Float[Tensor, "rows 1"]:
        """What each image has with its own class."""
        return similarities.gather(1, self.classes[:, None])

    def less_own(self, matrix: Logits, amount: float) -> Logits:
        """Matrix − amount · Yh, in place."""
        less = matrix.new_full((len(matrix), 1), -amount)
        return matrix.scatter_add_(1, self.classes[:, None], less)


def scaled_cosines(query: Rows, prototypes: Prototypes) -> Logits:
    """10 · S(Q, P)."""
    return COSINE_SCALE * cosines(unit_rows(query), unit_rows(prototypes))


def cosines(rows: UnitRows, prototypes: UnitRows) -> Logits:
    """S, (n, C); the product with few rows in front is the faster one."""
    return (prototypes.rows @ rows.rows.T).T


IDENTITY, RANDOM = "identity", "random"


def starting_weights(init: str, like: Tensor, generator: torch.Generator) -> Weights:
    """W (d, d): the identity, or independent normal numbers of variance 1/d, which keep lengths on average."""
    width = like.shape[1]
    if init == IDENTITY:
        return torch.eye(width, dtype=like.dtype)
    return (torch.randn(width, width, generator=generator, dtype=torch.float64) / math.sqrt(width)).to(like.dtype)


def check_number(name: str, head: str, value: object, *, least: float, above: bool = False) -> None:
    """Refuse what is not a finite number of at least ``least``, or above it."""
    number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    if not math.isfinite(number) or number < least or (above and number == least):
        bound = f"above {least:g}" if above else f"of at least {least:g}"
        raise UsageError(f"{name} of {head} must be a number {bound}, got {value!r}.")


def check_count(name: str, head: str, value: object) -> None:
    """Refuse what is not a whole number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise UsageError(f"{name} of {head} must be a whole number of at least 0, got {value!r}.")
