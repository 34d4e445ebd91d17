"""Whether two models fail on the same images."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool, Float64
from scipy.stats import hypergeom

from crossgraft.errors import DataError, NotApplicable
from crossgraft.similarity._features import Similarity

_MASS = 0.95


class PredictionSimilarity(Similarity):
    """P = P(both right or both wrong), with what independent mistakes would give.

    Attributes:
        accuracy_a: Accuracy of the first model.
        accuracy_b: Accuracy of the second.
        independent: a₁ a₂ + (1 − a₁)(1 − a₂): P if the two made their mistakes independently.
        kappa: (P − P_independent) / (1 − P_independent); None where both models are always right, or both always wrong.
        agreement: Share of images with the same prediction, right or wrong.
        low: Lower end of the central 95 % of P if mistakes were independent within folds.
        high: Its upper end.
        p_value: Probability of a P at least as large if mistakes were independent within folds.
    """

    accuracy_a: float
    accuracy_b: float
    independent: float
    kappa: float | None
    agreement: float
    low: float
    high: float
    p_value: float


def prediction_similarity(predictions_a: Any, predictions_b: Any, labels: Any, *, folds: Any = None) -> PredictionSimilarity:
    """P(1[f₁ wrong] = 1[f₂ wrong]) of eq. 3.2, beside what two models of these accuracies reach by independent mistakes.

    Two wrong predictions count as the same mistake also where they name different classes; ``agreement`` does not. The interval
    and the p-value are exact: they are those of all permutations of the mistakes of the second model within each fold.

    The released script of the thesis uses the accuracy of the first model twice in the baseline, and validation images.

    Args:
        predictions_a: (n,) predicted classes of the first model, as numbers or names.
        predictions_b: (n,) of the second, of the same images in the same order.
        labels: (n,) true classes.
        folds: (n,) fold of each image, where several models of a cross-validation are put together; None: one.

    Raises:
        DataError: The lengths differ, an entry is missing, or a prediction is no single class.
        NotApplicable: There are no images.

    Cost: n, and for each fold as many numbers as it has mistakes.

    Reference:
        Mania, Miller, Schmidt, Hardt and Recht, Model Similarity Mitigates Test Set Overuse, NeurIPS 2019; error consistency
        κ is Geirhos, Meding and Wichmann, Beyond accuracy, NeurIPS 2020.
    """
    columns = {"predictions_a": predictions_a, "predictions_b": predictions_b, "labels": labels}
    first, second, truth = (_column(values, name) for name, values in columns.items())
    parts = _column(folds, "folds") if folds is not None else np.zeros(len(truth), dtype=np.int64)
    if len({len(first), len(second), len(truth), len(parts)}) > 1:
        raise DataError(
            f"Predictions and labels are of the same images; found {len(first)}, {len(second)} and {len(truth)} of them"
            + (f", and {len(parts)} folds." if folds is not None else ".")
        )
    if len(truth) == 0:
        raise NotApplicable("Prediction similarity needs at least one image.")
    wrong_a, wrong_b = first != truth, second != truth
    value, a, b = float((wrong_a == wrong_b).mean()), float(1 - wrong_a.mean()), float(1 - wrong_b.mean())
    independent = a * b + (1 - a) * (1 - b)
    kappa = None if independent >= 1 else (value - independent) / (1 - independent)
    low, high, p_value = _permuted(wrong_a, wrong_b, parts)
    similarity = PredictionSimilarity(value, estimator="prediction similarity", n=len(truth), parts={"independent": independent})
    vars(similarity).update(
        accuracy_a=a,
        accuracy_b=b,
        independent=independent,
        kappa=kappa,
        agreement=float((first == second).mean()),
        low=low,
        high=high,
        p_value=p_value,
    )
    return similarity


def _column(values: Any, name: str) -> np.ndarray:
    column = np.asarray(values)
    if column.ndim != 1:
        raise DataError(f"Prediction similarity takes one class per image; {name} has the shape {column.shape}.")
    if column.dtype == object:
        if any(cell is None or cell != cell for cell in column):  # NaN is not equal to itself
            raise DataError(f"Prediction similarity needs a class for every image; {name} has missing ones.")
        return column.astype(str)
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise DataError(f"Prediction similarity needs a class for every image; {name} has missing ones.")
    return column


def _permuted(
    wrong_a: Bool[np.ndarray, " num_images"], wrong_b: Bool[np.ndarray, " num_images"], folds: np.ndarray
) -> tuple[float, float, float]:
    """Central 95 % of P, and how often it is at least what was observed, over all permutations within folds.

    The number of images that both get wrong is hypergeometric in each fold, and P is linear in their sum.
    """
    mass: Float64[np.ndarray, " counts"] = np.ones(1)
    lowest = 0
    for fold in np.unique(folds):
        rows = folds == fold
        size, a, b = int(rows.sum()), int(wrong_a[rows].sum()), int(wrong_b[rows].sum())
        least, most = max(0, a + b - size), min(a, b)
        mass = np.convolve(mass, hypergeom.pmf(np.arange(least, most + 1), size, a, b))
        lowest += least
    n, both = len(folds), int((wrong_a & wrong_b).sum())
    below = np.cumsum(mass)
    ends = [int(np.searchsorted(below, share * below[-1])) for share in ((1 - _MASS) / 2, (1 + _MASS) / 2)]
    low, high = (1 - float(wrong_a.sum() + wrong_b.sum() - 2 * (lowest + end)) / n for end in ends)
    return low, high, float(min(mass[both - lowest :].sum(), 1.0))
