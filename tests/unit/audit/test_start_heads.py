"""Heads on the starting network: what varies between them, and what does not."""

import numpy as np
import pytest

from crossgraft.audit.explained import LEAST_IMAGES, NUM_HEADS, SHARE_OF_HEAD, FittingRows, _draw, fit_heads
from crossgraft.errors import DataError
from crossgraft.seeding import generator


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    is_positive = np.arange(60) % 2 == 0
    return FittingRows(rng.normal(size=(60, 5)) + is_positive[:, None], is_positive, np.arange(60) // 3)


def test_a_draw_holds_whole_patients_and_a_model_that_is_a_head_has_each_once(rows):
    numbers = {}
    for is_head in (True, False):
        drawn = _draw(rows, generator(0, "draw"), is_head=is_head)
        patients, counts = np.unique(rows.groups[drawn], return_counts=True)
        assert (counts % 3 == 0).all()
        numbers[is_head] = len(patients), counts.max()
    assert numbers[True] == (SHARE_OF_HEAD * 20, 3)
    assert numbers[False][1] > 3  # with replacement


def test_heads_of_a_model_that_is_one_differ_less(rows):
    answers = rows.features.sum(axis=1)
    spread = {
        is_head: fit_heads(rows, rows.features, answers, is_head=is_head).logits(rows.features).std(axis=0).mean()
        for is_head in (True, False)
    }
    assert 1.2 * spread[True] < spread[False]


def test_a_feature_that_next_to_no_image_of_a_draw_lights_does_not_explode(rows):
    """Its deviation in a draw that lacks the two images is 1e-3, and what an edit lights there would count a thousandfold."""
    rare = np.random.default_rng(1).normal(0, 1e-3, (60, 1))
    rare[[0, 4]] = 1.0
    known = rows._replace(features=np.hstack([rows.features, rare]))
    lit = known.features.copy()
    lit[:, -1] = 1.0
    heads = fit_heads(known, known.features, known.features[:, 0])
    moved = np.abs(heads.logits(lit) - heads.logits(known.features)).mean(axis=1)
    assert len(moved) == NUM_HEADS and moved.max() < 25


def test_too_few_images_are_named(rows):
    few = rows.take(np.r_[0 : 2 * LEAST_IMAGES - 1])
    with pytest.raises(DataError, match=rf"need {LEAST_IMAGES} images of each class .* 10 positive and 9 negative"):
        fit_heads(few, few.features, few.features[:, 0])
