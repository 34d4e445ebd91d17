"""Penultimate features of two models by every measure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from crossgraft.compare.record import Measure, MeasuredFeatures
from crossgraft.errors import NotApplicable
from crossgraft.seeding import generator
from crossgraft.similarity import cca, linear_cka, procrustes, pwcca, rbf_cka, rsa, svcca

Features = Float[np.ndarray, "num_images _"]
MOST_IN_PAIRS = 2000
"""Images that measures of all pairs of images are of, at most; more are drawn from."""


def measure_features(
    x: Features, y: Features, untrained: tuple[Features, Features] | None, *, seed: int
) -> list[MeasuredFeatures]:
    """Every measure of two sets of features, beside that of two untrained networks.

    Args:
        x: Features of the first model.
        y: Features of the second.
        untrained: Features of two untrained networks; None where there are none.
        seed: Random seed of the images that measures of pairs are of.

    Raises:
        DataError: A number is not finite, or the numbers of rows differ.

    Cost: that of the measures; n² for at most ``MOST_IN_PAIRS`` images.
    """
    drawn = _drawn(len(x), seed)
    some = "" if drawn is None else f"of {MOST_IN_PAIRS} images drawn from {len(x)}"
    rows: list[MeasuredFeatures] = []
    for measure, (compute, in_pairs) in _MEASURES.items():
        picked = drawn if in_pairs else None
        value, reason, notes = _computed(compute, _some(x, picked), _some(y, picked))
        floor = None if untrained is None else _computed(compute, *(_some(side, picked) for side in untrained))[0]
        notes += [some] if picked is not None and some else []
        rows.append(MeasuredFeatures(measure=measure, value=value, untrained=floor, reason=reason, notes=notes))
    return rows


def _drawn(num_images: int, seed: int) -> np.ndarray | None:
    if num_images <= MOST_IN_PAIRS:
        return None
    return np.sort(generator(seed, "pairs of images").choice(num_images, MOST_IN_PAIRS, replace=False))


def _some(side: Features, rows: np.ndarray | None) -> Features:
    return side if rows is None else side[rows]


def _computed(
    compute: Callable[[Features, Features], float], x: Features, y: Features
) -> tuple[float | None, str | None, list[str]]:
    """Value, why there is none, and warnings."""
    try:
        found = compute(x, y)
    except NotApplicable as error:
        return None, str(error), []
    return float(found), None, list(getattr(found, "warnings", ()))


_MEASURES: dict[Measure, tuple[Callable[[Features, Features], float], bool]] = {
    "cka": (linear_cka, False),
    "cka_debiased": (lambda x, y: linear_cka(x, y, debiased=True), False),
    "rbf_cka": (rbf_cka, True),
    "cca": (cca, False),
    "svcca": (svcca, False),
    "pwcca": (pwcca, False),
    "pwcca_reversed": (lambda x, y: pwcca(y, x), False),
    "procrustes": (procrustes, False),
    "rsa": (rsa, True),
    "rsa_euclidean": (lambda x, y: rsa(x, y, distance="euclidean"), True),
}
"""Measure → how it is computed, and whether it looks at all pairs of images."""
