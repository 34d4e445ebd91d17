"""The linear probe: cross-validated accuracy of logistic regression on the features."""

from __future__ import annotations

import warnings

import numpy as np

from crossgraft import seeding
from crossgraft.errors import NotApplicable, UsageError
from crossgraft.scores._inputs import Standardization
from crossgraft.scores._score import ScoreValue, score
from crossgraft.types import Features, Groups, Labels

_MAX_ITERATIONS = 1000


@score(
    title="Linear probe",
    reference="Alain and Bengio, Understanding intermediate layers using linear classifier probes, ICLR workshop 2017; "
    "folds by group",
    is_reference_probe=True,
    is_seeded=True,
    invariances=("padding", "scale", "shift"),
    warns_of=("a class of one image",),
    cost="five logistic regressions; seconds to minutes, times 26 with interval and control",
)
def linear_probe(
    features: Features,
    labels: Labels,
    groups: Groups | None = None,
    *,
    num_folds: int = 5,
    inverse_penalty: float = 1.0,
    seed: int = 0,
) -> ScoreValue:
    """Mean over folds of the accuracy of logistic regression on the fold that it did not see.

    Folds are stratified by class, and no group is in two of them. Features are standardised inside each training fold;
    the model is multinomial with an L2 penalty, fitted by L-BFGS.

    Args:
        features: (n, d).
        labels: (n,).
        groups: The patient of each image.
        num_folds: Folds, fewer (with a warning) when even the largest class has fewer images, or there are fewer groups.
        inverse_penalty: C of the penalty ‖W‖²/(2C).
        seed: Random seed of the fold assignment.

    Returns:
        In [0, 1]. ``parts`` holds the folds used and the share of the largest class, which guessing reaches.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        NotApplicable: All images belong to one group.
        UsageError: A setting is out of range.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([10.0 * y, np.linspace(-1, 1, 40)])
        >>> linear_probe(features=X, labels=y)
        1.0
    """
    if num_folds < 2 or inverse_penalty <= 0:
        raise UsageError(f"`num_folds` must be ≥ 2 and `inverse_penalty` > 0, got {num_folds} and {inverse_penalty}.")
    units = np.arange(len(labels)) if groups is None else groups
    if (units == units[0]).all():
        raise NotApplicable("The linear probe needs images of at least two groups (patients).")
    folds, notes = _feasible_folds(labels, units, num_folds)
    accuracies: list[float] = []
    unsettled = 0
    for train, test in _splits(labels, groups, folds, seed):
        predicted, converged = _fit_predict(features[train], labels[train], features[test], inverse_penalty)
        accuracies.append(float(np.mean(predicted == labels[test])))
        unsettled += not converged
    if unsettled:
        notes.append(f"Logistic regression did not converge in {_MAX_ITERATIONS} steps in {unsettled} of {folds} folds.")
    parts = {"folds": folds, "majority_share": np.bincount(labels).max() / len(labels)}
    return ScoreValue(float(np.mean(accuracies)) if accuracies else 0.0, parts=parts, warnings=notes)


def _feasible_folds(labels: np.ndarray, units: np.ndarray, wanted: int) -> tuple[int, list[str]]:
    """As many folds as wanted, if the largest class has as many images and there are as many units (images or groups).

    A rare class does not lower the number: it is then missing in some folds, which a note says.
    """
    pairs = np.unique(np.column_stack([labels, units]), axis=0)
    rarest = int(np.bincount(pairs[:, 0]).min())
    most = min(int(np.bincount(labels).max()), len(np.unique(units)))
    notes: list[str] = []
    folds = max(2, min(wanted, most))
    if folds < wanted:
        notes.append(f"{folds} folds instead of {wanted}: there are not enough independent images or groups.")
    elif rarest < folds:
        notes.append(f"The rarest class has {rarest} independent images or groups, so it is missing in some of {folds} folds.")
    if rarest < 2:
        notes.append("A class with images of one group only is never recognised.")
    return folds, notes


def _splits(labels: np.ndarray, groups: np.ndarray | None, folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    if np.bincount(labels).max() < folds:  # one image per class: none is ever seen in training
        return []
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    random_state = seeding.derive_seed(seed, "linear probe folds")
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    splitter = kind(folds, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():  # a class smaller than the number of folds; said in the notes
        warnings.simplefilter("ignore", UserWarning)
        pairs = list(splitter.split(labels, labels, groups))
    return [(train, test) for train, test in pairs if len(train) and len(test)]


def _fit_predict(train: np.ndarray, labels: np.ndarray, test: np.ndarray, inverse_penalty: float) -> tuple[np.ndarray, bool]:
    """Predicted classes of ``test``, and whether the fit converged."""
    if (labels == labels[0]).all():
        return np.full(len(test), labels[0]), True
    standardization = Standardization.fit(train)
    train, test = standardization.apply(train), standardization.apply(test)
    if len(train) < train.shape[1]:
        # The penalised solution lies in the span of the training rows, so an orthonormal basis of it changes nothing.
        basis = np.linalg.qr(train.T)[0]
        train, test = train @ basis, test @ basis
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression  # imported late, as in N-LEEP

    model = LogisticRegression(C=inverse_penalty, solver="lbfgs", max_iter=_MAX_ITERATIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(train, labels)
    return np.asarray(model.predict(test)), bool((model.n_iter_ < _MAX_ITERATIONS).all())
