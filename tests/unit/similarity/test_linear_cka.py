import numpy as np
import pytest

from crossgraft.errors import DataError, NotApplicable
from crossgraft.similarity import linear_cka


def features(n=40, d=6, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def test_the_feature_form_of_the_paper():
    x, y = features(), features(d=4, seed=1)
    x, y = x - x.mean(0), y - y.mean(0)
    expected = np.linalg.norm(y.T @ x) ** 2 / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y))
    assert linear_cka(x + 3, y - 2) == pytest.approx(expected, rel=1e-12)


def test_the_unbiased_estimate_is_the_mean_over_different_images():
    """HSIC of Song et al., eq. 4: means over pairs, triples and quadruples of images that are all different."""
    from itertools import permutations

    x, y = features(6, 3), features(6, 2, seed=1)

    def hsic(k, m):
        n = len(k)
        pairs = np.mean([k[i, j] * m[i, j] for i, j in permutations(range(n), 2)])
        triples = np.mean([k[i, j] * m[i, q] for i, j, q in permutations(range(n), 3)])
        four = np.mean([k[i, j] * m[q, r] for i, j, q, r in permutations(range(n), 4)])
        return pairs + four - 2 * triples

    k, m = x @ x.T, y @ y.T
    expected = hsic(k, m) / np.sqrt(hsic(k, k) * hsic(m, m))
    assert linear_cka(x, y, debiased=True) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("debiased", [False, True])
def test_rotation_and_scale_change_nothing(debiased):
    x, y = features(), features(d=5, seed=1)
    rotation = np.linalg.qr(features(6, 6, seed=2))[0]
    assert linear_cka(x, x, debiased=debiased) == pytest.approx(1)
    assert linear_cka(100 * x @ rotation, y, debiased=debiased) == pytest.approx(linear_cka(x, y, debiased=debiased))
    stretched = x * np.array([9, 1, 1, 1, 1, 1])
    assert linear_cka(stretched, y, debiased=debiased) != pytest.approx(linear_cka(x, y, debiased=debiased), rel=1e-3)


def test_only_the_debiased_form_is_near_zero_for_independent_features():
    pairs = [(features(60, 100, seed=s), features(60, 100, seed=s + 50)) for s in range(5)]
    assert min(linear_cka(x, y) for x, y in pairs) > 0.5
    assert abs(np.mean([linear_cka(x, y, debiased=True) for x, y in pairs])) < 0.05


def test_what_has_no_meaning_is_named():
    with pytest.raises(DataError, match="same images"):
        linear_cka(features(5), features(6))
    with pytest.raises(DataError, match="finite"):
        linear_cka(features(5) * np.nan, features(5))
    with pytest.raises(NotApplicable, match="at least 4 images"):
        linear_cka(features(3), features(3), debiased=True)
    with pytest.raises(NotApplicable, match="same features"):
        linear_cka(np.ones((5, 2)), features(5))
