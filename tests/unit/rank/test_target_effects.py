"""Which networks go together on one target: found again in drawn tables, and learned of a user's own targets."""

import numpy as np
import pytest
from scipy import optimize

from crossgraft.rank.own_targets import learned_covariance
from crossgraft.rank.prior_of_names import TARGETS
from crossgraft.rank.relatives import PARTS
from crossgraft.rank.table_means import Deviations
from crossgraft.rank.target_effects import _contrasts, _negative_likelihood, fit_target_effects, spreads

FAMILIES = ("resnet", "vit", "swin", "vgg", "convnext")
NAMES = tuple(f"hub/{family}-{number}" for family in FAMILIES for number in "abcdef")
OWN, FAMILY, TAIL = 0.2, 0.5, 8.0


def drawn(seed, *, num_groups=12, tail=TAIL, names=NAMES):
    rng = np.random.default_rng(seed)
    family = np.array([name.partition("-")[0] for name in names])
    shared = rng.standard_normal((num_groups, len(FAMILIES))) @ (
        family == np.array([f"hub/{f}" for f in FAMILIES])[:, None]
    )
    values = np.sqrt(FAMILY) * shared + np.sqrt(OWN) * rng.standard_normal((num_groups, len(names)))
    values *= np.sqrt((tail - 2) / rng.chisquare(tail, size=num_groups))[:, None]
    return Deviations(str(seed), tuple(names), values.mean(axis=0), values)


@pytest.fixture(scope="module")
def fitted():
    return fit_target_effects([drawn(seed) for seed in range(12)], TARGETS)


def test_relatives_and_heavy_tails_are_found_again(fitted):
    found = dict(zip(PARTS, fitted.variances, strict=True))
    own = found["own"] + found["architecture"]  # each is an architecture of its own
    assert found["family"] / own == pytest.approx(FAMILY / OWN, rel=0.3)
    assert found["order"] * drawn(0).means.var() < 0.05 and found["top1"] + 0.25 * found["size"] < 0.2
    assert 5 < fitted.tail < 14 and fitted.concentration > 20
    plain = fit_target_effects([drawn(seed, tail=1e6) for seed in range(12)], TARGETS)
    assert plain.tail > 3 * fitted.tail


def test_the_gradient_of_the_likelihood_is_its_differences():
    tables = [_contrasts(drawn(0, num_groups=4, names=NAMES[::4]))]
    logs = np.log([0.2, 0.1, 0.1, 0.02, 0.1, 0.05, 20.0])
    slopes = optimize.approx_fprime(logs, lambda x: _negative_likelihood(x, tables)[0], 1e-6)
    np.testing.assert_allclose(_negative_likelihood(logs, tables)[1], slopes, atol=1e-4)


def test_where_no_table_tells_of_it_what_was_before_stays():
    one = drawn(0, num_groups=1)
    assert fit_target_effects([one], TARGETS) == TARGETS and fit_target_effects([], TARGETS) == TARGETS
    assert [each.freedom for each in spreads([one], TARGETS)] == [0.0]


def test_the_spread_of_a_table_is_1_where_it_varies_as_expected_and_gaps_cost_freedom():
    effects = TARGETS._replace(variances=(OWN, 0.0, FAMILY, 0.0, 0.0, 0.0))
    table = drawn(3, tail=1e6, num_groups=40)
    (whole,) = spreads([table], effects)
    assert whole.square == pytest.approx(1, abs=0.1) and whole.freedom == 39 * (len(NAMES) - 1)
    values = table.values.copy()
    values[::2, :5] = np.nan
    (gaps,) = spreads([table._replace(values=values, means=np.nanmean(values, axis=0))], effects)
    assert gaps.square == pytest.approx(1, abs=0.1) and gaps.freedom == whole.freedom - 100


def test_own_targets_say_which_networks_go_together():
    rng = np.random.default_rng(0)
    names = ("a", "b", "c", "d")
    truth = np.array([[1.0, 0.9, 0, 0], [0.9, 1.0, 0, 0], [0, 0, 1.0, -0.6], [0, 0, -0.6, 1.0]])
    values = rng.multivariate_normal(np.zeros(4), truth, size=400)
    own = Deviations("own/0", names, values.mean(axis=0), values)
    prior = np.eye(4)
    many = learned_covariance(names, prior, [own], 20.0)
    contrast = np.array([1.0, -1.0, 0, 0])  # a target has no level, so that differences alone are known
    assert contrast @ many @ contrast == pytest.approx(0.2, abs=0.15)
    few = learned_covariance(names, prior, [own._replace(values=values[:2], means=values[:2].mean(axis=0))], 20.0)
    assert contrast @ few @ contrast > 1.5
    np.testing.assert_allclose(learned_covariance(names, prior, [], 20.0), prior)


def test_networks_that_own_tables_lack_follow_their_relatives():
    rng = np.random.default_rng(0)
    prior = np.array([[1.0, 0.8, 0.0, 0.0], [0.8, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    values = np.stack([3.0 * rng.standard_normal(200), *rng.standard_normal((2, 200))], axis=1)
    own = Deviations("own/0", ("a", "c", "d"), values.mean(axis=0), values)
    found = learned_covariance(("a", "new", "c", "d"), prior, [own], 5.0)
    assert found[1, 1] > 2 * prior[1, 1] and found[0, 1] > 2 * prior[0, 1]
    assert np.linalg.eigvalsh(found).min() > 0
