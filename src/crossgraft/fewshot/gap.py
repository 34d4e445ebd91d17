"""The gap between images and their prototypes: how far apart the two clouds of unit vectors lie."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from crossgraft.errors import UsageError
from crossgraft.types import Features

Weighting = Literal["instance", "class"]


class Gap(NamedTuple):
    """‖Δ‖ by both weightings, between 0 and 2.

    Attributes:
        by_instance: Each image counts its prototype once, as in the figures of CoPA.
        by_class: Each prototype counts once, as in the formula of its slides.
    """

    by_instance: float
    by_class: float


class GapShift(NamedTuple):
    """The gap of the features as they come, and of what the head makes of them."""

    before: Gap
    after: Gap


def gap(instances: Features, prototypes: Features, labels: np.ndarray, *, weighting: Weighting = "instance") -> float:
    """‖Δ‖₂, Δ the mean unit vector of the images minus that of the prototypes.

    Args:
        instances: (n, d) what a head makes of images.
        prototypes: (C, d) what it makes of the prototypes.
        labels: (n,) the row of ``prototypes`` that belongs to each image.
        weighting: ``instance``: a prototype counts as often as it has images, as the code behind the figures of CoPA does;
            ``class``: once, as its formula says. Both are the same where all classes have equally many images.

    Raises:
        UsageError: The weighting is not known.

    Source: Tian et al., Mind the Gap Between Prototypes and Images in Cross-domain Finetuning, NeurIPS 2024.

    Example:
        >>> images, centre = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 1.0]])
        >>> round(gap(images, centre, np.array([0, 0])), 4)
        0.2929
    """
    if weighting not in ("instance", "class"):
        raise UsageError(f"weighting must be instance or class, got {weighting!r}.")
    both = gap_of(_tensor(instances, np.float64), _tensor(prototypes, np.float64), _tensor(labels, np.int64))
    return both.by_instance if weighting == "instance" else both.by_class


def _tensor(values: Any, kind: type[np.float64] | type[np.int64]) -> Tensor:
    """From any array or table: half precision is too coarse for means, and torch takes no reversed views."""
    return torch.from_numpy(np.require(values, kind, ["C", "W"]))


def gap_of(
    instances: Float[Tensor, "rows width"], prototypes: Float[Tensor, "num_classes width"], classes: Tensor
) -> Gap:
    """By both weightings."""
    images, centres = torch.nn.functional.normalize(instances), torch.nn.functional.normalize(prototypes)
    mean = images.mean(dim=0)
    return Gap(
        float(torch.linalg.vector_norm(mean - centres[classes].mean(dim=0))),
        float(torch.linalg.vector_norm(mean - centres.mean(dim=0))),
    )
