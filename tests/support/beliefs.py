"""A belief that a test can compute by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class PlainBelief:
    """Independent or correlated normal values of models, seen with the noise of each kind."""

    models: tuple
    mean: np.ndarray
    covariance: np.ndarray
    noise: dict = field(default_factory=dict)

    def after(self, observations):
        observations = [each for each in observations if np.isfinite(self.noise.get(each.kind.split("=")[0], np.inf))]
        if not observations:
            return self
        places = [self.models.index(each.model) for each in observations]
        variance = [
            self.noise[each.kind.split("=")[0]] ** 2 + (each.standard_error or 0.0) ** 2 for each in observations
        ]
        seen = self.covariance[np.ix_(places, places)] + np.diag(variance)
        gain = np.linalg.solve(seen, self.covariance[places]).T
        values = np.array([each.value for each in observations])
        mean = self.mean + gain @ (values - self.mean[places])
        return PlainBelief(self.models, mean, self.covariance - gain @ self.covariance[places], self.noise)

    def foresight(self):
        return self

    def says_something(self, kind):
        return np.isfinite(self.noise.get(kind.split("=")[0], np.inf))

    def moves(self, looks):
        now, found = self, []
        for look in looks:
            seen = [
                SimpleNamespace(model=self.models[at], kind=look.kind, value=0.0, standard_error=look.standard_error)
                for at in look.places
            ]
            after = now.after(seen)
            values, vectors = np.linalg.eigh(now.covariance - after.covariance)
            order = np.argsort(-values)[: len(seen)]
            found.append(vectors[:, order] * np.sqrt(np.clip(values[order], 0, None)))
            now = after
        return found

    def probability_better(self, first, second):
        one, other = self.models.index(first), self.models.index(second)
        variance = self.covariance[one, one] + self.covariance[other, other] - 2 * self.covariance[one, other]
        return float(stats.norm.cdf((self.mean[one] - self.mean[other]) / np.sqrt(max(variance, 1e-18))))

    def _draws(self, seed):
        return np.random.default_rng(seed).multivariate_normal(self.mean, self.covariance, size=2000)

    def probability_best(self, *, seed=0):
        return np.bincount(self._draws(seed).argmax(1), minlength=len(self.models)) / 2000

    def expected_regret(self, model, *, seed=0):
        draws = self._draws(seed)
        return float((draws.max(1) - draws[:, self.models.index(model)]).mean())


def plain_belief(means, *, deviation=1.0, noise=None):
    """``means`` by model, all as uncertain."""
    noise = {"full": 0.05, "curve:epoch": 0.5, "low:size": 0.4, "score:logme": np.inf} if noise is None else noise
    mean = np.array(list(means.values()), dtype=float)
    return PlainBelief(tuple(means), mean, np.eye(len(mean)) * deviation**2, noise)
