"""What no confounder takes, and how options of several numbers are written."""

import numpy as np
import pytest

from crossgraft.choice import choose, spell
from crossgraft.edit.confounders import CONFOUNDERS
from crossgraft.errors import DataError, UsageError


@pytest.mark.parametrize("strength", [1e308, 2e6, float("inf"), float("nan"), -1.0])
def test_a_strength_that_no_image_can_show_is_refused(strength):
    with pytest.raises(UsageError, match="must be at least 0 and at most 1,000,000"):
        CONFOUNDERS.get("tag")()(np.full((40, 48), 0.5), np.random.default_rng(0), strength=strength)


def test_bad_images():
    confounder = CONFOUNDERS.get("low_pass")()
    for image, said in (
        (np.zeros((10, 10, 2)), "must be"),
        (np.zeros(10), "must be"),
        (np.zeros((4, 40)), "too small"),
        (np.full((10, 10), np.nan), "NaN"),
        (np.full((10, 10), 7.0), "out of its range"),
        (np.zeros((10, 10), np.int64), "has no range that is known"),
    ):
        with pytest.raises(DataError, match=said):
            confounder(image)
    with pytest.raises(UsageError, match="strength"):
        confounder(np.zeros((10, 10)), strength=-1.0)
    edited, _ = confounder(np.full((10, 10), 1000, np.int16), value_range=(-1024, 3071))
    assert edited.dtype == np.int16 and (edited == 1000).all()


def test_several_numbers_are_written_as_a_list():
    tag = choose(CONFOUNDERS, "tag:0.1,xy=[0.3,0.4],text=L")
    assert (tag.size, tag.xy, tag.text) == (0.1, (0.3, 0.4), "L")
    assert spell(tag) == "tag:size=0.1,xy=[0.3,0.4],text=L" and choose(CONFOUNDERS, spell(tag)) == tag
