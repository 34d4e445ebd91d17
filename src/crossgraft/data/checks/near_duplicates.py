"""Different files that show nearly the same picture: compressed again, resized, brightened, mirrored, turned."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from crossgraft.data._image_facts import THUMBNAIL_SIDE
from crossgraft.data.checks._banded_search import BUCKET_CAP, Pairs, find_near_pairs
from crossgraft.data.checks._finding import finding
from crossgraft.data.checks._perceptual_hash import VIEWS, Normalised, hash_views, normalise
from crossgraft.data.checks.record import FindingRecord
from crossgraft.data.checks.survey import Survey
from crossgraft.words.formatting import count, counted

MOST_DIFFERENT_BITS = 20
"""Out of 128. Nearly all pairs that people call the same picture differ in fewer; unrelated pictures differ in about 64."""
LEAST_CORRELATION = 0.95
"""Correlation of the thumbnails, both as they are and with the mean of all other pictures subtracted."""

_NAME, _TITLE = "near_duplicates", "Near duplicates"
_NOT_LOOKED_FOR = "Crops, and turns by other angles than quarters, are not looked for."
_LEAST_SPREAD = 1.0  # of 255; a thumbnail with less contrast shows nothing that could be compared
_FEW = 100  # so many pictures are compared all with all
_IN_ONE_PIECE = 4096  # pairs compared at a time


class NearDuplicates(NamedTuple):
    """Pairs of different pictures that look alike.

    Attributes:
        pairs: (num_pairs, 2) places of pictures, first < second.
        views: (num_pairs,) how the second has to be turned to look like the first: its place in ``VIEWS``.
        num_capped: Pictures in buckets that were too large to be compared completely.
    """

    pairs: Pairs
    views: np.ndarray
    num_capped: int


def find_near_duplicates(thumbnails: np.ndarray) -> NearDuplicates:
    """Pairs of (n, side, side) thumbnails that look alike.

    Candidates share a band of their perceptual hashes and differ in at most ``MOST_DIFFERENT_BITS`` bits; then both
    thumbnails are correlated, once as they are, and once without the mean of all other pictures. The second decides where
    all pictures are of one kind: it compares what distinguishes them. Strong crops and rotations by other angles than quarters
    are not found, nor is a picture of which a third of the data are near copies: it is then what is usual.

    Sorting takes O(n log n). Candidates grow with n² over some thousands, until the cap of a bucket makes them linear.
    """
    contrast = thumbnails.reshape(len(thumbnails), -1).std(axis=1) >= _LEAST_SPREAD
    places = np.flatnonzero(contrast)
    if len(places) < 2:
        return NearDuplicates(np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=np.int64), 0)
    rows = normalise(thumbnails[places])
    candidates, views, num_capped = _all_pairs(len(rows)) if len(rows) <= _FEW else _candidates(rows)
    alike = _are_alike(rows, candidates, views)
    candidates, views = candidates[alike], views[alike]
    plainest_first = np.argsort(views, kind="stable")
    pairs, kept = np.unique(candidates[plainest_first], axis=0, return_index=True)
    return NearDuplicates(places[pairs], views[plainest_first][kept], num_capped)


def _all_pairs(number: int) -> NearDuplicates:
    """Few pictures have no usual frequencies to be compared with, so each is compared with each, in every view."""
    pairs = np.stack(np.triu_indices(number, 1), axis=1)
    return NearDuplicates(np.tile(pairs, (len(VIEWS), 1)), np.repeat(np.arange(len(VIEWS)), len(pairs)), 0)


def _candidates(rows: Normalised) -> NearDuplicates:
    """Pairs whose hashes are near, as they are or after one picture was turned."""
    strings = np.concatenate(hash_views(rows))
    near = find_near_pairs(
        strings, most_different=MOST_DIFFERENT_BITS, bucket_cap=len(VIEWS) * BUCKET_CAP, num_first=len(rows)
    )
    first, second = near.pairs[:, 0], near.pairs[:, 1]  # first < second, so a plain view comes first
    pairs, views = np.stack([first % len(rows), second % len(rows)], axis=1), second // len(rows)
    useful = pairs[:, 0] != pairs[:, 1]
    return NearDuplicates(np.sort(pairs[useful], axis=1), views[useful], near.num_capped)


def _are_alike(rows: Normalised, pairs: Pairs, views: np.ndarray) -> np.ndarray:
    """Which pairs are correlated at least ``LEAST_CORRELATION``, as they are and without the mean of the others."""
    total = rows.sum(axis=0, dtype=np.float64)
    alike = np.zeros(len(pairs), dtype=bool)
    for start in range(0, len(pairs), _IN_ONE_PIECE):
        piece = slice(start, start + _IN_ONE_PIECE)
        first = rows[pairs[piece, 0]].astype(np.float64)
        plain_second = rows[pairs[piece, 1]]
        mean_of_others = (total - first - plain_second) / max(len(rows) - 2, 1)
        second = _turned(plain_second, views[piece])
        as_they_are = _correlations(first, second)
        distinctive = _correlations(first - mean_of_others, second - mean_of_others)
        alike[piece] = np.minimum(as_they_are, distinctive) >= LEAST_CORRELATION
    return alike


def _turned(rows: np.ndarray, views: np.ndarray) -> np.ndarray:
    pictures = rows.reshape(-1, THUMBNAIL_SIDE, THUMBNAIL_SIDE).astype(np.float64)
    turned = np.empty_like(pictures)
    for number, view in enumerate(VIEWS):
        turned[views == number] = view.of(pictures[views == number])
    return turned.reshape(len(rows), -1)


def _correlations(first: np.ndarray, second: np.ndarray) -> Float[np.ndarray, " num_pairs"]:
    """Correlations of the rows of two arrays; 0 where a row has no spread."""
    first = first - first.mean(axis=1, keepdims=True)
    second = second - second.mean(axis=1, keepdims=True)
    product = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    return (first * second).sum(axis=1) / np.where(product == 0, np.inf, product)


def check_near_duplicates(survey: Survey) -> list[FindingRecord]:
    """Advisory: a warning where a pair is, or may come to be, on both sides of a split, a notice otherwise."""
    one_of_each: dict[bytes, int] = {}
    for row in survey.readable_rows:
        one_of_each.setdefault(survey.facts[row].picture, int(row))
    rows = np.asarray(list(one_of_each.values()), dtype=np.int64)
    thumbnails = [thumbnail for row in rows if (thumbnail := survey.facts[row].thumbnail) is not None]
    if not thumbnails:
        return []
    near = find_near_duplicates(np.stack(thumbnails))
    capped = ""
    if near.num_capped:
        capped = f" {counted(near.num_capped, 'image')} resemble too many others to be compared with all of them."
    if not len(near.pairs):
        said = f"No two of {counted(len(rows), 'different picture')} look alike (correlation of thumbnails)."
        text = f"{said} {_NOT_LOOKED_FOR}{capped}"
        return [finding(_NAME, _TITLE, "passed", text)]
    return [_describe(survey, rows[near.pairs], near.views, capped)]


def _describe(survey: Survey, pairs: Pairs, views: np.ndarray, capped: str) -> FindingRecord:
    """One finding; pairs on two sides of a split come first in its list."""
    first, second = pairs[:, 0], pairs[:, 1]
    across = np.zeros(len(pairs), dtype=bool)
    if survey.splits is not None:
        across = (survey.splits[first] != survey.splits[second]) & (survey.splits[first] != "")
        across &= survey.splits[second] != ""
    together = np.zeros(len(pairs), dtype=bool)
    if survey.groups is not None:
        together = survey.groups[first] == survey.groups[second]
    text = f"{counted(len(pairs), 'pair')} of different images {'looks' if len(pairs) == 1 else 'look'} alike"
    turned = Counter(VIEWS[view].in_words for view in views.tolist() if view)
    notes = [f"{count(number)} {view}" for view, number in turned.items()]
    if survey.split_names:
        notes.append(f"{count(int(across.sum()))} across splits")
    if survey.groups is not None:
        known = survey.known_groups[first] & survey.known_groups[second]
        apart = int((known & ~together).sum())
        notes.append(f"{count(int(together.sum()))} within one group (column {survey.group_column})")
        notes += [f"{count(apart)} of two groups"] if apart else []
    disagree = (survey.targets[first] != survey.targets[second]).reshape(len(pairs), -1).any(axis=1)
    if disagree.any():
        notes.append(f"{count(int(disagree.sum()))} with different labels")
    text += f" ({', '.join(notes)})." if notes else "."
    may_leak = across.any() if survey.split_names else not together.all()
    advice = "Look at them: copies, neighbouring slices or two photographs of one thing belong to one side of a split"
    advice += "." if survey.groups is not None else "; a group column keeps them there (--group-column)."
    order = np.lexsort((second, first, together, ~across))
    severity = "warning" if may_leak else "notice"
    return finding(_NAME, _TITLE, severity, f"{text} {_NOT_LOOKED_FOR}{capped}", advice=advice, images=pairs[order])
