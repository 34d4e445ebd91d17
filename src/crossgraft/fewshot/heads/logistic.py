"""Logistic regression on features of unit length: the baseline that few-shot methods have to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from crossgraft.fewshot.heads._head import Classes, Head, Logits, Rows, unit_rows


@dataclass(eq=False, repr=False)
class LogisticHead(Head):
    """Multinomial logistic regression of scikit-learn, with an L2 penalty.

    Args:
        C: Inverse of the penalty's weight.
        max_iterations: Most iterations of L-BFGS.
        balanced: Whether every class counts as much as every other, however many images it has; right where queries have as
            many of each, as in episodes.

    Attributes:
        weights_: (C, d); intercepts_: (C,).

    Cost: seldom above 100 passes of 4·n·d·C floating-point operations.

    Source: scikit-learn, LogisticRegression; as a baseline for few-shot tasks Tian, Wang, Krishnan, Tenenbaum and Isola,
    Rethinking Few-Shot Image Classification: a Good Embedding Is All You Need?, ECCV 2020.
    """

    name: ClassVar[str] = "logistic"
    title: ClassVar[str] = "Logistic regression"
    reference: ClassVar[str] = (
        "Tian, Wang, Krishnan, Tenenbaum and Isola, Rethinking Few-Shot Image Classification: a Good Embedding Is All You "
        "Need?, ECCV 2020"
    )

    C: float = 10.0
    max_iterations: int = 1000
    balanced: bool = False

    def check(self) -> None:
        """Refuse numbers out of their range."""
        self.check_numbers("C", above=True)
        self.check_counts("max_iterations")

    def adapt(self, support: Rows, classes: Classes, num_classes: int) -> None:
        """Minimise the penalised cross-entropy."""
        model = LogisticRegression(C=self.C, max_iter=self.max_iterations, class_weight="balanced" if self.balanced else None)
        model.fit(unit_rows(support).rows.numpy(), classes.numpy())
        weights, intercepts = np.asarray(model.coef_), np.asarray(model.intercept_)
        if num_classes == 2:  # scikit-learn keeps the difference of the two
            half = np.array([-0.5, 0.5])
            weights, intercepts = weights * half[:, None], intercepts * half
        self.weights_, self.intercepts_ = weights, intercepts

    def logits_of(self, query: Rows) -> Logits:
        """A linear function of the direction of each feature vector."""
        weights, intercepts = (torch.from_numpy(each).to(query.dtype) for each in (self.weights_, self.intercepts_))
        return unit_rows(query).rows @ weights.T + intercepts
