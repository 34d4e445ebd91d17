"""PED: let overlapping classes push each other apart a little, then score."""

from __future__ import annotations

from typing import Literal

import numpy as np

from crossgraft.errors import UsageError
from crossgraft.scores._inputs import ScoreInputs
from crossgraft.scores._moments import ColumnMoments
from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import sum_by_class
from crossgraft.types import Features, Labels, SourceFeatures

Head = Literal["sfda", "logme", "nleep"]
_SMALLEST_DEVIATION = 1e-3
_COINCIDENT = 1e-15
_MOST_STEPS = 6
_EXIT_RATIO = 0.5
_BLOCK_ROWS = 64
_EXACT_SIZE = 4_000_000
"""Up to so many numbers the classes move in float64: rounding would fill directions that are empty."""


@score(
    title="PED",
    reference="Li, Hu, Ge, Shan and Duan, Exploring Model Transferability through the Lens of Potential Energy, "
    "ICCV 2023, eqs. 3–8",
    is_seeded=True,
    sees_reduced=True,
    cost="O(C²·d) per step, at most six, and the score that follows",
)
def ped(
    features: Features,
    labels: Labels,
    source_features: SourceFeatures | None = None,
    *,
    head: Head = "sfda",
    radius: float = 0.6,
    time_step: float = 0.1,
    stiffness: float = 1.0,
    variant: Literal["evidence", "released"] = "evidence",
    seed: int = 0,
) -> ScoreValue:
    """Another score after the classes were moved by the force of their overlaps.

    In standardised coordinates, class c has the centre μ_c and the radius R_c = √Σ_j var_cj. Two classes overlap by
    F = max(ν(R_c+R_c') − ‖μ_c−μ_c'‖, 0) and move apart by min(½Δt² k F, F) along the line between them. Steps repeat, at
    most six, while the movement is more than half of the first one. Whole classes move, so only centres are followed.

    Args:
        features: (n, d); never written to.
        labels: (n,).
        source_features: Features of source-domain images (m, d), whose mean and standard deviation are the units; by
            default those of the target itself, with a warning.
        head: The score that follows: ``sfda``, ``logme`` or ``nleep``.
        radius: ν, in units of the classes' radii.
        time_step: Δt.
        stiffness: k.
        variant: Variant of LogME; ``released`` repeats published tables for n < d.
        seed: Random seed of N-LEEP.

    Returns:
        The score of ``head`` on the moved features; ``parts`` say how many steps were taken and how far classes moved.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        UsageError: Unknown ``head``, or a setting that is not positive.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([0.5 * y, np.sin(np.arange(40))])
        >>> ped(features=X, labels=y, radius=2.0).parts["steps"]
        6.0
    """
    if min(radius, time_step, stiffness) <= 0:
        raise UsageError(f"`radius`, `time_step` and `stiffness` must be positive: {radius}, {time_step}, {stiffness}.")
    if features.size <= _EXACT_SIZE:
        features = features.astype(np.float64)
    mean, deviation, warnings = _units(features, source_features)
    counts = np.bincount(labels).astype(np.float64)
    means = sum_by_class(features, labels, len(counts)) / counts[:, None]
    centres = (means - mean) / deviation
    radii = np.sqrt(np.bincount(labels, weights=_squared_distances(features, means, deviation, labels)) / counts)
    strength = min(0.5 * time_step**2 * stiffness, 1.0)
    moved, num_steps = _push_apart(centres, radii, counts, radius, strength)
    shift = ((moved - centres) * deviation).astype(features.dtype)
    inputs = ScoreInputs(features=features + shift[labels], labels=labels)
    options = {"nleep": {"seed": seed}, "logme": {"variant": variant}}.get(head, {})
    from crossgraft.scores import SCORES  # the registry holds this score too, so it exists only after this module

    value = SCORES.get(head).evaluate(inputs, **options)
    parts = {**value.parts, "steps": num_steps, "movement": float(np.linalg.norm(moved - centres, axis=1).mean())}
    return ScoreValue(float(value), parts=parts, warnings=(*warnings, *value.warnings))


def _units(features: Features, source_features: SourceFeatures | None) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Mean and floored standard deviation of each feature over the source domain."""
    warnings: tuple[str, ...] = ()
    if source_features is None:
        source_features = features
        warnings = ("No features of source images were given, so the units are those of the target images.",)
    mean, deviation = ColumnMoments.of(source_features)
    return mean, np.maximum(deviation, _SMALLEST_DEVIATION), warnings


def _squared_distances(features: Features, means: np.ndarray, deviation: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """‖(x − μ_y) / deviation‖² of each image, in float64 but without a float64 copy of all features."""
    squared = np.empty(len(features))
    for start in range(0, len(features), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        within = features[rows] - means[labels[rows]]
        within /= deviation
        squared[rows] = np.einsum("ij,ij->i", within, within)
    return squared


def _push_apart(
    centres: np.ndarray, radii: np.ndarray, counts: np.ndarray, radius: float, strength: float
) -> tuple[np.ndarray, int]:
    """Centres after the last step that still moves the images by more than half as far as the first one."""
    first = 0.0
    for step in range(_MOST_STEPS):
        forces = _step(centres, radii, radius, strength)
        movement = float(counts @ np.abs(forces).sum(axis=1))
        first = first or movement
        if movement == 0 or movement / first <= _EXIT_RATIO:
            return centres, step
        centres = centres + forces
    return centres, _MOST_STEPS


def _step(centres: np.ndarray, radii: np.ndarray, radius: float, strength: float) -> np.ndarray:
    """u_c = Σ_c' (μ_c−μ_c')/‖μ_c−μ_c'‖ · step_cc' = (diag(A1) − A) μ with A = step/distance."""
    squared = np.square(centres).sum(axis=1)
    distances = np.sqrt(np.maximum(squared[:, None] + squared - 2 * centres @ centres.T, 0.0))
    overlaps = np.maximum(radius * (radii[:, None] + radii) - distances, 0.0)
    np.fill_diagonal(overlaps, 0.0)
    pull = strength * overlaps / np.maximum(distances, _COINCIDENT)
    return pull.sum(axis=1)[:, None] * centres - pull @ centres
