"""Sums over images from which linear CKA follows, in O(d²) memory; they can be moved, scaled and added up exactly.

Sums are of x = (features − shift) / 2^exponent. With a = ‖x‖² and b = ‖y‖², a *product* of two sides keeps Σ x yᵀ, Σ ab, Σ b x
and Σ a y. Moving the shift changes each of them by a polynomial in the others (binomial formulas), so two streams with
different shifts add up exactly; and HSIC is made of the same sums moved to the mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

Vector = Float64[np.ndarray, " num_features"]
VectorX = Float64[np.ndarray, " num_features_x"]
VectorY = Float64[np.ndarray, " num_features_y"]
Change = Float64[np.ndarray, "num_rows num_features_y"]

_ROWS_AT_ONCE = 256
"""Rows of a matrix that are moved at once, so that no second matrix of its size is needed."""


@dataclass
class Side:
    """Sums of one of the two sets of features.

    Attributes:
        shift: Shift in units of the features.
        exponent: Features are divided by two to this power.
        total: Σ x.
        squares: Σ ‖x‖².
    """

    shift: Vector
    exponent: int
    total: Vector
    squares: float


@dataclass
class Product:
    """Sums of two sides together, or of one with itself.

    Attributes:
        matrix: Σ x yᵀ.
        norms: Σ ab.
        first: Σ b x.
        second: Σ a y.
    """

    matrix: Float64[np.ndarray, "num_features_x num_features_y"]
    norms: float
    first: VectorX
    second: VectorY


@dataclass
class Sums:
    """All of two sets of features.

    Attributes:
        n: Images.
        x: Sums of the first set.
        y: Sums of the second.
        xx: The first with itself.
        yy: The second with itself.
        xy: Both.
    """

    n: int
    x: Side
    y: Side
    xx: Product
    yy: Product
    xy: Product

    @classmethod
    def empty(cls, shift_x: VectorX, shift_y: VectorY) -> Sums:
        """The sums over no images."""
        x, y = (Side(shift, 0, np.zeros(len(shift)), 0.0) for shift in (shift_x, shift_y))
        xx, yy, xy = (
            Product(np.zeros((len(p.shift), len(q.shift))), 0.0, np.zeros(len(p.shift)), np.zeros(len(q.shift)))
            for p, q in ((x, x), (y, y), (x, y))
        )
        return cls(0, x, y, xx, yy, xy)

    def triples(self) -> Iterator[tuple[Product, Side, Side]]:
        """Each product with its two sides."""
        yield self.xx, self.x, self.x
        yield self.yy, self.y, self.y
        yield self.xy, self.x, self.y

    def scale_to(self, exponent_x: int, exponent_y: int) -> None:
        """Divide by other powers of two; exact."""
        by_x, by_y = self.x.exponent - exponent_x, self.y.exponent - exponent_y
        for product, k, m in ((self.xx, by_x, by_x), (self.yy, by_y, by_y), (self.xy, by_x, by_y)):
            if k or m:
                np.ldexp(product.matrix, k + m, out=product.matrix)
                product.norms = float(np.ldexp(product.norms, 2 * k + 2 * m))
                product.first = np.ldexp(product.first, k + 2 * m)
                product.second = np.ldexp(product.second, 2 * k + m)
        for side, k in ((self.x, by_x), (self.y, by_y)):
            side.total, side.squares = np.ldexp(side.total, k), float(np.ldexp(side.squares, 2 * k))
            side.exponent -= k

    def move_to(self, shift_x: VectorX, shift_y: VectorY) -> None:
        """Take other shifts; exact but for rounding."""
        steps = {id(side): np.ldexp(side.shift - shift, -side.exponent) for side, shift in ((self.x, shift_x), (self.y, shift_y))}
        moved = [_moved(product, p, q, self.n, steps[id(p)], steps[id(q)]) for product, p, q in self.triples()]
        for (product, p, q), (norms, first, second) in zip(self.triples(), moved, strict=True):
            for rows in _rows_at_once(len(product.matrix)):
                product.matrix[rows] += _change(p, q, self.n, steps[id(p)], steps[id(q)], rows)
            product.norms, product.first, product.second = norms, first, second
        for side, shift in ((self.x, shift_x), (self.y, shift_y)):
            step = steps[id(side)]
            side.squares += float(2 * step @ side.total + self.n * (step @ step))
            side.total = side.total + self.n * step
            side.shift = shift

    def add(self, other: Sums) -> None:
        """Add the sums of other images, which have the same shifts and exponents."""
        self.n += other.n
        for mine, theirs in ((self.x, other.x), (self.y, other.y)):
            mine.total = mine.total + theirs.total
            mine.squares += theirs.squares
        for mine, theirs in ((self.xx, other.xx), (self.yy, other.yy), (self.xy, other.xy)):
            mine.matrix += theirs.matrix
            mine.norms += theirs.norms
            mine.first = mine.first + theirs.first
            mine.second = mine.second + theirs.second

    def hsic(self, product: Product, p: Side, q: Side, *, debiased: bool) -> float:
        """HSIC of centred features, up to a factor that all products share.

        Biased it is ‖Σ x yᵀ‖²_F. Unbiased it is HSIC₁ of Song et al. with the diagonals left out, whose feature form is
        ‖Σ x yᵀ‖²_F − n/(n−2) Σ ab + Σ a Σ b / ((n−1)(n−2)).
        """
        n, u, v = self.n, -p.total / self.n, -q.total / self.n  # the steps to the mean
        aligned = 0.0
        for rows in _rows_at_once(len(product.matrix)):
            centred = product.matrix[rows] + _change(p, q, n, u, v, rows)
            aligned += float(np.vdot(centred, centred))
        if not debiased:
            return aligned
        norms, _, _ = _moved(product, p, q, n, u, v)
        of_p, of_q = (side.squares - n * float(step @ step) for side, step in ((p, u), (q, v)))
        return aligned - n / (n - 2) * norms + of_p * of_q / ((n - 1) * (n - 2))


def _rows_at_once(num_rows: int) -> Iterator[slice]:
    for start in range(0, num_rows, _ROWS_AT_ONCE):
        yield slice(start, start + _ROWS_AT_ONCE)


def _change(p: Side, q: Side, n: int, step_p: VectorX, step_q: VectorY, rows: slice) -> Change:
    """Σ (x + s)(y + t)ᵀ − Σ x yᵀ = s (Σ y + n t)ᵀ + (Σ x) tᵀ, some rows of it."""
    change = np.outer(step_p[rows], q.total + n * step_q)
    change += np.outer(p.total[rows], step_q)
    return change


def _moved(product: Product, p: Side, q: Side, n: int, s: VectorX, t: VectorY) -> tuple[float, VectorX, VectorY]:
    """Norms, first and second after a step: Σ‖x+s‖²‖y+t‖², Σ‖y+t‖²(x+s) and Σ‖x+s‖²(y+t), multiplied out."""
    s_s, t_t, s_x, t_y = float(s @ s), float(t @ t), float(s @ p.total), float(t @ q.total)
    xy_t, s_xy = product.matrix @ t, s @ product.matrix
    norms = product.norms + 2 * float(t @ product.second) + t_t * p.squares + 2 * float(s @ product.first)
    norms += 4 * float(s @ xy_t) + 2 * t_t * s_x + s_s * q.squares + 2 * s_s * t_y + n * s_s * t_t
    first = product.first + 2 * xy_t + t_t * p.total + (q.squares + 2 * t_y + n * t_t) * s
    second = product.second + 2 * s_xy + s_s * q.total + (p.squares + 2 * s_x + n * s_s) * t
    return norms, first, second
