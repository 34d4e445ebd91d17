"""How far an artefact pulls answers towards a class, and whether that is more than shams and the starting network explain."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int
from scipy import stats

from crossgraft.choice import spell
from crossgraft.edit._image_edit import ImageEdit, ShamKind
from crossgraft.errors import DataError
from crossgraft.metrics import MetricValue
from crossgraft.seeding import generator
from crossgraft.types import Groups

NUM_SHAMS = 8
"""Draws of a sham that a verdict is made of."""
IN_WORDS: dict[ShamKind, str] = {
    "shuffled": "its pixels change places within its smallest rectangle, and signs at random",
    "scrambled": "its frequencies get random phases, and its mean a random sign",
}
"""What a sham does with the change of the artefact."""
LARGEST_MISMATCH = 0.1
"""A sham fits an image where the root mean square of its change is that of the artefact, up to this share."""
_LARGEST_GAIN, _STEPS, _CLOSE = 4.0, 12, 0.01

Change = Float64[np.ndarray, "height width channels"]


@dataclass
class Sham:
    """One draw of a sham, as what ``Dataset.edited`` takes.

    The change that the artefact makes in an image, clipped and rounded, is drawn anew for each image. ``shuffled``: its pixels
    change places within the smallest rectangle that holds it, and each a sign at random. ``scrambled``: its spectrum gets other
    phases, so that every frequency keeps its power, and its mean a sign at random. A model that learned "something bright there"
    is thereby told from one that any change moves. Where such a change does not fit the image (nothing is darker than black), it
    keeps its signs. The result is made stronger or weaker until the root mean square of what is left after clipping and rounding
    is that of the artefact.

    Args:
        edit: The artefact.
        draw: Number of the draw.
        strength: Multiple of what the artefact changes.
        seed: Random seed of the artefact and of the draw.

    Attributes:
        misfits: Identities of images that no sham fits, because too much of the change is clipped; they are returned with the
            strongest that does, and are no evidence.

    Raises:
        DataError: The artefact has no sham.
    """

    edit: ImageEdit
    draw: int
    strength: float = 1.0
    seed: int = 0
    misfits: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        if self.edit.sham is None:
            raise DataError(f"{self.edit.name} has no sham: {self.edit.why_no_sham}.")

    def __call__(self, pixels: np.ndarray, identity: str) -> np.ndarray:
        """(height, width, 1 or 3) with the sham, of the same type."""
        name = spell(self.edit)
        _, info = self.edit(pixels, generator(self.seed, name, identity), strength=self.strength)
        if info.rms == 0:
            return pixels
        nearest, mismatch = pixels, np.inf
        for has_signs in (True, False):
            rng = generator(self.seed, name, "sham", self.draw, identity)
            draw = _scrambled if self.edit.sham == "scrambled" else _shuffled
            tried, off = _as_strong(pixels, draw(info.residual, rng, has_signs=has_signs), info.rms)
            if off < mismatch:
                nearest, mismatch = tried, off
            if mismatch <= LARGEST_MISMATCH:
                return nearest
        self.misfits.add(identity)
        return nearest


def refuse_misfits(misfits: int, num_images: int, name: str) -> None:
    """Refuse shams that do not fit the images.

    Raises:
        DataError: They are more than one in ten.
    """
    if misfits > LARGEST_MISMATCH * num_images:
        raise DataError(
            f"Shams of {name} do not fit {misfits} of {num_images} images: drawn anew, too much of the change is clipped at "
            "black or white. Lower --strength, or move the artefact."
        )


def _rectangle(residual: Change) -> tuple[slice, slice]:
    """The smallest one that holds everything that changed."""
    changed = (residual != 0).any(axis=2)
    rows, columns = (np.flatnonzero(changed.any(axis=axis)) for axis in (1, 0))
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)


def _shuffled(residual: Change, rng: np.random.Generator, *, has_signs: bool) -> Change:
    box, shuffled = _rectangle(residual), np.zeros_like(residual)
    inside = residual[box]
    pixels = inside.reshape(-1, inside.shape[2])[rng.permutation(inside.shape[0] * inside.shape[1])]
    signs = rng.choice([-1.0, 1.0], (len(pixels), 1)) if has_signs else 1.0
    shuffled[box] = (signs * pixels).reshape(inside.shape)
    return shuffled


def _scrambled(residual: Change, rng: np.random.Generator, *, has_signs: bool) -> Change:
    """The same power at every frequency, with the phases of real noise."""
    turns = np.exp(1j * np.angle(np.fft.fft2(rng.standard_normal(residual.shape[:2]))))
    turns[0, 0] = rng.choice([-1.0, 1.0]) if has_signs else 1.0
    return np.fft.ifft2(np.fft.fft2(residual, axes=(0, 1)) * turns[:, :, None], axes=(0, 1)).real


def _as_strong(pixels: np.ndarray, change: Change, rms: float) -> tuple[np.ndarray, float]:
    """Pixels with the multiple of the change that is as strong as wanted after clipping, and by which share it is not.

    The root mean square grows with the multiple, so that halving an interval finds it; only what changes is looked at.
    """
    high = float(np.iinfo(pixels.dtype).max) if pixels.dtype.kind == "u" else 1.0
    box = _rectangle(change)
    given, part = pixels[box].astype(np.float64), change[box]
    wanted = rms * math.sqrt(pixels.size / given.size)

    def with_gain(gain: float) -> tuple[np.ndarray, float]:
        values = np.clip(given + gain * part, 0, high)
        values = np.rint(values) if pixels.dtype.kind == "u" else values
        return values, math.sqrt(float(np.mean((values - given) ** 2))) / wanted

    tried = [with_gain(1.0)]
    low, top = (1.0, _LARGEST_GAIN) if tried[0][1] < 1 else (0.0, 1.0)
    while len(tried) < _STEPS and abs(tried[-1][1] - 1) > _CLOSE:
        middle = (low + top) / 2
        tried.append(with_gain(middle))
        low, top = (middle, top) if tried[-1][1] < 1 else (low, middle)
    best, reached = min(tried, key=lambda one: abs(one[1] - 1))
    changed = pixels.copy()
    changed[box] = best.astype(pixels.dtype)
    return changed, abs(reached - 1)


Shifts = Float64[np.ndarray, " num_images"]
"""Change of the logit of each image that gets an edit, in standard deviations of the logit within a class."""
Draws = Float64[np.ndarray, "num_draws num_images"]
Positive = Bool[np.ndarray, " num_images"]

LEAST_PULL = 0.05
"""A smaller pull is no reliance, however sure it is."""
_CONFIDENCE = 0.975


class Pull(NamedTuple):
    """What an artefact does to the answers of a model, in standard deviations of the logit within a class.

    Attributes:
        of_model: Mean shift, both classes counting the same, with its interval over images; above 0 towards the class in
            question.
        of_positives: Mean shift of positives.
        of_negatives: Mean shift of negatives.
        over_start: Pull minus that of heads on the starting network, with an interval over images and over one more head; None:
            it was not asked.
        over_shams: Pull minus the mean pull of shams. None: it was not asked, or there is no sham.
    """

    of_model: MetricValue
    of_positives: float
    of_negatives: float
    over_start: MetricValue | None = None
    over_shams: MetricValue | None = None

    @property
    def direction(self) -> int:
        """1 towards the class in question, −1 away from it."""
        return 1 if self.of_model.value >= 0 else -1

    @property
    def may_rely(self) -> bool:
        """Whether it is large and sure enough that shams and the starting network are worth asking."""
        return abs(self.of_model.value) >= LEAST_PULL and _beyond(self.of_model, self.direction)

    @property
    def is_beyond_start(self) -> bool:
        """Whether it is more than one more head on the starting network would have."""
        return self.may_rely and self.over_start is not None and _beyond(self.over_start, self.direction)

    @property
    def relies(self) -> bool:
        """Whether the model learned the artefact as a cue.

        The pull exceeds that of heads on the starting network, and that of shams, each with all of its interval. Without the
        starting network it cannot be told.
        """
        return self.is_beyond_start and self.over_shams is not None and _beyond(self.over_shams, self.direction)


def shifts(clean: Shifts, edited: Float64[np.ndarray, "*draws num_images"], is_positive: Positive) -> np.ndarray:
    """Change of each logit, over the standard deviation of clean logits within a class, pooled over both classes.

    Args:
        clean: (n,) logits of the images as they are.
        edited: (n,) or (draws, n) logits of the same images with an edit.
        is_positive: (n,) whether an image is of the class in question.

    Raises:
        DataError: A class has fewer than two images, or all logits within both classes are equal.
    """
    variances = [float(clean[of_class].var(ddof=1)) for of_class in _classes(is_positive)]
    spread = math.sqrt(sum(variances) / 2)
    if not spread > 0:
        raise DataError("All images of a class get the same answer, so that there is nothing to measure a shift by.")
    return (edited - clean) / spread


def pull_of(shift: Shifts, is_positive: Positive, groups: Groups | None = None) -> Pull:
    """The pull of an artefact on one model, from the shift of each image.

    Args:
        shift: (n,) from ``shifts``.
        is_positive: (n,).
        groups: Patient of each image; None takes the images as independent.

    Raises:
        DataError: A class has fewer than two images.
    """
    positives, negatives = _classes(is_positive)
    mean_shift = _mean(shift, None, is_positive, groups)
    return Pull(mean_shift, float(shift[positives].mean()), float(shift[negatives].mean()))


def beside_start(pull: Pull, shift: Shifts, of_heads: Draws, is_positive: Positive, groups: Groups | None = None) -> Pull:
    """The pull beside that of heads on the starting network.

    Args:
        pull: From ``pull_of``.
        shift: (n,) of the model.
        of_heads: (heads, n) shifts of the heads, each by its own standard deviation.
        is_positive: (n,).
        groups: Patient of each image.
    """
    return pull._replace(over_start=excess(shift, of_heads, is_positive, groups, of_one_more=True))


def beside_shams(pull: Pull, shift: Shifts, of_shams: Draws, is_positive: Positive, groups: Groups | None = None) -> Pull:
    """The pull beside that of shams.

    Args:
        pull: From ``pull_of`` or ``beside_start``.
        shift: (n,) of the model.
        of_shams: (draws, n) shifts of the model by shams.
        is_positive: (n,).
        groups: Patient of each image.
    """
    return pull._replace(over_shams=excess(shift, of_shams, is_positive, groups, of_one_more=False))


def excess(
    shift: Shifts, others: Draws, is_positive: Positive, groups: Groups | None = None, *, of_one_more: bool
) -> MetricValue:
    """Pull minus the mean pull of several draws of something else, of the same images, with an interval of 95 %.

    The variance is that of the paired differences over images, or patients, plus that of the draws: of their mean, or of that
    and one more draw. Degrees of freedom by Welch and Satterthwaite.

    Args:
        shift: (n,) of the model.
        others: (m, n) of at least two draws.
        is_positive: (n,).
        groups: Patient of each image; None takes the images as independent.
        of_one_more: Whether the question is if the model is unlike one more draw (a prediction interval), not unlike their mean.

    Raises:
        DataError: A class has fewer than two images, or there are fewer than two draws.
    """
    if len(others) < 2:
        raise DataError(f"A pull is compared with at least two draws, got {len(others)}.")
    of_draws = (others * _weights(is_positive)).sum(axis=1)
    variance = float(of_draws.var(ddof=1)) * ((1 if of_one_more else 0) + 1 / len(others))
    return _mean(shift - others.mean(axis=0), (variance, len(others) - 1), is_positive, groups)


def _mean(values: Shifts, of_draws: tuple[float, int] | None, is_positive: Positive, groups: Groups | None) -> MetricValue:
    """Mean of both classes' means, with the variance over units and that of draws (with its degrees of freedom) added up."""
    weights, centred = _weights(is_positive), values.astype(np.float64)
    value = float((weights * values).sum())
    for of_class in _classes(is_positive):
        centred = np.where(of_class, centred - values[of_class].mean(), centred)
    unit = np.arange(len(values)) if groups is None else np.unique(groups, return_inverse=True)[1]
    influence = np.bincount(unit, weights * centred)
    number = len(influence)
    fewest = min(len(np.unique(unit[of_class])) for of_class in _classes(is_positive))
    num_groups = None if groups is None else number
    if fewest < 2:
        note = "No interval: images of a class belong to one group, so nothing is known about other groups."
        return MetricValue(value, None, None, len(values), num_groups, note=note)
    parts = [(float((influence**2).sum()) * number / (number - 1), fewest - 1), *([of_draws] if of_draws else [])]
    variance = sum(part for part, _ in parts)
    inverse_freedom = sum(part**2 / freedom for part, freedom in parts)
    quantile = stats.t.ppf(_CONFIDENCE, variance**2 / inverse_freedom) if inverse_freedom else 0.0
    half = float(quantile) * math.sqrt(variance)
    return MetricValue(value, value - half, value + half, len(values), num_groups)


def _classes(is_positive: Positive) -> tuple[Positive, Positive]:
    positives = np.asarray(is_positive, dtype=bool)
    fewest = min(int(positives.sum()), int((~positives).sum()))
    if fewest < 2:
        raise DataError(f"A pull needs at least two images of each class; one has {fewest}.")
    return positives, ~positives


def _weights(is_positive: Int[np.ndarray, " n"] | Positive) -> Float64[np.ndarray, " n"]:
    """Both classes count the same, whatever their sizes."""
    positives, negatives = _classes(is_positive)
    return np.where(positives, 0.5 / positives.sum(), 0.5 / negatives.sum())


def _beyond(measured: MetricValue, direction: int) -> bool:
    """Whether the whole interval lies on this side of 0; without an interval, no."""
    end = measured.low if direction > 0 else measured.high
    return end is not None and direction * end > 0
