"""The bucketed search finds what comparing all with all finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.data.checks.near_duplicates import find_near_pairs


def brute_force(strings, most_different):
    bits = np.unpackbits(strings, axis=1)
    return [[i, j] for i in range(len(bits)) for j in range(i + 1, len(bits)) if (bits[i] != bits[j]).sum() <= most_different]


@st.composite
def families(draw):
    """Strings of 128 bits: a few random ones, and copies of them with up to ten bits turned."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    originals = rng.integers(0, 2, (draw(st.integers(1, 4)), 128))
    copies = []
    for turned in draw(st.lists(st.integers(0, 10), min_size=1, max_size=20)):
        copy = originals[rng.integers(len(originals))].copy()
        copy[rng.permutation(128)[:turned]] ^= 1
        copies.append(copy)
    return np.packbits(np.concatenate([originals, np.asarray(copies)]), axis=1)


@settings(deadline=None)
@given(strings=families(), most_different=st.integers(0, 7))
def test_every_pair_that_differs_in_fewer_bits_than_bands_is_found(strings, most_different):
    near = find_near_pairs(strings, most_different=most_different)
    assert near.pairs.tolist() == brute_force(strings, most_different)
    assert near.num_capped == 0


@settings(deadline=None)
@given(strings=families(), most_different=st.integers(8, 60))
def test_nothing_beyond_the_limit_is_found(strings, most_different):
    found = find_near_pairs(strings, most_different=most_different).pairs.tolist()
    assert [pair for pair in found if pair not in brute_force(strings, most_different)] == []


def test_a_large_bucket_is_capped_and_counted():
    strings = np.zeros((50, 16), np.uint8)
    near = find_near_pairs(strings, most_different=0, bucket_cap=5)
    assert near.num_capped == 50
    assert len(near.pairs) == sum(50 - step for step in range(1, 6))
    assert find_near_pairs(strings, most_different=0, bucket_cap=49).num_capped == 0


@pytest.mark.parametrize("number", [0, 1])
def test_fewer_than_two_strings_have_no_pairs(number):
    near = find_near_pairs(np.zeros((number, 16), np.uint8), most_different=7)
    assert near.pairs.shape == (0, 2)
