"""Which images carry an artefact: the right number of each part, nested, and whatever their order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.edit.injection import draw_carriers
from crossgraft.errors import DataError


def identities(number):
    return [f"image {each}" for each in range(number)]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 99), st.integers(1, 40), st.floats(0, 1), st.floats(0, 1))
def test_draws_are_nested_and_counted_by_part(seed, number, share, other):
    rng = np.random.default_rng(seed)
    candidates, parts = rng.random(number) < 0.7, rng.choice(["train", "test"], number)
    low, high = sorted([share, other])
    few, many = (draw_carriers(candidates, each, identities(number), parts=parts, seed=seed) for each in (low, high))
    assert not (few & ~many).any() and not (many & ~candidates).any()
    for part in np.unique(parts):
        here = parts == part
        assert few[here].sum() == round(low * int((candidates & here).sum()))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 99), st.floats(0, 1))
def test_the_order_of_the_rows_does_not_matter(seed, share):
    names, candidates = identities(20), np.ones(20, dtype=bool)
    order = np.random.default_rng(seed).permutation(20)
    drawn = draw_carriers(candidates, share, names, seed=seed)
    turned = draw_carriers(candidates, share, [names[each] for each in order], seed=seed)
    np.testing.assert_array_equal(turned, drawn[order])


def test_seeds_differ():
    drawn = [draw_carriers(np.ones(40, dtype=bool), 0.5, identities(40), seed=seed).tolist() for seed in range(5)]
    assert len(set(map(tuple, drawn))) == 5


def test_whole_patients_carry_it():
    groups = np.repeat(["a", "b", "c", "d"], 5)
    drawn = draw_carriers(np.ones(20, dtype=bool), 0.5, identities(20), groups=groups)
    assert drawn.sum() == 10 and all(len(set(drawn[groups == each])) == 1 for each in "abcd")


def test_a_share_that_is_none():
    with pytest.raises(DataError, match=r"must lie in \[0, 1\]"):
        draw_carriers(np.ones(4, dtype=bool), 1.5, identities(4))
