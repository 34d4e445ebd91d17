"""ETran: a mix of energy and a linear discriminant, scaled over the zoo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from crossgraft.scores._energy import energy_of
from crossgraft.scores._lda import WithinClass, posterior_of, shrinkage_of, with_enough_digits
from crossgraft.scores._score import Parts, scale_over_zoo, zoo_score
from crossgraft.scores._statistics import SHARED, Statistics
from crossgraft.types import Features, Labels

ENERGY_WEIGHT = 0.15
"""Weight of the energy in the sum, as released for classification; the discriminant has the rest."""


def combine(parts: Sequence[Mapping[str, float]]) -> list[float]:
    """0.15 · energy + 0.85 · discriminant, each scaled to [0, 1] over the models."""
    energies = scale_over_zoo([part["energy"] for part in parts])
    discriminants = scale_over_zoo([part["discriminant"] for part in parts])
    return [
        ENERGY_WEIGHT * of_energy + (1 - ENERGY_WEIGHT) * of_classes
        for of_energy, of_classes in zip(energies, discriminants, strict=True)
    ]


@zoo_score(
    combine=combine,
    title="ETran",
    reference="Gholami, Akbari, Wang, Koohpayegani, Pirsiavash et al., ETran: Energy-Based Transferability Estimation, "
    "ICCV 2023, eqs. 4–10",
    cost="one Gram matrix and one Cholesky factorisation of size min(n, d), then O(n·d·C)",
)
def etran(
    features: Features,
    labels: Labels,
    *,
    lda: Literal["true", "released"] = "true",
    fraction: float = 0.005,
    statistics: Statistics = SHARED,
) -> Parts:
    """Energy of the features and mean posterior of the true class, per model; ``combine`` mixes them over the zoo.

    Args:
        features: (n, d).
        labels: (n,).
        lda: ``true``: the shrunk linear discriminant of SFDA's first stage. ``released``: what the published code
            computes, softmax(x μ_c − ½ ‖μ_c‖² + ln p_c), a nearest class mean.
        fraction: Share of the images, those of lowest energy, whose energy is averaged; at least one image.
        statistics: Shared statistics of the same features and labels.

    Returns:
        The parts ``energy`` and ``discriminant``. Combined: in [0, 1]; only comparable within one zoo.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        UsageError: Unknown ``lda``, or ``fraction`` out of range.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([10.0 * y, np.linspace(-1, 1, 40)])
        >>> parts = [etran.parts(features=X, labels=y), etran.parts(features=X[:, 1:], labels=y)]
        >>> [round(value, 2) for value in etran.combine(parts)]
        [1.0, 0.0]
    """
    posterior = with_enough_digits(_shrunk_posterior if lda == "true" else _nearest_mean, statistics)
    discriminant = posterior[np.arange(statistics.num_samples), statistics.targets].mean()
    lowest = energy_of(statistics.label_free.features, fraction=fraction).lowest
    return Parts({"energy": lowest, "discriminant": discriminant}, warnings=statistics.warnings)


def _shrunk_posterior(statistics: Statistics) -> np.ndarray:
    within = WithinClass.of(statistics)
    return posterior_of(within.log_joint(shrinkage_of(within)))


def _nearest_mean(statistics: Statistics) -> np.ndarray:
    return posterior_of(WithinClass.of(statistics).log_joint_of_nearest_mean())
