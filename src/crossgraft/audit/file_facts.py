"""Facts of image files, such as height and compression: where one tells the class, a model need not look at the disease."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Shaped
from PIL.JpegImagePlugin import JpegImageFile
from sklearn.tree import DecisionTreeClassifier

from crossgraft.audit.confounded import positive_class
from crossgraft.audit.record import AuditMetric, FileFactRow
from crossgraft.data import Dataset, k_folds
from crossgraft.errors import DataError
from crossgraft.metrics import auc, balanced_accuracy

NUM_FOLDS = 5
RIPPLE = 4 / 255
"""Part of the range of an image by which a border may vary: compression leaves ripples in black."""
_DEPTH = 2  # up to three cuts: large and small images may be of one class, those between of the other
_LEAST_IN_LEAF = 5
_EXTENSIONS = ("", ".jpg", ".jpeg", ".JPG", ".JPEG")  # tables may leave them out
# fmt: off
_LUMINANCE = np.array([
    16, 11, 10, 16, 24, 40, 51, 61,  12, 12, 14, 19, 26, 58, 60, 55,
    14, 13, 16, 24, 40, 57, 69, 56,  14, 17, 22, 29, 51, 87, 80, 62,
    18, 22, 37, 56, 68, 109, 103, 77,  24, 35, 55, 64, 81, 104, 113, 92,
    49, 64, 78, 87, 103, 121, 120, 101,  72, 92, 95, 98, 112, 100, 103, 99,
])
"""Annex K of the JPEG standard, ITU-T T.81, table K.1, row by row: quality 50."""
# fmt: on
_QUALITIES = np.arange(1, 101)


def fact_attributes(dataset: Dataset, *, root: str | PathLike[str] | None = None) -> dict[str, np.ndarray]:
    """Facts of the file of each image, as attributes: height, width, aspect, border_share and jpeg_quality.

    Args:
        dataset: Images as they were decoded. Edits and other sizes change all facts but the quality, which is of the file.
        root: Folder that names of images start from: that of the data, or ``image_root``. None: no quality is known.

    Returns:
        (n,) numbers each: height and width in pixels, aspect = width / height, ``border_share``, and ``jpeg_quality`` from 1 to
        100, NaN where there is no JPEG file.

    Cost: one look at all pixels, and at the header of each file.
    """
    rows = range(len(dataset))
    height = np.array([fact.height for fact in dataset.facts], dtype=np.float64)
    width = np.array([fact.width for fact in dataset.facts], dtype=np.float64)
    quality = np.full(len(dataset), np.nan)
    if root is not None:
        quality[:] = [_quality_of(Path(root), dataset.image_name(row)) for row in rows]
    return {
        "height": height,
        "width": width,
        "aspect": width / height,
        "border_share": np.array([border_share(dataset.read(row)) for row in rows], dtype=np.float64),
        "jpeg_quality": quality,
    }


def border_share(pixels: Shaped[np.ndarray, "height width channels"]) -> float:
    """Share of the area that is a border: rows, and then columns, at the edges that show nothing.

    From each edge inwards, lines belong to it as long as all their samples together differ by no more than ``RIPPLE`` of the
    range of the image. 1: the image shows nothing at all.

    Args:
        pixels: (height, width, channels) samples of any range.
    """
    planes = np.ascontiguousarray(pixels.transpose(2, 0, 1))  # as they lie, minima take 20 times as long
    allowed = RIPPLE * float(np.ptp(planes))
    top, bottom = _borders(planes.min(axis=2), planes.max(axis=2), allowed)
    if top + bottom >= planes.shape[1]:
        return 1.0
    inner = planes[:, top : planes.shape[1] - bottom]
    left, right = _borders(inner.min(axis=1), inner.max(axis=1), allowed)
    kept = inner.shape[1] * max(0, planes.shape[2] - left - right)
    return 1 - kept / planes[0].size


def jpeg_quality(luminance: Shaped[np.ndarray, "64"]) -> int:
    """The quality, 1 to 100, whose table of the Independent JPEG Group is nearest to this one (sum of differences).

    Table q is clip(⌊(S · base + 50) / 100⌋, 1, 255) with S = 5000 / q below 50 and 200 − 2 q from there on, base being the table
    of the standard. Other encoders have other tables: then the nearest quality stands for about the same loss.

    Args:
        luminance: (64,) first quantisation table, row by row.
    """
    scales = np.where(_QUALITIES < 50, 5000 // _QUALITIES, 200 - 2 * _QUALITIES)
    tables = np.clip((scales[:, None] * _LUMINANCE + 50) // 100, 1, 255)
    return int(_QUALITIES[np.abs(tables - np.asarray(luminance, dtype=np.int64)).sum(axis=1).argmin()])


def how_telling(
    dataset: Dataset,
    facts: Mapping[str, np.ndarray] | None = None,
    *,
    positive: str | None = None,
    root: str | PathLike[str] | None = None,
    seed: int = 0,
) -> list[FileFactRow]:
    """How well each fact alone tells one class from all others, most telling first.

    By a decision tree of depth two on the one number, in five folds that are stratified and keep patients apart; classes weigh
    the same. Facts that do not vary are left out, and those known for fewer than five patients (images) of a side.

    Args:
        dataset: Labelled images.
        facts: Name → (n,) numbers, NaN where not known; None: ``fact_attributes``.
        positive: Class that is told from all others; by default the last one.
        root: As of ``fact_attributes``.
        seed: Random seed of the folds.

    Raises:
        DataError: There are fewer than five patients (images) of a side, or a fact is not one number per image.
        UsageError: Images have several labels each.
        UnknownNameError: There is no such class.

    Cost: five trees per fact.
    """
    name = positive_class(dataset, positive)
    truth = np.array(dataset.class_names)[dataset.targets] == name
    units = np.arange(len(dataset)) if dataset.groups is None else np.unique(dataset.groups, return_inverse=True)[1]
    if (fewest := _fewest(units, truth)) < NUM_FOLDS:
        raise DataError(
            f"To say what tells {name} from the rest takes {NUM_FOLDS} {'images' if dataset.groups is None else 'patients'} of "
            f"each side, and one has {fewest}."
        )
    rows: list[FileFactRow] = []
    for fact, values in (fact_attributes(dataset, root=root) if facts is None else facts).items():
        if values.shape != (len(dataset),) or values.dtype.kind not in "biuf":
            raise DataError(f"The fact {fact} must be {len(dataset)} numbers, one per image; NaN where it is not known.")
        known = np.isfinite(values)
        if len(np.unique(values[known])) > 1 and _fewest(units[known], truth[known]) >= NUM_FOLDS:
            groups = None if dataset.groups is None else units[known]
            rows.append(_measure(fact, values[known], truth[known], groups, seed))
    return sorted(rows, key=lambda row: -(row.balanced_accuracy.value or 0.0))


def _measure(fact: str, values: np.ndarray, truth: Bool[np.ndarray, " _"], groups: np.ndarray | None, seed: int) -> FileFactRow:
    labels, column = truth.astype(np.int64), values.astype(np.float64)[:, None]
    scores = np.empty(len(labels))
    for split in k_folds(labels, groups, num_folds=NUM_FOLDS, seed=seed):
        train, test = split.rows("train"), split.rows("test")
        tree = DecisionTreeClassifier(max_depth=_DEPTH, min_samples_leaf=_LEAST_IN_LEAF, class_weight="balanced", random_state=0)
        scores[test] = np.asarray(tree.fit(column[train], labels[train]).predict_proba(column[test]))[:, 1]
    decided = (scores >= 0.5).astype(np.int64)
    return FileFactRow(
        fact=fact,
        num_images=len(labels),
        balanced_accuracy=AuditMetric.over_patients("balanced_accuracy", balanced_accuracy(decided, labels, groups)),
        auc=AuditMetric.over_patients("auc", auc(scores, labels, groups)),
    )


def _fewest(units: np.ndarray, truth: np.ndarray) -> int:
    return min(len(np.unique(units[side])) for side in (truth, ~truth))


def _borders(low: np.ndarray, high: np.ndarray, allowed: float) -> tuple[int, int]:
    """Numbers of lines at both ends whose samples together differ by no more than this in each channel.

    Args:
        low: (channels, lines) least sample of each line.
        high: (channels, lines) the largest one.
        allowed: Largest difference.
    """
    thickness: list[int] = []
    for step in (1, -1):
        largest = np.maximum.accumulate(high[:, ::step], axis=1)
        least = np.minimum.accumulate(low[:, ::step], axis=1)
        varied = (largest - least > allowed).any(axis=0)
        thickness.append(int(varied.argmax()) if varied.any() else high.shape[1])
    return thickness[0], thickness[1]


def _quality_of(folder: Path, name: str) -> float:
    """Quality of a JPEG file; NaN for what is none."""
    for extension in _EXTENSIONS:
        try:
            with JpegImageFile(folder / f"{name}{extension}") as image:  # reads the header alone
                tables: dict[int, list[int]] = image.quantization
                return float(jpeg_quality(np.array(tables[min(tables)])))
        except FileNotFoundError:
            continue
        except (OSError, SyntaxError, ValueError):  # what Pillow says of files of other kinds
            return float("nan")
    return float("nan")
