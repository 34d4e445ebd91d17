"""URL: one linear head for images and prototypes (pre-classifier alignment), trained on the support set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from crossgraft.fewshot.heads._head import (
    COSINE_SCALE,
    IDENTITY,
    RATES,
    Classes,
    Head,
    Logits,
    Members,
    Rows,
    Weights,
    cosines,
    scaled_cosines,
    starting_weights,
    through_unit_rows,
    unit_rows,
)
from crossgraft.fewshot.look import GapShift, gap_of
from crossgraft.types import Features


@dataclass(eq=False, repr=False)
class UrlHead(Head):
    """A linear transformation of the features, trained so that each support image is nearest to its own prototype.

    With one image per class an image is its prototype, so that the loss starts near 0, and training only moves classes apart.

    Args:
        learning_rate: Learning rate of Adadelta; ``seen`` (0.1) for a domain that the backbone was trained on, ``unseen`` (1.0)
            for any other, as the authors set it. It is never guessed.
        steps: Steps on the whole support set.

    Attributes:
        weights_: (d, d) W, applied as X Wᵀ.
        prototypes_: (C, d) of the features as they come.
        loss_curve_: (steps,) loss before each step.
        gap_: Distance between images and prototypes before and after.

    Cost: per step 4·n·d² floating-point operations, and one pass of the optimiser over d² numbers.

    Source: Li, Liu and Bilen, Universal Representation Learning from Multiple Domains for Few-shot Classification, ICCV 2021.
    """

    name: ClassVar[str] = "url"
    title: ClassVar[str] = "URL"
    reference: ClassVar[str] = (
        "Li, Liu and Bilen, Universal Representation Learning from Multiple Domains for Few-shot Classification, ICCV 2021"
    )

    learning_rate: float | str = 0.1
    steps: int = 40

    def check(self) -> None:
        """Refuse a rate that is neither a name nor above 0."""
        self.check_rate(self.learning_rate)
        self.check_counts("steps")

    def adapt(self, support: Rows, classes: Classes, num_classes: int) -> None:
        """Adadelta on the whole support set."""
        members = Members.of(classes, num_classes, support)
        weights = torch.nn.Parameter(starting_weights(IDENTITY, support, torch.Generator()))
        rate = RATES[self.learning_rate] if isinstance(self.learning_rate, str) else self.learning_rate
        optimizer = torch.optim.Adadelta([weights], lr=rate, rho=0.9, eps=1e-6)
        losses: list[float] = []
        for _ in range(self.steps):
            loss, weights.grad = loss_and_gradient(weights.detach(), support, members)
            losses.append(loss)
            optimizer.step()
        trained, prototypes = weights.detach(), members.means(support)
        self.weights_, self.prototypes_, self.loss_curve_ = trained.numpy(), prototypes.numpy(), losses
        self.gap_ = GapShift(gap_of(support, prototypes, classes), gap_of(support @ trained.T, prototypes @ trained.T, classes))

    def logits_of(self, query: Rows) -> Logits:
        """10 · cos(W q, W p_c)."""
        weights = torch.from_numpy(self.weights_)
        return scaled_cosines(query @ weights.T, torch.from_numpy(self.prototypes_) @ weights.T)

    def clouds(self, support: Features) -> tuple[np.ndarray, np.ndarray]:
        """What W makes of images and of prototypes."""
        rows = np.asarray(support, dtype=self.weights_.dtype)
        return rows @ self.weights_.T, self.prototypes_ @ self.weights_.T


def loss_and_gradient(weights: Weights, support: Rows, members: Members) -> tuple[float, Weights]:
    """Cross-entropy of 10 · S(X Wᵀ, P Wᵀ), and its gradient, in which images count as parts of their prototypes, too.

    The mean over a class and a linear head change places, so that one product with X holds both parts of the gradient.
    """
    transformed = support @ weights.T
    prototypes = unit_rows(members.means(transformed))
    images = unit_rows(transformed, out=transformed)
    log_shares = (COSINE_SCALE * cosines(images, prototypes)).log_softmax(dim=1)
    loss = -float(members.of_own(log_shares).mean())
    to_cosines = members.less_own(log_shares.exp(), 1.0).mul_(COSINE_SCALE / len(support))
    to_images = through_unit_rows(images, to_cosines @ prototypes.rows)
    to_prototypes = through_unit_rows(prototypes, to_cosines.T @ images.rows)
    to_images += members.expand(to_prototypes / members.counts[:, None])
    return loss, to_images.T @ support
