"""How far a model relies on an artefact: the summaries are the integrals, and exact mode is the mean of the sampled one."""

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from crossgraft.audit.reliance import (
    ExactTestScores,
    early_gap,
    flip_effect,
    flip_share,
    ood_drop_area,
    pair_auc,
    pure_shortcut,
    shortcut_reliance_index,
)
from crossgraft.edit.injection import num_edited
from crossgraft.errors import DataError

SHARES = np.array([0, 0.1, 0.2, 0.5, 0.8, 1])


def scores(rng, number):
    return np.round(rng.random(number), 1)  # ties


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 999), st.integers(1, 7), st.integers(1, 6), st.floats(0, 1))
def test_exact_mode_is_the_mean_of_all_draws(seed, num_positive, num_negative, share):
    """Every choice of k positives, one AUC each, by scikit-learn."""
    from itertools import combinations

    rng = np.random.default_rng(seed)
    found = ExactTestScores(*(scores(rng, n) for n in (num_positive, num_positive, num_negative, num_negative)))
    carrying = num_edited(num_positive, share)
    sampled = []
    for chosen in combinations(range(num_positive), carrying):
        own = found.positives.copy()
        own[list(chosen)] = found.positives_edited[list(chosen)]
        labels = np.r_[np.ones(num_positive), np.zeros(num_negative)]
        sampled.append(roc_auc_score(labels, np.r_[own, found.negatives]))
    assert found.iid(share) == pytest.approx(np.mean(sampled))
    assert (found.iid(0), found.iid(1)) == pytest.approx((found.clean, found.aligned))
    assert found.ood == pytest.approx(pair_auc(found.positives, found.negatives_edited))
    assert found.both == pytest.approx(pair_auc(found.positives_edited, found.negatives_edited))


def test_a_share_is_rounded_as_the_released_code_does():
    assert [num_edited(n, 0.5) for n in (7, 85)] == [4, 42] and num_edited(31, 0.1) == 3
    with pytest.raises(DataError, match="must lie in"):
        num_edited(5, 1.1)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=6, max_size=6), st.lists(st.floats(0, 1), min_size=6, max_size=6))
def test_the_index_is_the_sum_of_trapezoids(iid, ood):
    iid, ood = np.array(iid), np.array(ood)
    gap = iid - ood - (iid[0] - ood[0])
    area = sum((SHARES[i + 1] - SHARES[i]) * (gap[i] + gap[i + 1]) / 2 for i in range(5))
    assert shortcut_reliance_index(SHARES, iid, ood) == pytest.approx(area)
    drop = sum((SHARES[i + 1] - SHARES[i]) * (2 * ood[0] - ood[i] - ood[i + 1]) / 2 for i in range(5))
    assert ood_drop_area(SHARES, iid, ood) == pytest.approx(drop)
    assert shortcut_reliance_index(SHARES, iid, iid) == 0
    assert early_gap(SHARES, iid, ood) == pytest.approx(gap[1])


def test_reference_models():
    pure = pure_shortcut(SHARES)
    assert shortcut_reliance_index(*pure) == pytest.approx(0.725)
    fine = np.linspace(0, 1, 10_001)
    assert shortcut_reliance_index(*pure_shortcut(fine)) == pytest.approx(0.75, abs=1e-4)
    perfect = np.where(SHARES > 0, 1.0, 0.5)
    assert shortcut_reliance_index(SHARES, perfect, np.where(SHARES > 0, 0.0, 0.5)) == pytest.approx(0.95)


def test_where_the_artefact_speaks_louder():
    assert flip_share(SHARES, np.array([0.8, 0.7, 0.6, 0.35, 0.15, 0.05])) == pytest.approx(0.32)
    assert flip_share(SHARES, np.full(6, 0.6)) is None and flip_share(SHARES, np.full(6, 0.5)) is None
    assert flip_share(SHARES, np.full(6, 0.4)) == 0


def test_the_flip_effect_is_a_mean_of_logits():
    clean, edited = np.array([0.2, 0.5]), np.array([0.5, 0.8])
    expected = np.mean(np.log(edited / (1 - edited)) - np.log(clean / (1 - clean)))
    assert flip_effect(clean, edited) == pytest.approx(expected)
    assert flip_effect(clean, clean) == 0
    sure = [flip_effect(np.array([0.5]), np.array([each])) for each in (0.0, 1.0)]
    assert sure[1] == pytest.approx(-sure[0]) == pytest.approx(36, abs=0.1)
    with pytest.raises(DataError, match="probabilities"):
        flip_effect(clean, edited + 1)
    with pytest.raises(DataError, match="without and with"):
        flip_effect(clean, edited[:1])


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ([0.1, 0.2, 0.5], "The share 0 is missing"),
        ([0, 0.5], "at least 3 ascending shares"),
        ([0, 0.5, 0.5], "ascending"),
        ([0, 0.5, 1.5], "ascending shares in"),
    ],
)
def test_curves_without_a_summary(shares, said):
    ones = np.ones(len(shares))
    with pytest.raises(DataError, match=said):
        shortcut_reliance_index(np.array(shares), ones, ones)


def test_values_that_are_missing(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(DataError, match="not finite"):
        shortcut_reliance_index(SHARES, np.full(6, np.nan), np.ones(6))
    with pytest.raises(DataError, match="as many"):
        flip_share(SHARES, np.ones(5))
    with pytest.raises(DataError, match="both classes"):
        pair_auc(np.array([]), np.ones(2))
