"""Fewer images, chosen at random but fairly: the same number of each class, or the same shares as before.

Fewer by design, too: shares of classes that were asked for, or sets of one image of each class from the same group.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from crossgraft.data._label_split import choose_label_sets
from crossgraft.data.cells import is_empty
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.seeding import generator
from crossgraft.tasks import task_of
from crossgraft.types import ClassIndices, Targets
from crossgraft.words.formatting import count, counted, percent


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


_SUM_TOLERANCE = 1e-6
GivenShares = str | Sequence[str] | Mapping[str, float]
"""``benign=0.3,malignant=0.7``, several of these, or a mapping."""


def read_shares(given: GivenShares) -> dict[str, float]:
    """Class → share that was asked for, of some or all classes.

    Raises:
        UsageError: A piece is no CLASS=SHARE, a class is named twice, a share does not lie between 0 and 1, or they exceed 1.

    >>> read_shares("benign=0.3,malignant=0.7")
    {'benign': 0.3, 'malignant': 0.7}
    """
    shares: dict[str, float] = {}
    for name, text in _pairs(given):
        try:
            share = float(text)
        except (TypeError, ValueError):
            share = math.nan
        if not 0 < share < 1:
            raise UsageError(f"--class-shares: the share of {name} must lie between 0 and 1, got {text!r}.")
        if name in shares:
            raise UsageError(f"--class-shares names the class {name} twice.")
        shares[name] = share
    if not shares:
        raise UsageError("--class-shares names no class. Write CLASS=SHARE, for example --class-shares malignant=0.3.")
    if sum(shares.values()) > 1 + _SUM_TOLERANCE:
        raise UsageError(
            f"--class-shares add up to {sum(shares.values()):g}, more than 1. Lower one, or leave one out: it gets what the "
            "others leave."
        )
    return shares


def _pairs(given: GivenShares) -> list[tuple[str, str | float]]:
    if isinstance(given, Mapping):
        return [(str(name), share) for name, share in given.items()]
    pieces = [piece for text in ([given] if isinstance(given, str) else given) for piece in text.split(",") if piece.strip()]
    pairs: list[tuple[str, str | float]] = []
    for piece in pieces:
        name, sign, text = piece.rpartition("=")
        if not sign or not name.strip():
            raise UsageError(
                f"--class-shares {piece.strip()}: write CLASS=SHARE, for example --class-shares malignant=0.3; a class with a "
                "comma in its name needs a mapping in a configuration file or from Python."
            )
        pairs.append((name.strip(), text.strip()))
    return pairs


def shares_of_classes(
    asked: Mapping[str, float], class_names: Sequence[str], counts: np.ndarray
) -> Float64[np.ndarray, " num_classes"]:
    """Share of each class; classes that are not named divide the rest as they do in the data.

    Raises:
        UnknownNameError: There is no such class.
        UsageError: All classes are named and the shares do not add up to 1; or some are not, and nothing is left for them.
    """
    for name in asked:
        if name not in class_names:
            raise UnknownNameError("class", name, class_names)
    shares = np.array([asked.get(name, 0.0) for name in class_names])
    unnamed = np.array([name not in asked for name in class_names])
    rest = 1 - shares.sum()
    if not unnamed.any() and abs(rest) > _SUM_TOLERANCE:
        raise UsageError(
            f"--class-shares add up to {shares.sum():g}, not 1. Change one, or leave one out: it gets what the others leave."
        )
    if unnamed.any():
        if rest <= _SUM_TOLERANCE:
            missing = ", ".join(np.asarray(class_names)[unnamed])
            raise UsageError(f"--class-shares leave nothing for {missing}. Ask for less than 1 in all.")
        shares[unnamed] = rest * counts[unnamed] / max(1, counts[unnamed].sum())
    return shares / shares.sum()


class FewerRows(NamedTuple):
    """Rows that are kept.

    Attributes:
        numbers: Ascending.
        said: What was kept, in words; empty where nothing was left out.
        left_out: What was not, in a sentence; None where there is nothing to say.
    """

    numbers: np.ndarray
    said: str
    left_out: str | None = None


def take_class_shares(
    targets: Targets,
    asked: Mapping[str, float],
    *,
    class_names: Sequence[str],
    parts: np.ndarray | None = None,
    limit: int | None = None,
    seed: int,
) -> FewerRows:
    """As many images as there can be with these class shares, in each part of the data.

    Draws are nested: of a class, who is kept with fewer images is kept with more.

    Args:
        targets: (n,) class of each row.
        asked: Class → share, from ``read_shares``.
        class_names: All classes in order.
        parts: (n,) part of each row, of which each gets these shares; empty: none, and not used. None: one part.
        limit: Largest number of images in all; parts keep their shares of it.
        seed: Random seed.

    Raises:
        UnknownNameError: There is no such class.
        UsageError: Shares do not add up to 1, images may have several labels, or ``limit`` is too small.
        DataError: A part has no image of a class, or too few in all.
    """
    _refuse_several_labels(targets, "--class-shares")
    counts = np.bincount(targets, minlength=len(class_names))
    shares = shares_of_classes(asked, class_names, counts)
    of_parts = _rows_of_parts(len(targets), parts)
    totals: list[int] = []
    for name, rows in of_parts.items():
        here = np.bincount(targets[rows], minlength=len(class_names))
        if (missing := np.flatnonzero(here == 0)).size:
            raise DataError(
                f"{name or 'The data'} has no image of the class {class_names[missing[0]]}, so that its share of "
                f"{percent(float(shares[missing[0]]))} cannot be had (--class-shares). Leave the option out, or divide anew."
            )
        totals.append(max(len(class_names), int(np.floor((here / shares).min() + 1e-9))))
    if limit is not None and limit < sum(totals):
        if limit < len(class_names) * len(totals):
            raise UsageError(
                f"--limit {limit} is less than one image of each of {len(class_names)} classes in each of {len(totals)} parts."
            )
        totals = np.maximum(share_out(np.array(totals), limit), len(class_names)).tolist()
    kept: list[np.ndarray] = []
    for (name, rows), most in zip(of_parts.items(), totals, strict=True):
        near = (total for total in range(most, len(class_names) - 1, -1) if not _far_off(share_out(shares, total), shares).size)
        numbers = share_out(shares, next(near, most))
        if (far := _far_off(numbers, shares)).size:
            had, wanted = float(numbers[far[0]]) / most, float(shares[far[0]])
            raise DataError(
                f"{name or 'The data'} has too few images for these class shares (--class-shares): with {most}, "
                f"{class_names[far[0]]} would be {percent(had)} and not {percent(wanted)}. Ask for "
                f"shares nearer to those of the data, or {'give more images' if limit is None else 'raise --limit'}."
            )
        kept.append(rows[draw_of_classes(targets[rows], numbers, seed, f"class shares {name}".strip())])
    numbers = np.sort(np.concatenate(kept))
    in_words = ", ".join(f"{percent(share)} {name}" for share, name in zip(shares, class_names, strict=True))
    return FewerRows(numbers, f"{len(numbers)} of {len(targets)} images with {in_words}")


def take_pairs(
    targets: Targets,
    values: np.ndarray,
    column: str,
    *,
    class_names: Sequence[str],
    parts: np.ndarray | None = None,
    limit: int | None = None,
    seed: int,
) -> FewerRows:
    """As many images of every class from each group of a column as it has of its rarest: matched sets, pairs of two classes.

    Args:
        targets: (n,) class of each row.
        values: (n,) group of each row, such as the patient; a row without one has no pair.
        column: Name of the column, for messages.
        class_names: All classes in order.
        parts: (n,) part of each row; a set lies in one part. Empty: in none. None: one part.
        limit: Largest number of images in all; parts keep their shares of it, and sets stay whole.
        seed: Random seed of which images of the more frequent classes are taken, and of ``limit``.

    Raises:
        UsageError: Images may have several labels, or ``limit`` is too small for one set in each part.
        DataError: A part has no group with an image of every class.
    """
    _refuse_several_labels(targets, "--pair-by")
    num_classes = len(class_names)
    of_parts = _rows_of_parts(len(targets), parts)
    sets: dict[str, np.ndarray] = {}
    groups = np.asarray(values).astype(str)
    num_groups = num_lost = 0
    for name, rows in of_parts.items():
        found: list[np.ndarray] = []
        for group in np.unique(groups[rows]):
            members = rows[groups[rows] == group]
            here = np.bincount(targets[members], minlength=num_classes)
            num_groups += 1
            if is_empty(group) or not here.min():
                num_lost += 1
                continue
            drawn = [
                generator(seed, "pairs", group, index).permutation(members[targets[members] == index])[: here.min()]
                for index in range(num_classes)
            ]
            found.append(np.stack(drawn, axis=1))
        if not found:
            raise DataError(
                f"{name or 'The data'} has no group of the column {column} with an image of every class "
                f"({', '.join(class_names)}), so that there is nothing to pair (--pair-by)."
            )
        sets[name] = np.concatenate(found)
    if limit is not None and limit < sum(each.size for each in sets.values()):
        if limit // num_classes < len(sets):
            raise UsageError(f"--limit {limit} is less than one set of {num_classes} images in each of {len(sets)} parts.")
        shares = share_out(np.array([len(each) for each in sets.values()]), limit // num_classes)
        sets = {
            name: each[generator(seed, "fewer pairs", name).permutation(len(each))[:share]]
            for (name, each), share in zip(sets.items(), shares.tolist(), strict=True)
        }
    numbers = np.sort(np.concatenate([each.ravel() for each in sets.values()]))
    what = counted(sum(map(len, sets.values())), "pair" if num_classes == 2 else f"set of {num_classes}")
    lost = None
    if num_lost:
        lost = (
            f"{count(num_lost)} of {counted(num_groups, 'group')} of the column {column} lack an image of a class in their part "
            f"and are left out; {counted(len(numbers), 'image')} of {count(len(targets))} are used (--pair-by)."
        )
    return FewerRows(numbers, f"{what} matched by {column}, {num_lost} of {num_groups} groups without", lost)


NEAR_ENOUGH = 0.05
"""How far a share may be off, where a part has so few images that whole ones come no nearer."""


def _far_off(numbers: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Classes whose share is not near enough."""
    return np.flatnonzero(np.abs(numbers / numbers.sum() - shares) > NEAR_ENOUGH)


def _rows_of_parts(num_rows: int, parts: np.ndarray | None) -> dict[str, np.ndarray]:
    """Part → its row numbers."""
    if parts is None:
        return {"": np.arange(num_rows)}
    return {str(name): np.flatnonzero(parts == name) for name in np.unique(parts) if name}


def _refuse_several_labels(targets: Targets, flag: str) -> None:
    if not task_of(targets).partitions:
        raise UsageError(f"{flag} needs one class per image, but these images may have several labels. Leave it out.")
