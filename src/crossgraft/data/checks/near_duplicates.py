"""Different files that show nearly the same picture: compressed again, resized, brightened, mirrored, turned."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import scipy
from jaxtyping import Float, Float32, Int, UInt8

from crossgraft.data.checks.record import IDENTICAL, IDENTICAL_ACROSS, FindingRecord
from crossgraft.data.checks.survey import Survey, finding, tallied
from crossgraft.data.inspection import THUMBNAIL_SIDE
from crossgraft.words.formatting import count, counted


def check_identical_within(survey: Survey) -> list[FindingRecord]:
    """Copies inside one split (inside the data, if there is no split): a warning."""
    inside: list[np.ndarray] = []
    copied_in: list[str] = []
    for rows in survey.copies:
        for split in survey.split_names or [""]:
            together = rows if survey.splits is None else rows[survey.splits[rows] == split]
            if len(together) > 1:
                inside.append(together)
                copied_in += [split] * (len(together) - 1)
    if not inside:
        where = "of one split " if survey.split_names else ""
        text = f"No two images {where}are the same, pixel by pixel."
        return [finding("identical_within", IDENTICAL, "passed", text)]
    where = f" of the same split, pixel by pixel ({tallied(copied_in)})" if survey.split_names else ", pixel by pixel"
    text = f"{counted(len(copied_in), 'image')} {'is a copy' if len(copied_in) == 1 else 'are copies'} of another{where}."
    advice = "Keep one of each: a copy counts an image twice"
    advice += ", and a random split puts copies on both sides." if not survey.split_names else "."
    return [finding("identical_within", IDENTICAL, "warning", text, advice=advice, images=inside)]


def check_identical_across(survey: Survey) -> list[FindingRecord]:
    """The same picture in two splits: unsound, because the test then asks for what was learnt by heart."""
    title = IDENTICAL_ACROSS
    if len(survey.split_names) < 2:
        text = "There is no split to compare. Leave out --holdout 0, or give a split with --split."
        return [finding("identical_across", title, "not assessed", text)]
    shared = [rows for rows in survey.telling_copies if len(survey.splits_of(rows)) > 1]
    if not shared:
        text = f"No picture is in more than one of {', '.join(survey.split_names)}, pixel by pixel."
        return [finding("identical_across", title, "passed", text)]
    verb = "is" if len(shared) == 1 else "are"
    text = f"{counted(len(shared), 'picture')} {verb} in more than one split, pixel by pixel ({survey.pairs_of_splits(shared)})."
    advice = "Keep each in one split only: a test on images that were trained on measures memory."
    return [finding("identical_across", title, "unsound", text, advice=advice, images=shared)]


def check_conflicting_labels(survey: Survey) -> list[FindingRecord]:
    """The same picture with different labels: unsound, one of them is wrong."""
    title = "Same picture, different labels"
    conflicts = [rows for rows in survey.telling_copies if len(np.unique(survey.targets[rows], axis=0)) > 1]
    if not conflicts:
        text = "No picture has two different labels."
        return [finding("conflicting_labels", title, "passed", text)]
    verb = "is" if len(conflicts) == 1 else "are"
    text = f"{counted(len(conflicts), 'picture')} {verb} there more than once with different labels."
    advice = "Look at them and correct or remove them."
    return [finding("conflicting_labels", title, "unsound", text, advice=advice, images=conflicts)]


def check_pictures_of_two_groups(survey: Survey) -> list[FindingRecord]:
    """The same picture under two patients: unsound, because splits by patient cannot keep it on one side.

    An image of which nobody is known is a group of its own, but of no patient that could be another one.
    """
    title = "Same picture, two patients"
    if survey.groups is None:
        return []
    groups, known = survey.groups, survey.known_groups
    if not known.any():
        return []
    shared = [rows for rows in survey.telling_copies if len(np.unique(groups[rows[known[rows]]])) > 1]
    if not shared:
        text = f"No picture belongs to two of the {count(len(np.unique(groups[known])))} groups (column {survey.group_column})."
        return [finding("pictures_of_two_groups", title, "passed", text)]
    verb = "belongs" if len(shared) == 1 else "belong"
    text = f"{counted(len(shared), 'picture')} {verb} to more than one group (column {survey.group_column})."
    advice = "Either the groups are wrong or the images are: a split by group cannot keep such a picture on one side."
    return [finding("pictures_of_two_groups", title, "unsound", text, advice=advice, images=shared)]


# Pairs of bit strings that differ in few places, without comparing all with all.
#
# The bits are cut into bands of 16: balanced bits put n strings into 65 536 buckets. Two strings that differ in fewer places than
# there are bands agree in one whole band, so it is enough to compare those that share a band: that pair is found for certain,
# pairs that differ in more places often.

BUCKET_CAP = 64
"""Each string is compared with this many neighbours of its bucket at most; larger buckets are counted."""

BitStrings = UInt8[np.ndarray, "num_strings num_bytes"]
Pairs = Int[np.ndarray, "num_pairs 2"]

_ONES = np.asarray([value.bit_count() for value in range(256)], dtype=np.uint8)


class NearPairs(NamedTuple):
    """What the search found.

    Attributes:
        pairs: (num_pairs, 2) places of strings, first < second, each pair once, in ascending order.
        num_capped: Strings in buckets too large to be compared with each other completely.
    """

    pairs: Pairs
    num_capped: int


def find_near_pairs(
    strings: BitStrings, *, most_different: int, bucket_cap: int = BUCKET_CAP, num_first: int | None = None
) -> NearPairs:
    """Pairs of bit strings that share a band and differ in at most ``most_different`` bits.

    Every pair that differs in fewer bits than there are bands is found, unless its bucket was capped. Takes
    O(bands · n · (log n + neighbours)) with at most ``bucket_cap`` neighbours.

    Args:
        strings: Packed bits, a multiple of 16 each.
        most_different: Largest number of different bits of a pair.
        bucket_cap: Neighbours in a bucket that a string is compared with; in a larger bucket these are the ones
            that come next when the strings are sorted.
        num_first: One of each pair is among so many first strings; None: any may be.
    """
    near_pairs: list[Pairs] = []
    is_capped = np.zeros(len(strings), dtype=bool)
    numbers = np.ascontiguousarray(strings).view(np.uint16)
    for band in range(numbers.shape[1]):
        keys = [numbers[:, key] for key in range(numbers.shape[1]) if key != band]
        order = np.lexsort((*keys, numbers[:, band]))
        sorted_band = numbers[order, band]
        for step in range(1, bucket_cap + 1):
            same = np.flatnonzero(sorted_band[step:] == sorted_band[:-step])
            if same.size == 0:
                break
            pairs = np.sort(np.stack([order[same], order[same + step]], axis=1), axis=1)
            pairs = pairs if num_first is None else pairs[pairs[:, 0] < num_first]
            near_pairs.append(pairs[count_different(strings, pairs) <= most_different])
        is_capped[order[_in_large_buckets(sorted_band, bucket_cap)]] = True
    everything = np.concatenate(near_pairs) if near_pairs else np.empty((0, 2), dtype=np.int64)
    return NearPairs(np.unique(everything, axis=0), int(is_capped.sum()))


def count_different(strings: BitStrings, pairs: Pairs) -> Int[np.ndarray, " num_pairs"]:
    """Number of different bits of each pair."""
    return _ONES[strings[pairs[:, 0]] ^ strings[pairs[:, 1]]].sum(axis=1, dtype=np.int64)


def _in_large_buckets(sorted_keys: np.ndarray, cap: int) -> np.ndarray:
    """Places of sorted keys that occur more than ``cap`` + 1 times: not all pairs of these were compared."""
    _, index, counts = np.unique(sorted_keys, return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[index] > cap + 1)


# A bit string of each thumbnail that changes little when a picture is compressed, resized or brightened.
#
# Like the usual perceptual hash it takes the signs of low cosine frequencies, with one difference: each frequency is
# compared with its median over the data set. Pictures of one kind (all chest X-rays, say) agree in most frequencies, and
# would all be near each other; around the median of their own kind half of them fall on either side.

NUM_BITS = 128
"""The lowest frequencies, without the mean: 8 bands of 16 bits."""

Normalised = Float32[np.ndarray, "num_images num_pixels"]
Coefficients = Float32[np.ndarray, "num_images num_bits"]

_IN_ONE_PIECE = 4096  # images transformed at a time


def normalise(thumbnails: np.ndarray) -> Normalised:
    """(n, side, side) thumbnails as rows of mean 0 and mean square 1; rows without any contrast stay 0."""
    rows = thumbnails.reshape(len(thumbnails), -1).astype(np.float32)
    rows -= rows.mean(axis=1, keepdims=True)
    spread = np.sqrt((rows**2).mean(axis=1, keepdims=True))
    return rows / np.where(spread == 0, 1, spread)


class View(NamedTuple):
    """One of the eight orientations of a square: mirrored along the diagonal or not, then in each direction or not.

    Attributes:
        in_words: What it is.
        diagonal: Whether rows and columns change places, first.
        left_right: Whether it is mirrored left to right then.
        up_down: Whether it is turned upside down then.
    """

    in_words: str
    diagonal: bool
    left_right: bool
    up_down: bool

    def of(self, pictures: np.ndarray) -> np.ndarray:
        """(n, side, side) pictures in this orientation."""
        turned = pictures.swapaxes(1, 2) if self.diagonal else pictures
        return turned[:, :: -1 if self.up_down else 1, :: -1 if self.left_right else 1]


VIEWS = (
    View("as they are", False, False, False),
    View("mirrored left to right", False, True, False),
    View("upside down", False, False, True),
    View("turned by 180°", False, True, True),
    View("turned by 90°", True, True, False),
    View("turned by 270°", True, False, True),
    View("mirrored along the diagonal", True, False, False),
    View("mirrored along the other diagonal", True, True, True),
)
"""The plainest first."""


def low_frequencies(rows: Normalised) -> tuple[Coefficients, np.ndarray]:
    """The ``NUM_BITS`` lowest cosine coefficients of each thumbnail, and the (vertical, horizontal) frequency of each.

    Behind them come those that a picture has there after rows and columns have changed places, where they are not among them.
    """
    side = THUMBNAIL_SIDE
    frequencies = [(v, h) for v in range(side) for h in range(side) if v + h > 0]
    lowest = sorted(frequencies, key=lambda frequency: (sum(frequency), abs(frequency[0] - frequency[1]), frequency))[:NUM_BITS]
    chosen = np.asarray([*lowest, *sorted({(h, v) for v, h in lowest} - set(lowest))])
    pieces = [
        np.asarray(scipy.fft.dctn(rows[start : start + _IN_ONE_PIECE].reshape(-1, side, side), axes=(1, 2), norm="ortho"))
        for start in range(0, len(rows), _IN_ONE_PIECE)
    ]
    return np.concatenate([piece[:, chosen[:, 0], chosen[:, 1]] for piece in pieces]), chosen


def hash_views(rows: Normalised) -> list[BitStrings]:
    """Bit strings of the pictures in each of ``VIEWS``.

    Mirroring changes the sign of the odd frequencies in its direction, and along the diagonal both frequencies change places, so
    nothing is transformed twice.
    """
    coefficients, frequencies = low_frequencies(rows)
    column = {(int(v), int(h)): index for index, (v, h) in enumerate(frequencies)}
    lowest = frequencies[:NUM_BITS]
    across = [column[int(h), int(v)] for v, h in lowest]
    odd_up_down, odd_left_right = (np.where(lowest[:, axis] % 2, -1, 1).astype(np.float32) for axis in (0, 1))
    middle = np.median(coefficients[:, :NUM_BITS], axis=0)
    views: list[BitStrings] = []
    for view in VIEWS:
        seen = coefficients[:, across] if view.diagonal else coefficients[:, :NUM_BITS]
        signs = (odd_left_right if view.left_right else 1) * (odd_up_down if view.up_down else np.float32(1))
        views.append(np.packbits(seen * signs > middle, axis=1))
    return views


MOST_DIFFERENT_BITS = 20
"""Out of 128. Nearly all pairs that people call the same picture differ in fewer; unrelated pictures differ in about 64."""
LEAST_CORRELATION = 0.95
"""Correlation of the thumbnails, both as they are and with the mean of all other pictures subtracted."""

_NAME, _TITLE = "near_duplicates", "Near duplicates"
_NOT_LOOKED_FOR = "Crops, and turns by other angles than quarters, are not looked for."
_LEAST_SPREAD = 1.0  # of 255; a thumbnail with less contrast shows nothing that could be compared
_FEW = 100  # so many pictures are compared all with all
_ROUNDING = 1e-3  # of correlations in single precision, thousands of times as much as there is


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
    contrasted = np.flatnonzero(contrast)
    if len(contrasted) < 2:
        return NearDuplicates(np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=np.int64), 0)
    rows = normalise(thumbnails[contrasted])
    candidates, views, num_capped = _all_pairs(rows) if len(rows) <= _FEW else _candidates(rows)
    alike = _are_alike(rows, candidates, views)
    candidates, views = candidates[alike], views[alike]
    plainest_first = np.argsort(views, kind="stable")
    pairs, kept = np.unique(candidates[plainest_first], axis=0, return_index=True)
    return NearDuplicates(contrasted[pairs], views[plainest_first][kept], num_capped)


def _all_pairs(rows: Normalised) -> NearDuplicates:
    """Few pictures have no usual frequencies to be compared with, so each is compared with each, in every view.

    Only pairs whose correlation may reach ``LEAST_CORRELATION`` go on to where it is computed in double precision.
    """
    pictures = rows.reshape(-1, THUMBNAIL_SIDE, THUMBNAIL_SIDE)
    correlations = np.stack([rows @ view.of(pictures).reshape(len(rows), -1).T / rows.shape[1] for view in VIEWS])
    views, first, second = np.nonzero(np.triu(correlations >= LEAST_CORRELATION - _ROUNDING, k=1))
    return NearDuplicates(np.stack([first, second], axis=1), views, 0)


def _candidates(rows: Normalised) -> NearDuplicates:
    """Pairs whose hashes are near, as they are or after one picture was turned."""
    strings = np.concatenate(hash_views(rows))
    near = find_near_pairs(strings, most_different=MOST_DIFFERENT_BITS, bucket_cap=len(VIEWS) * BUCKET_CAP, num_first=len(rows))
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
        none_alike = f"No two of {counted(len(rows), 'different picture')} look alike (correlation of thumbnails)."
        text = f"{none_alike} {_NOT_LOOKED_FOR}{capped}"
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
