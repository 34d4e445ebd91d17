"""What observations that are still to come will tell of the networks' results, whatever their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from crossgraft.rank.conditioning import Observed, Read, Square, expected_scale, joint, read_kind, what_it_says
from crossgraft.rank.standing import Standing

SCALE_RESULTS = 4
"""Results that the expected scale counts for, where it is foreseen what further ones will tell; fixed, not fitted."""


class NextLook(NamedTuple):
    """Observations of one kind that are still to come.

    Attributes:
        kind: Their kind.
        places: Numbers of the networks.
        standard_error: Standard error of each, in the metric's unit; None counts as 0.
    """

    kind: str
    places: tuple[int, ...]
    standard_error: float | None


class Foresight:
    """What observations that are still to come will tell, whatever their values, in normal scores.

    Everything is in normal scores, full results too, so that a belief before the first of them and one after it can be compared.
    Only differences between networks mean something: a common level is not known.

    Attributes:
        mean: Expected normal score.
        covariance: Its covariance.
    """

    def __init__(
        self, prior: Standing, kinds: Sequence[Observed], *, without_group: str | None, metric: str | None = None
    ) -> None:
        self._prior, self._without_group, self._metric = prior, without_group, metric
        models = {each.kind: what_it_says(each.kind, without_group, metric) for each in kinds}
        several = [each for each in kinds if models[each.kind].says_something and len(each.places) > 1]
        read = [read_kind(prior, each, models[each.kind]) for each in several]
        centre, width = expected_scale(read)
        self._scale = centre * float(np.exp(width**2 / 2))  # the mean: where results differ much, more is at stake
        self._read = [self._steadied(each) for each in read]
        alone = [each for each in kinds if models[each.kind].says_something and len(each.places) == 1]
        self._read += [Read(each, models[each.kind], each.values, self._scale) for each in alone]
        self.mean, self.covariance = prior.mean, prior.general + prior.specific
        self._root, self._white = np.zeros((0, 0)), np.zeros((0, len(prior.mean)))
        self._kept: dict[tuple[tuple[str, float | None], ...], tuple[np.ndarray, Square]] = {}
        if self._read:
            cross, v, surprise = joint(prior, self._read)
            self._root = np.linalg.cholesky(v)
            self._white = np.linalg.solve(self._root, cross.T)
            self.mean = prior.mean + np.linalg.solve(self._root, surprise) @ self._white
            self.covariance = self.covariance - self._white.T @ self._white

    def says_something(self, kind: str) -> bool:
        """Whether an observation of this kind changes any belief."""
        return what_it_says(kind, self._without_group, self._metric).says_something

    def moves(self, looks: Sequence[NextLook]) -> list[Float64[np.ndarray, "num_models num_observed"]]:
        """How much each look moves the mean after those before it.

        With the Cholesky root L of the covariance of all observations and W = L⁻¹ Cov(observations, results), the rows W_j of
        one look are what it adds: the mean moves by W_jᵀ ξ with ξ ~ N(0, I), and the covariance falls by W_jᵀ W_j.
        """
        sizes = [len(look.places) for look in looks]
        number = len(self.mean)
        rows = np.concatenate([i * number + np.asarray(look.places) for i, look in enumerate(looks)])
        cross, v = self._of_all(tuple((look.kind, look.standard_error) for look in looks))
        white = np.linalg.solve(np.linalg.cholesky(v[np.ix_(rows, rows)]), cross[rows])
        return [part.T for part in np.split(white, np.cumsum(sizes)[:-1].tolist())]

    def _of_all(self, kinds: tuple[tuple[str, float | None], ...]) -> tuple[np.ndarray, Square]:
        """Covariance of looks at all networks with results, and their own, given what was seen; many ladders share it."""
        if kinds not in self._kept:
            every = tuple(range(len(self.mean)))
            new = [self._to_come(NextLook(kind, every, error)) for kind, error in kinds]
            cross, v, _ = joint(self._prior, [*self._read, *new])
            seen = len(self._root)
            known = np.linalg.solve(self._root, v[:seen, seen:]) if seen else np.zeros((0, len(v)))
            self._kept[kinds] = cross.T[seen:] - known.T @ self._white, v[seen:, seen:] - known.T @ known
        return self._kept[kinds]

    def _to_come(self, look: NextLook) -> Read:
        """A look as more of its kind, at the scale of those that were seen: their common level ties them together."""
        before = next((each for each in self._read if each.observed.kind == look.kind), None)
        model = what_it_says(look.kind, self._without_group, self._metric)
        scale = before.scale if before is not None else 1.0 if look.kind.startswith("score:") else self._scale
        errors = np.full(len(look.places), look.standard_error or 0.0)
        places, values = np.asarray(look.places, dtype=np.int64), np.zeros(len(look.places))
        return Read(Observed(look.kind, places, values, errors), model, values, scale)

    def _steadied(self, read: Read) -> Read:
        """With the expected scale as if it had been seen in some results: two that are alike by chance tell little of it."""
        if read.observed.family == "score":
            return read
        number = len(read.values) - 1
        logs = number * np.log(max(read.scale, 1e-12)) + SCALE_RESULTS * np.log(self._scale)
        return read._replace(scale=float(np.exp(logs / (number + SCALE_RESULTS))))
