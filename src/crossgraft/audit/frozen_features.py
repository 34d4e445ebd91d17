"""Features of a frozen network without an artefact and with it, and how far the artefact reaches them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from crossgraft.audit.confounded import Confounded
from crossgraft.audit.detectability import detectability
from crossgraft.audit.outcomes import Reach, input_rms
from crossgraft.audit.sweep import Sweep
from crossgraft.data import Dataset
from crossgraft.edit.edits import Editing
from crossgraft.features import extract_features
from crossgraft.models import Backbone


class BothFeatures(NamedTuple):
    """Features without the artefact and with it.

    Attributes:
        clean: (n, d) of all images as they are.
        edited: (n, d) with the artefact where it is needed, else as they are.
        reach: How much of the artefact is left at the input and in the features.
    """

    clean: Float[np.ndarray, "num_images num_features"]
    edited: Float[np.ndarray, "num_images num_features"]
    reach: Reach


def both_features(sweep: Sweep, backbone: Backbone, confounded: Confounded, before: Editing | None = None) -> BothFeatures:
    """Features of all images, and of those that may carry the artefact once more with it.

    Args:
        sweep: What stays the same from model to model.
        backbone: The network.
        confounded: The artefact.
        before: Edit of every image that comes after the artefact and before the network, such as one that takes cues away.

    Cost: one pass over all images and one over those that may carry the artefact, unless their features are in the cache; the
    five logistic regressions of the probe.
    """
    rows, clean, edited = sweep.rows, confounded.clean, confounded.edited
    if before is not None:
        clean, edited = clean.edited(before), edited.edited(before)
    needed = rows.may_carry(sweep.options.negatives)
    found = frozen_features(sweep, backbone, clean)
    changed = found.copy()
    # the same pixels in another batch may give other last digits, and an edit that changes nothing would be seen
    differ = np.array([one != other for one, other in zip(clean.image_digests, edited.image_digests, strict=True)])
    if (needed & differ).any():
        changed[needed & differ] = frozen_features(sweep, backbone, edited.take(np.flatnonzero(needed & differ)))
    groups = rows.dataset.groups
    reach = Reach(
        detectability(found[needed], changed[needed], None if groups is None else groups[needed]),
        input_rms(clean.take(rows.test), edited.take(rows.test), backbone.preprocessing),
    )
    return BothFeatures(found, changed, reach)


def frozen_features(sweep: Sweep, backbone: Backbone, images: Dataset) -> Float[np.ndarray, "num_images num_features"]:
    """Penultimate features, from the cache where they are there."""
    options = sweep.options
    found = extract_features(
        images,
        backbone,
        cache_dir=options.cache_dir,
        batch_size=options.batch_size,
        num_threads=sweep.num_threads,
        reporter=sweep.reporter,
    )
    return np.asarray(found.features)
