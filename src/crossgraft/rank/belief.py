"""What is believed of the final result of every network on a target, from all that is known, and after each observation.

A joint distribution, normal for each value of how unlike the others the target is (``scale_mixture``). Before anything is
observed it is ``standing`` (known results elsewhere, ImageNet). An observation of kind k of network m is

    y_mk = level_k + scale_k · (c_k · ω_m + d_k · e_m + ε_mk) + sampling error,    result z_m = ω_m + e_m + η_m

with slopes and noise from ``kinds``. Level and scale of a kind are unknown and shared by its observations: the level has a flat
prior and is conditioned on jointly, so that a rung on a chosen few is read against what was believed of those few. The scale is
the mean under its restricted likelihood (Patterson and Thompson, Biometrika 1971); over that of the full results, which sets the
unit of the belief too, a mixture is taken instead. A cheaper run of one family counts for nothing beside a closer one of
the same network but what the closer one lacks: their errors are nested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy import special

from crossgraft.errors import DataError, UnknownNameError
from crossgraft.rank.aggregate import NUM_DRAWS, PerModel
from crossgraft.rank.conditioning import Observed
from crossgraft.rank.foresight import Foresight
from crossgraft.rank.known_names import full_name
from crossgraft.rank.prior_of_names import prior_of_names
from crossgraft.rank.scale_mixture import BeliefPart, mixture
from crossgraft.rank.standing import Standing
from crossgraft.records import KnownResult
from crossgraft.seeding import generator

FULL = "full"
Unit = Literal["metric", "normal score"]


class Observation(NamedTuple):
    """One number that was measured of one network on the target.

    Attributes:
        model: Name as in ``Belief.models``.
        kind: ``score:logme``, ``low:epochs=0.2``, ``low:size=0.5``, ``curve:epoch=3``, ``full``.
        value: In the metric's (or the score's) own unit, larger = better.
        standard_error: Standard error of the value, in its unit, without what is the same for all networks; None = unknown, taken
            as 0.
    """

    model: str
    kind: str
    value: float
    standard_error: float | None


@dataclass(frozen=True, eq=False)
class Belief:
    """Joint distribution of the networks' final results on the target; larger = better.

    Attributes:
        models: Names.
        mean: Expected result.
        covariance: Its covariance.
        unit: ``metric`` once a full result is known, else ``normal score`` (0 = middling, 1 = one standard deviation).
        spoke: Publications (or commands) with results of exactly these weights, for each model; empty: relatives and ImageNet.
        observations: All that it was conditioned on.
        without_group: Group of targets that nothing was learned from: that of the target.
        metric: Metric of the results, where it is known.
        prior: Standing before the observations.
        parts: Normal distributions whose mixture it is; none: one, of this mean and covariance.
        factor: λ that is expected, how much more networks vary on this target than on others; 1 before anything was observed.
    """

    models: tuple[str, ...]
    mean: Float64[np.ndarray, " num_models"]
    covariance: Float64[np.ndarray, "num_models num_models"]
    unit: Unit = "normal score"
    spoke: tuple[tuple[str, ...], ...] = ()
    observations: tuple[Observation, ...] = ()
    without_group: str | None = None
    metric: str | None = None
    prior: Standing | None = field(default=None, repr=False)
    parts: tuple[BeliefPart, ...] = field(default=(), repr=False)
    factor: float = 1.0

    def after(self, observations: Sequence[Observation]) -> Belief:
        """The belief given these observations too; in any order and in any portions the same.

        Of two observations of one kind of one network, the later one counts.

        Raises:
            UnknownNameError: An observation is of another network.
            DataError: A value is not finite, or an error is negative.
        """
        latest = {(each.model, each.kind): each for each in self.observations}
        for each in observations:
            if each.model not in self.models:
                raise UnknownNameError("model of an observation", each.model, self.models)
            if not np.isfinite(each.value) or (each.standard_error is not None and not each.standard_error >= 0):
                raise DataError(f"The observation {each.kind} of {each.model} needs a finite value and an error ≥ 0.")
            latest[each.model, each.kind] = each
        every = tuple(latest[key] for key in sorted(latest))
        prior = self._standing()
        found = mixture(prior, _by_kind(self.models, every), without_group=self.without_group, metric=self.metric)
        mean, covariance = found.moments()
        unit: Unit = "metric" if found.in_metric else "normal score"
        changed = replace(self, mean=mean, covariance=covariance, unit=unit, observations=every, prior=prior)
        return replace(changed, parts=found.parts, factor=found.factor)

    def foresight(self) -> Foresight:
        """What observations that are still to come will tell."""
        prior = self._standing()
        prior = prior._replace(specific=self.factor * prior.specific, freedom=np.inf)
        kinds = _by_kind(self.models, self.observations)
        return Foresight(prior, kinds, without_group=self.without_group, metric=self.metric)

    def probability_best(self, *, seed: int) -> PerModel:
        """Chance of each network of being the best of all, from 4 000 draws."""
        best = self._draws(seed).argmax(axis=1)
        return np.bincount(best, minlength=len(self.models)) / NUM_DRAWS

    def expected_regret(self, model: str, *, seed: int) -> float:
        """How much worse ``model`` is than the best of all, on average over 4 000 draws; in ``unit``, ≥ 0."""
        draws = self._draws(seed)
        return float((draws.max(axis=1) - draws[:, self._place(model)]).mean())

    def probability_better(self, a: str, b: str) -> float:
        """Chance that ``a`` is better than ``b``; ½ where they are the same."""
        first, second = self._place(a), self._place(b)
        return sum(weight * _chance(mean, c, first, second) for weight, mean, c in self._parts())

    def _place(self, model: str) -> int:
        if model not in self.models:
            raise UnknownNameError("model", model, self.models)
        return self.models.index(model)

    def _standing(self) -> Standing:
        if self.prior is not None:
            return self.prior
        return Standing(self.mean, self.covariance, np.zeros_like(self.covariance), np.inf, self.spoke)

    def _parts(self) -> tuple[BeliefPart, ...]:
        return self.parts or (BeliefPart(1.0, self.mean, self.covariance),)

    def _draws(self, seed: int) -> Float64[np.ndarray, "num_draws num_models"]:
        """Draws of every part, as many as its weight says."""
        normal = generator(seed, "belief").normal(size=(NUM_DRAWS, len(self.models)))
        parts = self._parts()
        ends = np.rint(NUM_DRAWS * np.cumsum([part.weight for part in parts])).astype(int).tolist()
        drawn: list[np.ndarray] = []
        for part, start, end in zip(parts, [0, *ends[:-1]], ends, strict=True):
            values, vectors = np.linalg.eigh(part.covariance)
            root = vectors * np.sqrt(np.clip(values, 0.0, None))
            drawn.append(part.mean + normal[start:end] @ root.T)
        return np.concatenate(drawn)


def _chance(mean: np.ndarray, covariance: np.ndarray, first: int, second: int) -> float:
    """That the first of two normal numbers is the larger."""
    variance = covariance[first, first] + covariance[second, second] - 2 * covariance[first, second]
    difference = mean[first] - mean[second]
    if variance <= 0:
        return 0.5 if difference == 0 else float(difference > 0)
    return float(special.ndtr(difference / np.sqrt(variance)))


def believe(
    models: Sequence[str],
    *,
    known: Sequence[KnownResult] = (),
    target: str | None = None,
    metric: str | None = None,
    without: Sequence[str] = (),
) -> Belief:
    """What is believed of ``models`` on a target before anything is measured there.

    Args:
        models: Names of timm, torchvision or the hub; a name that nobody knows has a flat prior.
        known: The user's own results; published ones are known anyway. Own ones weigh more.
        target: Name of the target; results on it, or on a related one, are left out.
        metric: Where a publication has several metrics, the one that counts.
        without: Publications (``KnownResult.origin``) that are left out.

    Raises:
        DataError: No model, or two of one name.

    Cost: about a second the first time; the published tables are read once.
    """
    names = tuple(models)
    if not names or len(set(names)) != len(names):
        raise DataError("A belief needs at least one model, and each name once.")
    prior, group = prior_of_names(
        [full_name(name) for name in names], known, target=target, metric=metric, without=without
    )
    covariance = prior.general + prior.specific
    return Belief(names, prior.mean, covariance, "normal score", prior.spoke, (), group, metric, prior).after(())


def _by_kind(models: Sequence[str], observations: Sequence[Observation]) -> list[Observed]:
    """Observations as arrays, one entry a kind; kinds in the order of their names."""
    found: list[Observed] = []
    for kind in dict.fromkeys(sorted(each.kind for each in observations)):
        rows = [each for each in observations if each.kind == kind]
        places = np.array([models.index(each.model) for each in rows])
        errors = np.array([each.standard_error or 0.0 for each in rows])
        found.append(Observed(kind, places, np.array([each.value for each in rows]), errors))
    return found
