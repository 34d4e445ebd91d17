"""Unit-length rows, class means, and the gradients through them that heads share.

Notation of URL and CoPA: rows are images, u(Z) = Z / ‖row‖₂, and a linear head W has no bias, Z = X Wᵀ.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from crossgraft.fewshot.heads._head import Classes, Logits, Rows

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
