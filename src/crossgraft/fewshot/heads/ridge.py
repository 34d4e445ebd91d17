"""Ridge regression on features of unit length: a classifier in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from crossgraft.errors import UsageError
from crossgraft.fewshot.heads._head import Classes, Head, Logits, Rows, unit_rows


@dataclass(eq=False, repr=False)
class RidgeHead(Head):
    """Least squares to +1 for the own class and −1 for the others, with an L2 penalty and an intercept.

    The class with the largest value is predicted. ``predict_proba`` is the softmax of these values, which orders classes and
    images, and is no probability that can be relied on.

    Args:
        penalty: Weight of the squared weights.
        balanced: Whether every class counts as much as every other, however many images it has; right where queries have as
            many of each, as in episodes.

    Attributes:
        weights_: (C, d); intercepts_: (C,).

    Cost: n²·d + n³/3, or n·d² + d³/3 where d < n.

    Source: Hoerl and Kennard, Ridge Regression, Technometrics 1970; as a few-shot head Bertinetto, Henriques, Torr and
    Vedaldi, Meta-learning with Differentiable Closed-form Solvers, ICLR 2019.
    """

    name: ClassVar[str] = "ridge"
    title: ClassVar[str] = "Ridge regression"
    reference: ClassVar[str] = (
        "Bertinetto, Henriques, Torr and Vedaldi, Meta-learning with Differentiable Closed-form Solvers, ICLR 2019"
    )

    penalty: float = 1.0
    balanced: bool = False

    def check(self) -> None:
        """Refuse a penalty that is not above 0."""
        self.check_numbers("penalty", above=True)

    def adapt(self, support: Rows, classes: Classes, num_classes: int) -> None:
        """Solve the normal equations of the smaller size, in float64: those of repeated rows are nearly singular."""
        rows = unit_rows(support).rows.double()
        targets = 2 * torch.nn.functional.one_hot(classes, num_classes).to(rows.dtype) - 1
        counts = torch.bincount(classes, minlength=num_classes).to(rows.dtype)
        weight = len(rows) / (num_classes * counts[classes]) if self.balanced else torch.ones_like(rows[:, 0])
        mean, mean_target = weight @ rows / len(rows), weight @ targets / len(rows)
        scale = weight.sqrt()[:, None]  # a weighted square is the square of a scaled residual
        centred, wanted = scale * (rows - mean), scale * (targets - mean_target)
        if len(rows) <= rows.shape[1]:
            weights = centred.T @ self._solve(centred @ centred.T, wanted)
        else:
            weights = self._solve(centred.T @ centred, centred.T @ wanted)
        self.weights_ = weights.T.to(support.dtype).numpy()
        self.intercepts_ = (mean_target - mean @ weights).to(support.dtype).numpy()

    def _solve(self, gram: Rows, right: Rows) -> Rows:
        penalised = gram + self.penalty * torch.eye(len(gram), dtype=gram.dtype)
        factor, failed = torch.linalg.cholesky_ex(penalised)
        if bool(failed):
            raise UsageError(
                f"penalty of ridge is too small for these features, of which some are repeated: {self.penalty:g}. Try 1e-6 or "
                "more."
            )
        return torch.cholesky_solve(right, factor)

    def logits_of(self, query: Rows) -> Logits:
        """A linear function of the direction of each feature vector."""
        return unit_rows(query).rows @ torch.from_numpy(self.weights_).T + torch.from_numpy(self.intercepts_)
