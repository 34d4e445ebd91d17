"""Logistic regression on standardised features, which most strategies end with."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from crossgraft.audit.mitigation._mitigation import FittedScorer, GroupedRows

MAX_ITERATIONS = 1000


def logistic_scorer(
    rows: GroupedRows,
    weights: Float64[np.ndarray, " num_images"] | None = None,
    *,
    inverse_penalty: float = 1.0,
    scaler: StandardScaler | None = None,
) -> FittedScorer:
    """L2-penalised logistic regression; mean and deviation of features are those of all rows, whatever their weights.

    Args:
        rows: Images of both classes.
        weights: (n,) weight of each image in the loss; None: 1.
        inverse_penalty: C of scikit-learn: smaller is smoother.
        scaler: Fitted to other images, whose mean and deviation are taken; None: those of ``rows``.
    """
    scaler = scaler or StandardScaler().fit(rows.features)
    model = LogisticRegression(C=inverse_penalty, max_iter=MAX_ITERATIONS)
    model.fit(scaler.transform(rows.features), rows.labels, sample_weight=weights)
    return scorer_of(scaler, model.coef_[0], float(np.ravel(model.intercept_)[0]))


def scorer_of(
    scaler: StandardScaler, coefficients: Float64[np.ndarray, " num_features"], intercept: float
) -> FittedScorer:
    """A scorer of features as they come, from coefficients of those that ``scaler`` makes of them."""
    return FittedScorer(np.asarray(scaler.mean_), np.asarray(scaler.scale_), coefficients, intercept)
