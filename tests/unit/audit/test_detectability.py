"""A probe finds an edit that arrives, and none that does not."""

import numpy as np
import pytest

from crossgraft.audit import detectability
from crossgraft.errors import DataError


def features(shift, number=60, width=12, seed=0):
    """Clean and edited features; images differ far more than an edit changes them."""
    rng = np.random.default_rng(seed)
    images = 3 * rng.standard_normal((number, width))
    noise = 0.1 * rng.standard_normal((2, number, width))
    return images + noise[0], images + noise[1] + shift * np.eye(width)[0]


def test_it_grows_with_the_edit():
    found = [detectability(*features(shift)).auc.value for shift in (0, 3, 9, 30)]
    assert found[0] < 0.6 < found[2] and found == sorted(found) and found[3] > 0.99


def test_an_edit_that_changes_nothing_is_not_detectable():
    clean, _ = features(0)
    found = detectability(clean, clean)
    assert found.auc.value == pytest.approx(0.5, abs=0.05) and not found.is_detectable
    many = [detectability(*features(0, seed=seed)).auc.value for seed in range(20)]
    assert np.mean(many) < 0.55  # nothing leaks from one version of an image to the other


def test_patients_stay_together():
    """Features that tell patients apart, and an edit in every image of a patient's own kind: others are not known."""
    clean, edited = features(4)
    patients = np.repeat(np.arange(12), 5)
    alone, grouped = detectability(clean, edited), detectability(clean, edited, patients)
    assert alone.is_detectable and grouped.auc.num_groups == 12 and alone.auc.num_groups == 60


@pytest.mark.parametrize(
    ("clean", "edited", "groups", "said"),
    [
        (np.ones((6, 2)), np.ones((6, 3)), None, "same images"),
        (np.full((6, 2), np.nan), np.ones((6, 2)), None, "NaN"),
        (np.ones((4, 2)), np.ones((4, 2)), None, "at least 5 images, and there are 4"),
        (np.ones((6, 2)), np.ones((6, 2)), np.array(list("aabbcc")), "at least 5 groups, and there are 3"),
    ],
)
def test_bad_input(clean, edited, groups, said):
    with pytest.raises((DataError, TypeError), match=None if said == "same images" else said):
        detectability(clean, edited, groups)
