"""How unlike the others a target is: told by what was seen of it, and the same whatever the order."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from crossgraft.rank.belief import Belief, Observation
from crossgraft.rank.conditioning import FULL, Observed
from crossgraft.rank.scale_mixture import mixture
from crossgraft.rank.standing import Standing

NUMBER = 12
NAMES = tuple(f"m{i}" for i in range(NUMBER))


def standing(freedom=6.0, *, number=NUMBER, specific=0.3):
    mean = np.linspace(1.5, -1.5, number)
    return Standing(mean, 0.01 * np.eye(number), specific * np.eye(number), freedom, ((),) * number)


def belief(freedom=6.0):
    prior = standing(freedom)
    return Belief(NAMES, prior.mean, prior.general + prior.specific, prior=prior).after(())


def seen(values, kind="low:size=0.571", error=None):
    return [Observation(f"m{i}", kind, float(value), error) for i, value in values.items()]


def test_before_anything_is_seen_it_is_a_student_t():
    before = belief(freedom=5.0)
    np.testing.assert_allclose(before.covariance, standing().general + standing().specific, atol=1e-12)
    chance = before.probability_better("m11", "m0")
    scale = np.sqrt(2 * 0.31 * 3 / 5)
    assert chance == pytest.approx(stats.t.cdf(-3.0 / scale, df=5), abs=0.002)
    assert chance > 2 * belief(freedom=np.inf).probability_better("m11", "m0")


def test_a_target_that_turns_the_order_round_is_unlike_the_others():
    before = belief()
    as_told = before.after(seen({i: 0.9 - 0.01 * i for i in range(6)}))
    turned = before.after(seen({i: 0.9 + 0.01 * i for i in range(6)}))
    assert before.factor == pytest.approx(1) and as_told.factor < 0.9 and turned.factor > 1.3
    assert turned.covariance[9, 9] > as_told.covariance[9, 9] + 0.1
    assert turned.foresight().covariance[9, 9] > as_told.foresight().covariance[9, 9]


def test_a_prior_that_is_certain_stays():
    before = belief(freedom=np.inf)
    after = before.after(seen({i: 0.9 + 0.01 * i for i in range(6)}))
    assert len(before.parts) == len(after.parts) == 1 and after.factor == 1
    sure = standing()._replace(general=1e-9 * np.eye(NUMBER), specific=np.zeros((NUMBER, NUMBER)))
    stays = replace(before, prior=sure).after(seen({i: 0.9 + 0.01 * i for i in range(6)}))
    np.testing.assert_allclose(stays.mean, sure.mean, atol=1e-5)


def test_order_and_portions_change_nothing_and_draws_are_the_same_again():
    every = [*seen({0: 0.7, 4: 0.9, 8: 0.8}), *seen({4: 0.91, 8: 0.93}, FULL, 0.01)]
    once, bit_by_bit = belief().after(every), belief()
    for each in reversed(every):
        bit_by_bit = bit_by_bit.after([each])
    np.testing.assert_array_equal(once.mean, bit_by_bit.mean)
    np.testing.assert_array_equal(once.covariance, bit_by_bit.covariance)
    assert once.factor == bit_by_bit.factor
    assert (once.probability_best(seed=3) == bit_by_bit.probability_best(seed=3)).all()
    assert once.probability_best(seed=3).sum() == pytest.approx(1)


def test_moments_are_those_of_the_draws():
    after = belief(freedom=4.5).after(seen({i: 0.9 + 0.01 * i for i in range(5)}))
    drawn = after._draws(1)
    np.testing.assert_allclose(drawn.mean(axis=0), after.mean, atol=0.06)
    np.testing.assert_allclose(np.diag(np.cov(drawn.T)), np.diag(after.covariance), rtol=0.15)


def observed(kind, number, *, seed=0):
    values = 0.8 + 0.05 * np.random.default_rng(seed).standard_normal(number)
    return Observed(kind, np.arange(number), values, np.full(number, 0.01))


@pytest.mark.parametrize("number", [1, 2, 120])
def test_one_model_and_many_have_finite_beliefs(number):
    prior = standing(number=number)
    for kinds in (
        [],
        [observed(FULL, number)],
        [observed(FULL, max(number // 2, 1)), observed("low:size=0.571", number)],
    ):
        mean, covariance = mixture(prior, kinds, without_group=None).moments()
        assert np.isfinite(mean).all() and np.isfinite(covariance).all()
        assert np.diag(covariance).min() > 0
