"""Deep feature reweighting: the last layer once more, on balanced draws of the validation part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from crossgraft.audit.group_metrics import group_metrics
from crossgraft.audit.mitigation._mitigation import (
    CELLS,
    MAX_ITERATIONS,
    FittedScorer,
    GroupedRows,
    Mitigation,
    Part,
    RowNumbers,
    balanced_draw,
    cell_name,
    cell_rows,
    scorer_of,
)
from crossgraft.errors import UsageError
from crossgraft.seeding import derive_seed, generator
from crossgraft.types import Groups

INVERSE_PENALTIES = (1.0, 0.7, 0.3, 0.1, 0.07, 0.03, 0.01)
"""Values of C that are tried; of equally good ones the first is taken."""
# scikit-learn 1.8 deprecates penalty, and older releases look at l1_ratio only where penalty is elasticnet
_L1: dict[str, Any] = {"penalty": "l1"} if getattr(LogisticRegression(), "penalty", "") == "l2" else {"l1_ratio": 1.0}


@dataclass(frozen=True)
class DeepFeatureReweighting(Mitigation):
    """L1-penalised logistic regression on draws of the validation part that have as many images in each cell.

    C is the one with the best worst cell: one half of the validation part, halved cell by cell with each patient in one half, is
    fitted to and the other measured. Then each draw is of the whole part, and coefficients are averaged over the draws. The
    training part gives mean and deviation of the features alone.

    Args:
        draws: Number of draws.

    Cost: ``draws`` + 7 logistic regressions on at most four times the smallest cell of the validation part.

    Source: Kirichenko, Izmailov and Wilson 2023, DFR on validation data, with the C of its released code for Waterbirds; there
    the halves are drawn without regard to cells, one of which may then be missing.
    """

    name: ClassVar[str] = "dfr"
    title: ClassVar[str] = "Deep feature reweighting"
    reference: ClassVar[str] = (
        "Kirichenko, Izmailov and Wilson, Last Layer Re-Training is Sufficient for Robustness to Spurious Correlations, ICLR 2023"
    )
    uses_val: ClassVar[bool] = True
    balanced_part: ClassVar[Part | None] = "val"
    least_per_cell: ClassVar[int] = 2

    draws: int = 10

    def __post_init__(self) -> None:
        """Refuse a number of draws that gives no mean."""
        if self.draws < 1:
            raise UsageError(f"draws of dfr must be at least 1, got {self.draws}.")

    def fit_rows(self, train: GroupedRows, val: GroupedRows, *, seed: int) -> FittedScorer:
        """Pick C, then average over the draws."""
        scaler = StandardScaler().fit(train.features)
        rows = val._replace(features=scaler.transform(val.features))
        inverse_penalty = self._best_inverse_penalty(rows, seed)
        cells = cell_rows(rows.labels, rows.artefact)
        models = [
            _sparse(rows, balanced_draw(cells, generator(seed, self.name, number)), inverse_penalty, seed)
            for number in range(self.draws)
        ]
        coefficients = np.mean([np.ravel(model.coef_) for model in models], axis=0)
        return scorer_of(scaler, coefficients, float(np.mean([model.intercept_ for model in models])))

    def _best_inverse_penalty(self, rows: GroupedRows, seed: int) -> float:
        """C with the highest accuracy in the worst cell of one half."""
        rng = generator(seed, self.name, "halves")
        cells = cell_rows(rows.labels, rows.artefact)
        is_measured = _halves(cells, rows.patients, rng)
        measured = np.concatenate([cell[is_measured[cell]] for cell in cells])
        drawn = balanced_draw([cell[~is_measured[cell]] for cell in cells], rng)
        worst: list[float] = []
        for inverse_penalty in INVERSE_PENALTIES:
            model = _sparse(rows, drawn, inverse_penalty, seed)
            scores = model.predict_proba(rows.features[measured])[:, 1]
            groups = group_metrics(scores, rows.labels[measured], rows.artefact[measured])
            worst.append(groups.worst.accuracy.value)
        return INVERSE_PENALTIES[int(np.argmax(worst))]


def _halves(cells: list[RowNumbers], patients: Groups | None, rng: np.random.Generator) -> Bool[np.ndarray, " num_images"]:
    """Which images are measured; the others are fitted to. Each half has about as many of each cell, and no patient is in both.

    Cells of few patients come first: those of the others have more patients that make up for it.

    Raises:
        UsageError: A half has no image of a cell.
    """
    size = sum(map(len, cells))
    of_image = np.arange(size) if patients is None else np.unique(patients, return_inverse=True)[1]
    side = np.full(size, -1)
    for cell in sorted(cells, key=lambda rows: len(np.unique(of_image[rows]))):
        for row in rng.permutation(cell).tolist():
            if side[row] < 0:
                fitted, measured = (int((side[cell] == half).sum()) for half in (0, 1))
                side[of_image == of_image[row]] = 0 if fitted <= measured else 1
    for cell, (label, artefact) in zip(cells, CELLS, strict=True):
        if len(np.unique(side[cell])) < 2:
            raise UsageError(
                "dfr needs images of two patients or more in every cell of val, one in each half, and "
                f"{cell_name(label, artefact)} has them in one half alone. Bring such images of more patients."
            )
    return side == 1


def _sparse(rows: GroupedRows, drawn: RowNumbers, inverse_penalty: float, seed: int) -> LogisticRegression:
    """Fitted to these rows; liblinear goes through features in an order of its own."""
    order = derive_seed(seed, "dfr", "liblinear")
    model = LogisticRegression(C=inverse_penalty, solver="liblinear", max_iter=MAX_ITERATIONS, random_state=order, **_L1)
    return model.fit(rows.features[drawn], rows.labels[drawn])
