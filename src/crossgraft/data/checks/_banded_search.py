"""Pairs of bit strings that differ in few places, without comparing all with all.

The bits are cut into bands. Two strings that differ in fewer places than there are bands agree in one whole band, so it
is enough to compare those that share a band: that pair is found for certain, pairs that differ in more places often.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Int, UInt8

BAND_BYTES = 2
"""16 bits a band: balanced bits put n strings into 65 536 buckets."""
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
    found: list[Pairs] = []
    is_capped = np.zeros(len(strings), dtype=bool)
    numbers = np.ascontiguousarray(strings).view(np.uint16)
    for band in range(numbers.shape[1]):
        keys = [numbers[:, other] for other in range(numbers.shape[1]) if other != band]
        order = np.lexsort((*keys, numbers[:, band]))
        sorted_band = numbers[order, band]
        for step in range(1, bucket_cap + 1):
            same = np.flatnonzero(sorted_band[step:] == sorted_band[:-step])
            if same.size == 0:
                break
            pairs = np.sort(np.stack([order[same], order[same + step]], axis=1), axis=1)
            pairs = pairs if num_first is None else pairs[pairs[:, 0] < num_first]
            found.append(pairs[count_different(strings, pairs) <= most_different])
        is_capped[order[_in_large_buckets(sorted_band, bucket_cap)]] = True
    everything = np.concatenate(found) if found else np.empty((0, 2), dtype=np.int64)
    return NearPairs(np.unique(everything, axis=0), int(is_capped.sum()))


def count_different(strings: BitStrings, pairs: Pairs) -> Int[np.ndarray, " num_pairs"]:
    """Number of different bits of each pair."""
    return _ONES[strings[pairs[:, 0]] ^ strings[pairs[:, 1]]].sum(axis=1, dtype=np.int64)


def _in_large_buckets(sorted_keys: np.ndarray, cap: int) -> np.ndarray:
    """Places of sorted keys that occur more than ``cap`` + 1 times: not all pairs of these were compared."""
    _, index, counts = np.unique(sorted_keys, return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[index] > cap + 1)
