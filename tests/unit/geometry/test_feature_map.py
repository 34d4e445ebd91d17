"""Maps of features: components of the union, distances and overlaps whose values are known."""

import math

import numpy as np
import pytest
from scipy import stats

from crossgraft.errors import DataError, NotApplicable, UsageError
from crossgraft.geometry import feature_map
from crossgraft.geometry.feature_map import bhattacharyya_of_gaussians, overlap_of_densities, tsne_maps

DRAWS = np.random.default_rng(0)
HOME = DRAWS.standard_normal((60, 5)) * [3, 2, 1, 0.5, 0.5]


def test_the_plane_is_that_of_the_union_and_distances_are_of_centroids():
    shift = np.array([4.0, 0, 0, 0, 1.0])
    away = HOME + shift
    found = feature_map({"before": HOME, "after": away}, bhattacharyya=True)
    union = np.concatenate([HOME, away])
    values, vectors = np.linalg.eigh(np.cov(union.T, ddof=0))
    assert found.shares == pytest.approx((values[-1] / values.sum(), values[-2] / values.sum()))
    expected = np.abs(shift @ vectors[:, :-3:-1])
    assert found.networks["after"].distance == pytest.approx(float(np.linalg.norm(expected)))
    radius = math.sqrt(np.square(HOME - HOME.mean(0)).sum(1).mean())
    assert found.networks["after"].relative_distance == pytest.approx(float(np.linalg.norm(shift)) / radius)
    assert found.networks["before"].overlap == pytest.approx(1) and found.networks["before"].bhattacharyya == pytest.approx(1)
    assert 0 < found.networks["after"].overlap < 1
    points = np.concatenate([each.points for each in found.networks.values()])
    np.testing.assert_allclose(np.var(points, axis=0), values[[-1, -2]], rtol=1e-9)


def test_turning_and_scaling_all_features_changes_no_ratio():
    after = HOME * [1, 2, 1, 1, 1] + [1, 0, 2, 0, 0]
    turn = np.linalg.qr(DRAWS.standard_normal((5, 5)))[0]
    plain = feature_map({"a": HOME, "b": after}).networks["b"]
    turned = feature_map({"a": 7 * HOME @ turn + 3, "b": 7 * after @ turn + 3}).networks["b"]
    assert turned.relative_distance == pytest.approx(plain.relative_distance)
    assert turned.overlap == pytest.approx(plain.overlap, abs=1e-6)
    assert turned.distance == pytest.approx(7 * plain.distance)


def test_overlap_approaches_that_of_the_true_densities():
    """Of two round Gaussians at a distance of 2: 2 Φ(−1)."""
    one, other = (DRAWS.standard_normal((800, 2)) + np.array([x, 0]) for x in (0, 2))
    assert overlap_of_densities(one, other) == pytest.approx(2 * stats.norm.cdf(-1), abs=0.06)
    assert overlap_of_densities(one, one + np.array([50, 0])) < 1e-6
    with pytest.raises(NotApplicable, match="a grid misses them"):
        overlap_of_densities(one, one * 1e-5 + np.array([0.03, 0.04]))


def test_bhattacharyya_of_two_gaussians_in_a_line_is_its_formula():
    """exp(−Δ² / 8) of equal variances 1."""
    one = DRAWS.standard_normal((20_000, 1))
    assert bhattacharyya_of_gaussians(one, one + 2) == pytest.approx(math.exp(-0.5 / one.var()), rel=0.01)


def test_what_has_no_map_is_named():
    with pytest.raises(UsageError, match="there is one"):
        feature_map({"a": HOME})
    with pytest.raises(UsageError, match="The reference c is none of the networks: a, b"):
        feature_map({"a": HOME, "b": HOME}, reference="c")
    with pytest.raises(DataError, match="Features of b hold NaN or infinite numbers, first for image 3"):
        feature_map({"a": HOME, "b": np.where(np.arange(60)[:, None] == 3, np.nan, HOME)})
    with pytest.raises(DataError, match="3 images are too few"):
        feature_map({"a": HOME[:3], "b": HOME[:3]})
    with pytest.raises(DataError, match="60×4, those of a 60×5"):
        feature_map({"a": HOME, "b": HOME[:, :4]})
    with pytest.raises(NotApplicable, match="features of a are the same for all images"):
        feature_map({"a": np.ones((60, 5)), "b": HOME})
    constant = feature_map({"a": HOME, "b": np.ones((60, 5))}).networks["b"]
    assert constant.overlap is None and "no density in the plane" in constant.reason


def test_two_groups_have_a_gap_and_one_has_none():
    one = DRAWS.standard_normal((40, 6))
    two = one + np.where(np.arange(40) < 20, 8.0, 0.0)[:, None]
    found = tsne_maps({"one": one, "two": two, "flat": np.ones((40, 6))})
    assert found["two"].gap > 0.6 > 0.3 > found["one"].gap
    assert found["two"].drawn_gap > 0.6
    assert 0.7 < found["two"].trustworthiness <= 1
    assert found["one"].perplexity == 13
    assert found["flat"].points is None and "same features" in found["flat"].reason
    np.testing.assert_array_equal(found["one"].points, tsne_maps({"x": one})["x"].points)
    with pytest.raises(DataError, match="5 images of one class are too few"):
        tsne_maps({"one": one[:5]})
