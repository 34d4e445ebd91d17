"""What observations that are still to come will tell: the covariance of the belief that then holds, whatever they say."""

from dataclasses import replace

import numpy as np
import pytest

from crossgraft.rank.belief import Observation, believe
from crossgraft.rank.foresight import NextLook

MODELS = ("resnet18", "densenet121", "vgg16", "mine")
KIND = "low:size=0.286"


@pytest.fixture(scope="module")
def belief():
    return believe(MODELS, target="a new one", metric="auc")


def contrasts(covariance):
    centred = covariance - covariance.mean(axis=0)
    return centred - centred.mean(axis=1, keepdims=True)


def covariance_after(belief, looks):
    foresight = belief.foresight()
    return foresight.covariance - sum(moved @ moved.T for moved in foresight.moves(looks))


def observed(*values, kind=KIND):
    return [Observation(model, kind, value, None) for model, value in zip(MODELS, values, strict=False)]


def test_before_anything_is_seen_it_is_the_belief(belief):
    foresight = belief.foresight()
    assert np.allclose(foresight.mean, belief.mean) and np.allclose(foresight.covariance, belief.covariance)
    assert (
        foresight.says_something(KIND)
        and foresight.says_something("full")
        and not foresight.says_something("score:mine")
    )


def test_what_is_foreseen_of_cheap_trainings_comes_true(belief):
    """Where λ is known, the covariance does not depend on values but for their scale; without errors not on that either."""
    belief = replace(belief, prior=belief.prior._replace(freedom=np.inf)).after(())
    foreseen = covariance_after(belief, [NextLook(KIND, (0, 1, 2), None)])
    came = belief.after(observed(0.7, 0.9, 0.8))
    assert np.allclose(contrasts(foreseen), contrasts(came.covariance), atol=1e-4)
    further = covariance_after(came, [NextLook(KIND, (3,), None)])
    assert np.allclose(contrasts(further), contrasts(belief.after(observed(0.7, 0.9, 0.8, 0.75)).covariance), atol=1e-4)


def test_exact_full_results_leave_no_doubt_about_differences(belief):
    foreseen = contrasts(covariance_after(belief, [NextLook("full", (0, 1, 2, 3), None)]))
    assert np.allclose(foreseen, 0, atol=1e-3)
    one = covariance_after(belief, [NextLook("full", (0,), None)])
    assert np.allclose(
        contrasts(one), contrasts(belief.covariance), atol=1e-3
    )  # a lone result has no level to stand on


def test_an_error_of_val_leaves_doubt(belief):
    exact, doubtful = (
        np.trace(contrasts(covariance_after(belief, [NextLook("full", (0, 1, 2, 3), error)]))) for error in (None, 0.05)
    )
    assert doubtful > exact + 0.1


def test_after_a_full_result_it_stays_in_normal_scores(belief):
    after = belief.after([*observed(0.8, 0.9, kind="full")])
    foresight = after.foresight()
    assert after.unit == "metric" and foresight.mean[1] > foresight.mean[0]
    assert 0.05 < np.sqrt(np.diag(contrasts(foresight.covariance))[3]) < 2


def test_looks_add_up(belief):
    """Together they tell what they tell one after the other, and the later rows only what the earlier have not told."""
    seen = belief.after(observed(0.7, 0.9, 0.8, kind="low:size=0.125"))
    first, second = NextLook(KIND, (1, 2), 0.01), NextLook("full", (2, 3), 0.02)
    foresight = seen.foresight()
    one, other = foresight.moves([first, second])
    alone = foresight.moves([first])[0]
    assert np.allclose(one, alone, atol=1e-8)
    swapped = sum(moved @ moved.T for moved in foresight.moves([second, first]))
    assert np.allclose(contrasts(one @ one.T + other @ other.T), contrasts(swapped), atol=1e-4)
