"""CoPA: one linear head for images and another one for prototypes, trained to agree on who belongs to whom."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from crossgraft.errors import CrossgraftWarning, UsageError
from crossgraft.fewshot.heads._head import (
    IDENTITY,
    RANDOM,
    Classes,
    Head,
    Logits,
    Members,
    Prototypes,
    Rows,
    UnitRows,
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
class CopaHead(Head):
    """Two linear heads under a symmetric cross-entropy between the images and their own, expanded prototypes.

    The loss is computed over classes instead of pairs of images: the same value at n × C instead of n × n numbers. It cannot
    fall below about the mean of log n_c, because all images of a class have the same prototype.

    Args:
        learning_rate: Learning rate of Adam.
        weight_decay: L2 term of Adam, coupled: it pulls the heads to 0. The authors set 5e-3 and 0 on Traffic Sign and MNIST.
        steps: Steps on the whole support set.
        logit_scale: What cosines are multiplied by in the loss: 1/temperature; e² in the authors' code.
        init: ``identity``, or ``random``: normal numbers of variance 1/d.
        shared: One map for images and prototypes under the same loss: what two maps add is the difference to it.
        seed: Random seed, of ``init=random``.

    Attributes:
        instance_weights_: (d, d) W_I, applied to images as X Wᵀ.
        prototype_weights_: (d, d) W_P, applied to prototypes.
        weights_: (d, d) the one map, only where it is ``shared``.
        prototypes_: (C, d) of the features as they come; computed once.
        loss_curve_: (steps,) loss before each step.
        gap_: Distance between images and prototypes before and after.

    With one image per class both heads get the same gradient and stay equal, if they start as the identity: CoPA is then one
    shared head, which is a warning.

    Cost: per step 4·n·d² floating-point operations, and one pass of the optimiser over 2·d² numbers.

    Source: Tian, Liu, Zhou, Liu, Zhang and Han, Mind the Gap Between Prototypes and Images in Cross-domain Finetuning,
    NeurIPS 2024, eq. 3 and algorithm 1.
    """

    name: ClassVar[str] = "copa"
    title: ClassVar[str] = "CoPA"
    reference: ClassVar[str] = (
        "Tian, Liu, Zhou, Liu, Zhang and Han, Mind the Gap Between Prototypes and Images in Cross-domain Finetuning, NeurIPS 2024"
    )

    learning_rate: float = 1e-3
    weight_decay: float = 0.1
    steps: int = 50
    logit_scale: float = math.exp(2.0)
    init: str = IDENTITY
    seed: int = 0
    shared: bool = False

    def check(self) -> None:
        """Refuse numbers out of their range, and an unknown start."""
        self.check_numbers("learning_rate", above=True)
        self.check_numbers("weight_decay")
        self.check_numbers("logit_scale", above=True)
        self.check_counts("steps")
        self.check_seed()
        if self.init not in (IDENTITY, RANDOM):
            raise UsageError(f"init of copa must be {IDENTITY} or {RANDOM}, got {self.init!r}.")

    def adapt(self, support: Rows, classes: Classes, num_classes: int) -> None:
        """Adam on the whole support set."""
        if num_classes == len(support) and not self.shared and self.init == IDENTITY:
            warnings.warn(
                "CoPA with one image per class: images are their prototypes, so that both heads stay equal, and CoPA is one "
                "shared head. Use init='random', or url.",
                CrossgraftWarning,
                stacklevel=4,
            )
        members = Members.of(classes, num_classes, support)
        prototypes = members.means(support)
        generator = torch.Generator().manual_seed(int(self.seed))
        of_images, of_prototypes = (torch.nn.Parameter(starting_weights(self.init, support, generator)) for _ in range(2))
        if self.shared:
            of_prototypes = of_images
        trained = list(dict.fromkeys([of_images, of_prototypes]))
        optimizer = torch.optim.Adam(trained, lr=self.learning_rate, weight_decay=self.weight_decay, fused=True)
        losses: list[float] = []
        for _ in range(self.steps):
            step = loss_and_gradients(of_images.detach(), of_prototypes.detach(), support, prototypes, members, self.logit_scale)
            losses.append(step.loss)
            of_images.grad, of_prototypes.grad = step.to_instance_weights, step.to_prototype_weights
            if self.shared:
                of_images.grad = step.to_instance_weights + step.to_prototype_weights
            optimizer.step()
        w_i, w_p = of_images.detach(), of_prototypes.detach()
        self.instance_weights_, self.prototype_weights_ = w_i.numpy(), w_p.numpy()
        if self.shared:
            self.weights_ = self.instance_weights_
        self.prototypes_, self.loss_curve_ = prototypes.numpy(), losses
        self.gap_ = GapShift(gap_of(support, prototypes, classes), gap_of(support @ w_i.T, prototypes @ w_p.T, classes))

    def logits_of(self, query: Rows) -> Logits:
        """10 · cos(W_I q, W_P p_c)."""
        prototypes = torch.from_numpy(self.prototypes_) @ torch.from_numpy(self.prototype_weights_).T
        return scaled_cosines(query @ torch.from_numpy(self.instance_weights_).T, prototypes)

    def clouds(self, support: Features) -> tuple[np.ndarray, np.ndarray]:
        """What W_I makes of images, and W_P of prototypes."""
        rows = np.asarray(support, dtype=self.instance_weights_.dtype)
        return rows @ self.instance_weights_.T, self.prototypes_ @ self.prototype_weights_.T


class LossAndGradients(NamedTuple):
    """The loss, and its gradients by both heads."""

    loss: float
    to_instance_weights: Weights
    to_prototype_weights: Weights


def loss_and_gradients(
    instance_weights: Weights,
    prototype_weights: Weights,
    support: Rows,
    prototypes: Prototypes,
    members: Members,
    logit_scale: float,
) -> LossAndGradients:
    """Equation 3: ½ (cross-entropy of the rows + of the columns) of A = scale · z_I (Yh z_P)ᵀ, n × n, without forming A."""
    transformed = support @ instance_weights.T
    images, centres = unit_rows(transformed, out=transformed), unit_rows(prototypes @ prototype_weights.T)
    loss, to_similarities = _of_similarities(logit_scale * cosines(images, centres), members)
    to_similarities *= logit_scale
    return LossAndGradients(
        loss,
        _to_weights(images, to_similarities @ centres.rows, support),
        _to_weights(centres, to_similarities.T @ images.rows, prototypes),
    )


def _to_weights(unit: UnitRows, gradient: Rows, rows: Rows) -> Weights:
    return through_unit_rows(unit, gradient).T @ rows


def symmetric_loss(similarities: Logits, members: Members) -> Tensor:
    """Equation 3 from s (n, C), part of the graph: a prototype stands in n_c columns of A, + log n_c in a row's sum."""
    return _sums(similarities, members).loss


class _Sums(NamedTuple):
    loss: Tensor
    per_row: Logits
    row_sums: Tensor
    column_sums: Tensor


def _sums(similarities: Logits, members: Members) -> _Sums:
    per_row = similarities + members.counts.log()  # s_ic + log n_c
    row_sums, column_sums = per_row.logsumexp(dim=1), similarities.logsumexp(dim=0)
    own = members.of_own(similarities).sum()
    loss = 0.5 * (row_sums.sum() + (members.counts * column_sums).sum() - 2 * own) / len(similarities)
    return _Sums(loss, per_row, row_sums, column_sums)


def _of_similarities(similarities: Logits, members: Members) -> tuple[float, Logits]:
    """Loss and gradient from s (n, C)."""
    loss, per_row, row_sums, column_sums = _sums(similarities, members)
    of_rows = (per_row - row_sums[:, None]).exp()
    of_columns = (similarities - column_sums).exp() * members.counts
    return float(loss), members.less_own(of_rows + of_columns, 2.0).mul_(0.5 / len(similarities))
