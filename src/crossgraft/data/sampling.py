"""Fewer images, chosen at random but fairly: the same number of each class, or the same shares as before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crossgraft.data._label_split import choose_label_sets
from crossgraft.errors import DataError, UsageError
from crossgraft.seeding import generator
from crossgraft.tasks import task_of
from crossgraft.types import ClassIndices, Targets
from crossgraft.words.formatting import counted


def take_per_class(
    targets: Targets,
    images_per_class: int,
    *,
    seed: int,
    class_names: Sequence[str] | None = None,
    flag: str = "--per-class",
    of: str = "",
) -> np.ndarray:
    """Row numbers, ascending, of ``images_per_class`` images of every class.

    ``flag`` asked for them, of the part ``of``, for messages.

    Raises:
        UsageError: ``images_per_class`` is below 1, or images may have several labels.
        DataError: A class has fewer images.
    """
    if images_per_class < 1:
        raise UsageError(f"{flag} must be at least 1, not {images_per_class}.")
    if not task_of(targets).partitions:
        raise UsageError(
            f"{flag} needs one class per image, but these images may have several labels. Leave it out, or use "
            "--limit, which keeps the share of every label."
        )
    counts = np.bincount(targets, minlength=0 if class_names is None else len(class_names))
    short = np.flatnonzero(counts < images_per_class)
    if short.size:
        name = class_names[short[0]] if class_names is not None else str(short[0])
        available = counted(int(counts[short[0]]), "image")
        raise DataError(
            f"The class {name} has {available}{of and f' {of}'}; {images_per_class} of each class were asked for. Ask for at "
            f"most {counts.min()} ({flag})."
        )
    return draw_of_classes(targets, np.full(len(counts), images_per_class), seed, f"per class {of}".strip())


def limit_rows(targets: Targets, num_images: int, *, seed: int) -> np.ndarray:
    """Row numbers, ascending, of at most ``num_images`` images; classes keep their shares, at least one each.

    With several labels per image the labels keep their shares as nearly as whole images allow; a rare one may be left out.

    Raises:
        UsageError: ``num_images`` is below the number of classes.
    """
    if not task_of(targets).partitions:
        return np.arange(len(targets)) if num_images >= len(targets) else choose_label_sets(targets, num_images, seed)
    counts = np.bincount(targets)
    if num_images < len(counts):
        raise UsageError(f"--limit {num_images} is less than the {len(counts)} classes; ask for at least one image per class.")
    if num_images >= len(targets):
        return np.arange(len(targets))
    return draw_of_classes(targets, share_out(counts, num_images), seed, "limit")


def limit_rows_of_parts(targets: Targets, parts: np.ndarray, num_images: int, *, seed: int) -> np.ndarray:
    """As ``limit_rows`` for rows with a part each (empty: none): parts keep their shares, at least one image each.

    Each class has at least one image in train; another part that is too small for that has images of its largest classes.

    Raises:
        UsageError: ``num_images`` is below the number of parts, or its share of train below the number of classes.
    """
    used = np.flatnonzero(parts != "")
    if num_images >= len(used):
        return used
    names, sizes = np.unique(parts[used], return_counts=True)
    if num_images < len(names):
        raise UsageError(f"--limit {num_images} is less than the {len(names)} parts of the split.")
    chosen: list[np.ndarray] = []
    for name, share in zip(names, share_out(sizes, num_images), strict=True):
        rows = np.flatnonzero(parts == name)
        chosen.append(rows[_limit_one_part(targets[rows], int(share), seed, is_train=name == "train")])
    return np.sort(np.concatenate(chosen))


def _limit_one_part(targets: Targets, num_images: int, seed: int, *, is_train: bool) -> np.ndarray:
    if not task_of(targets).partitions:
        return limit_rows(targets, num_images, seed=seed)
    present, class_indices = np.unique(targets, return_inverse=True)
    if is_train or num_images >= len(present):
        return limit_rows(class_indices, num_images, seed=seed)
    largest = np.argsort(-np.bincount(class_indices), kind="stable")[:num_images]  # one image each of the largest classes
    return draw_of_classes(class_indices, np.bincount(largest, minlength=len(present)), seed, "limit")


def share_out(weights: np.ndarray, total: int) -> np.ndarray:
    """Split ``total`` in proportion to ``weights``, as near as whole numbers allow, at least one each.

    Args:
        weights: Positive.
        total: Total, at least the number of weights.

    >>> share_out(np.array([60, 30, 1]), 10)
    array([6, 3, 1])
    """
    exact = weights * (total / weights.sum())
    shares = np.maximum(np.floor(exact), 1).astype(np.int64)
    while (missing := int(np.sign(total - shares.sum()))) != 0:
        # One more for whom it was rounded down most, or one less for whom it was rounded up most.
        gap = np.where((missing > 0) | (shares > 1), (exact - shares) * missing, -np.inf)
        shares[np.argmax(gap)] += missing
    return shares


def draw_of_classes(targets: ClassIndices, shares: np.ndarray, seed: int, purpose: str) -> np.ndarray:
    """``shares[c]`` rows of each class c; the rows of one class do not depend on the other classes."""
    drawn = [
        generator(seed, purpose, index).permutation(np.flatnonzero(targets == index))[:share]
        for index, share in enumerate(shares)
    ]
    return np.sort(np.concatenate(drawn))
