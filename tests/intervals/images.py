"""Images that are drawn: classes, scores and probabilities, alone or by patient, for one model or two."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import expit

Rng = np.random.Generator


def distance(area: float) -> float:
    """Between two normal distributions of variance 1 that have this AUC."""
    return float(np.sqrt(2) * stats.norm.ppf(area))


class Patients(NamedTuple):
    """How many there are, and how alike their images.

    Attributes:
        positive: Patients of the positive class.
        negative: Those of the other.
        images: Images of each, or the fewest and the most.
        alike: Intra-class correlation.
    """

    positive: int
    negative: int
    images: int | tuple[int, int] = 1
    alike: float = 0.0

    def draw(self, rng: Rng) -> tuple[np.ndarray, np.ndarray | None]:
        """Classes, and the patient of each image; None where every patient has one."""
        number = self.positive + self.negative
        if self.images == 1:
            return np.arange(number) < self.positive, None
        few, most = (self.images, self.images) if isinstance(self.images, int) else self.images
        groups = np.repeat(np.arange(number), rng.integers(few, most + 1, size=number))
        return groups < self.positive, groups

    def noise(self, rng: Rng, groups: np.ndarray | None, num_images: int) -> np.ndarray:
        """Of variance 1, part of it that of patients."""
        if groups is None:
            return rng.normal(size=num_images)
        of_patients = rng.normal(size=self.positive + self.negative)[groups]
        return np.sqrt(self.alike) * of_patients + np.sqrt(1 - self.alike) * rng.normal(size=num_images)


def two_scores(rng: Rng, noise: np.ndarray, correlation: float) -> np.ndarray:
    """Noise of a second model, correlated with that of the first."""
    return correlation * noise + np.sqrt(1 - correlation**2) * rng.normal(size=len(noise))


def probabilities(rng: Rng, num_images: int, prevalence: float, area: float, temperature: float) -> tuple:
    """Classes, and probabilities of both that are right at a temperature of 1, too sure below it."""
    truth = rng.random(num_images) < prevalence
    apart = distance(area)
    logits = apart * (rng.normal(size=num_images) + apart * truth) - apart**2 / 2 + np.log(prevalence / (1 - prevalence))
    positive = np.clip(expit(logits / temperature), 1e-12, 1 - 1e-12)
    return truth.astype(np.int64), np.column_stack([1 - positive, positive])


def shares_by_group(rng: Rng, num_groups: int, images: int | tuple[int, int], share: float, alike: float) -> tuple:
    """Right or wrong, and groups; the share that is right differs between groups (beta distributed)."""
    few, most = (images, images) if isinstance(images, int) else images
    groups = np.repeat(np.arange(num_groups), rng.integers(few, most + 1, size=num_groups))
    if alike:
        spread = 1 / alike - 1
        of_group = rng.beta(share * spread, (1 - share) * spread, size=num_groups)
    else:
        of_group = np.full(num_groups, share)
    return rng.random(len(groups)) < of_group[groups], groups
