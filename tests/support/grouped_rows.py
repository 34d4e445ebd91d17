"""Frozen features with a disease and an artefact, for strategies against a shortcut."""

import numpy as np

from crossgraft.audit.mitigation import GroupedRows


def part(seed, number, agreement, width=12):
    """The disease is weak in the first feature, the artefact strong in the second, and goes with the label that often."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, number)
    artefact = np.where(rng.random(number) < agreement, labels, 1 - labels)
    features = rng.standard_normal((number, width))
    features[:, 0] += 2.4 * labels
    features[:, 1] += 3 * artefact
    return GroupedRows(features, labels, artefact)
