"""How networks vary between targets, fitted to the published tables: which of them vary together, and how surely.

The deviations of the networks of a table from their means over its m + 1 groups of targets, in contrasts between networks (a
target has no level of its own), are rows R ~ N(0, Σ) with

    Σ ~ inverse Wishart with mean S(θ) = ``relatives.target_covariance`` and κ + p + 1 degrees of freedom for p contrasts,

so that a table with many targets says itself which networks go together, and one with few takes it from what relatives do
elsewhere. θ and κ maximise the likelihood with Σ integrated out (Gelman et al., Bayesian Data Analysis, 3rd ed. 2013, §3.6),

    Γ_p((ν+m)/2) / Γ_p(ν/2) · |κS|^{ν/2} / |κS + RᵀR|^{(ν+m)/2},    ν = κ + p + 1.

One target may be unlike the others as a whole: its deviations are √λ_t times those, 1/λ_t ~ χ²_τ/(τ − 2), which is a Student t. τ
maximises the likelihood of each group of targets given the others of its table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize, special

from crossgraft.rank.described import described
from crossgraft.rank.relatives import PARTS, Square, target_covariance, target_parts
from crossgraft.rank.table_means import Deviations
from crossgraft.rank.target_variance import TableSpread, table_variance, typical_variance

LEAST_THETA, MOST_THETA = 1e-4, 4.0
LEAST_KAPPA, MOST_KAPPA = 2.0, 1e4
LEAST_TAU, MOST_TAU = 3.0, 1e4
"""Least: λ still has a mean; most: no target is unlike the others."""


class TargetEffects(NamedTuple):
    """What is fitted.

    Attributes:
        variances: θ, in the order of ``relatives.PARTS``.
        concentration: κ: targets of a table that what is known of relatives counts for.
        tail: τ: degrees of freedom of λ of one target.
        typical: Typical factor of a table on θ.
        freedom: Degrees of freedom that ``typical`` counts for, beside those of a table's own factor.
    """

    variances: tuple[float, ...]
    concentration: float
    tail: float
    typical: float
    freedom: float

    def covariance(self, names: Sequence[str], order: np.ndarray) -> Square:
        """S(θ) of networks."""
        return target_covariance([described(name) for name in names], order, self.variances)


class _Contrasts(NamedTuple):
    """One table: rows R, and what each θ multiplies."""

    table: str
    rows: np.ndarray
    parts: np.ndarray


def fit_target_effects(tables: Sequence[Deviations], start: TargetEffects) -> TargetEffects:
    """θ, κ and τ, and how tables differ; ``start`` where no table has several networks on several targets."""
    complete = [each.complete() for each in tables]
    found = [_contrasts(each) for each in complete if len(each.networks) > 2]
    if not found:
        return start
    logs = np.log([*start.variances, start.concentration])
    bounds = [(np.log(LEAST_THETA), np.log(MOST_THETA))] * len(PARTS) + [(np.log(LEAST_KAPPA), np.log(MOST_KAPPA))]
    best = optimize.minimize(_negative_likelihood, logs, args=(found,), jac=True, method="L-BFGS-B", bounds=bounds)
    *variances, concentration = np.exp(best.x).tolist()
    fitted = start._replace(variances=tuple(variances), concentration=concentration)
    typical, freedom = typical_variance(spreads(tables, fitted), (start.typical, start.freedom))
    fitted = fitted._replace(typical=typical, freedom=freedom)
    return fitted._replace(tail=_tail(found, fitted))


def spreads(tables: Sequence[Deviations], effects: TargetEffects) -> list[TableSpread]:
    """The mean square of the deviations of each table, in units of S(θ), and its degrees of freedom."""
    found: list[TableSpread] = []
    for table in tables:
        covariance = effects.covariance(table.networks, table.means)
        total, freedom = 0.0, 1.0 - len(table.networks)
        for row in table.values:
            known = np.flatnonzero(np.isfinite(row))
            if len(known) > 1:
                contrasts = linalg.helmert(len(known))
                left = contrasts @ (row - table.means)[known]
                total += float(left @ np.linalg.solve(_within(covariance[np.ix_(known, known)], contrasts), left))
                freedom += len(known) - 1
        freedom = max(freedom, 0.0)
        found.append(TableSpread(table.table, total / freedom if freedom else 0.0, freedom))
    return found


def _contrasts(table: Deviations) -> _Contrasts:
    contrasts = linalg.helmert(len(table.networks))
    parts = target_parts([described(name) for name in table.networks], table.means)
    return _Contrasts(
        table.table, (table.values - table.means) @ contrasts.T, np.stack([_within(part, contrasts) for part in parts])
    )


def _within(covariance: np.ndarray, contrasts: np.ndarray) -> np.ndarray:
    return contrasts @ covariance @ contrasts.T


def _negative_likelihood(logs: np.ndarray, tables: Sequence[_Contrasts]) -> tuple[float, np.ndarray]:
    """With its gradient in log θ and log κ."""
    values = np.exp(logs)
    theta, kappa = values[:-1], float(values[-1])
    total, gradient = 0.0, np.zeros(len(logs))
    for _, rows, parts in tables:
        m, p = len(rows) - 1, rows.shape[1]
        covariance = np.tensordot(theta, parts, axes=1)
        prior, after = kappa * covariance, kappa * covariance + rows.T @ rows
        nu = kappa + p + 1
        logs_of = [float(np.linalg.slogdet(each)[1]) for each in (prior, after)]
        halves = -np.arange(p) / 2  # log Γ_p(x) = const + Σ log Γ(x − j/2)
        total += float(special.gammaln((nu + m) / 2 + halves).sum() - special.gammaln(nu / 2 + halves).sum())
        total += nu / 2 * logs_of[0] - (nu + m) / 2 * logs_of[1]
        pull = nu / 2 * np.linalg.inv(prior) - (nu + m) / 2 * np.linalg.inv(after)
        gradient[:-1] += kappa * np.tensordot(parts, pull, axes=2)
        digammas = special.digamma((nu + m) / 2 + halves).sum() - special.digamma(nu / 2 + halves).sum()
        gradient[-1] += 0.5 * (digammas + logs_of[0] - logs_of[1]) + float((pull * covariance).sum())
    return -total, -gradient * values


def _tail(tables: Sequence[_Contrasts], effects: TargetEffects) -> float:
    """τ, from each group of targets given the others of its table."""
    found = [pair for table in tables for pair in _surprises(table, effects)]
    squares, sizes = np.array(found).T

    def negative_likelihood(log: float) -> float:
        tau = float(np.exp(log))
        shape = (tau + sizes) / 2
        logs = special.gammaln(shape) - special.gammaln(tau / 2) - sizes / 2 * np.log(tau - 2)
        return -float((logs - shape * np.log1p(squares / (tau - 2))).sum())

    bounds = np.log(LEAST_TAU), np.log(MOST_TAU)
    return float(np.exp(optimize.minimize_scalar(negative_likelihood, bounds=bounds, method="bounded").x))


def _surprises(table: _Contrasts, effects: TargetEffects) -> list[tuple[float, int]]:
    """xᵀA⁻¹x of each group of targets with A expected from the others, and the number of contrasts."""
    number, p = table.rows.shape
    covariance = np.tensordot(effects.variances, table.parts, axes=1)
    found: list[tuple[float, int]] = []
    for group in range(number if number > 2 else 0):
        others = np.delete(table.rows, group, axis=0)
        left = table.rows[group] - others.mean(axis=0)
        rest, m = others - others.mean(axis=0), number - 2
        square = float((rest @ np.linalg.inv(covariance) * rest).sum()) / (m * p)
        factor = table_variance(TableSpread(table.table, square, m * p), effects.typical, effects.freedom)
        kappa = effects.concentration
        expected = (kappa * factor * covariance + rest.T @ rest) / (kappa + m) * number / (number - 1)
        found.append((float(left @ np.linalg.solve(expected, left)), p))
    return found
