"""Beliefs against conditioning by contrasts, their invariances, and what each sort of evidence may change."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.errors import DataError, UnknownNameError
from crossgraft.rank.belief import Observation, believe
from crossgraft.rank.conditioning import Observed, Read, posterior
from crossgraft.rank.foresight import NextLook
from crossgraft.rank.kinds import KindModel, kind_model
from crossgraft.rank.standing import Standing
from crossgraft.records import KnownResult

NAMES = ("resnet18.tv_in1k", "densenet121.tv_in1k", "resnet50.tv_in1k", "vgg16.tv_in1k", "nobody/knows-this")


@pytest.fixture(scope="module")
def before():
    return believe(NAMES, target="somewhere else")


def seen(kind, values, names=NAMES, error=None):
    return [Observation(name, kind, value, error) for name, value in zip(names, values, strict=False)]


def result(model, target, value, **changes):
    fields = {"weights": "w", "source": "s", "protocol": "mine", "metric": "accuracy", "origin": "crossgraft tune"}
    return KnownResult(model=model, target=target, value=value, **(fields | changes))


def test_the_posterior_is_conditioning_on_contrasts_which_know_no_level():
    """Differences of observations do not depend on their level; the joint normal of them and the results is written out here."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    effect = rng.normal(size=(4, 4))
    specific = 0.1 * effect @ effect.T + 0.2 * np.eye(4)  # relatives err together
    prior = Standing(rng.normal(size=4), root @ root.T, specific, np.inf, ((),) * 4)
    model, scale, places = KindModel(0.9, 0.5, 0.6, 9), 0.03, np.array([0, 2, 3])
    values, errors = np.array([0.81, 0.77, 0.84]), np.array([0.01, 0.0, 0.02])
    mean, covariance = posterior(
        prior, [Read(Observed("low:size=0.5", places, values, errors), model, values, scale)], None
    )

    contrasts = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
    of = prior.general[np.ix_(places, places)]
    alone = specific[np.ix_(places, places)]
    v = scale**2 * (model.general**2 * of + model.specific**2 * alone + model.noise**2 * np.eye(3)) + np.diag(errors**2)
    cross = scale * (model.general * prior.general[:, places] + model.specific * specific[:, places])
    gain = cross @ contrasts.T @ np.linalg.inv(contrasts @ v @ contrasts.T)
    wanted = prior.mean + gain @ contrasts @ (values - scale * model.general * prior.mean[places])
    np.testing.assert_allclose(mean, wanted, atol=1e-4)
    np.testing.assert_allclose(covariance, prior.general + specific - gain @ contrasts @ cross.T, atol=1e-4)


@settings(max_examples=15, deadline=None)
@given(st.floats(-5, 5), st.floats(0.01, 100), st.permutations(range(5)))
def test_level_scale_and_order_of_cheap_evidence_change_nothing(before, level, scale, order):
    values = np.array([0.7, 0.9, 0.75, 0.6, 0.8])
    plain = before.after(seen("low:size=0.286", values))
    moved = seen("low:size=0.286", level + scale * values)
    other = before.after([moved[i] for i in order[:2]]).after([moved[i] for i in order[2:]])
    np.testing.assert_allclose(other.mean, plain.mean, atol=1e-6)
    np.testing.assert_allclose(other.covariance, plain.covariance, atol=1e-6)


def test_a_rung_of_the_best_few_does_not_make_them_look_middling(before):
    """The two that were best at low fidelity stay ahead when only they are trained a little longer, with equal results."""
    low = before.after(seen("low:size=0.125", [0.6, 0.95, 0.93, 0.5, 0.55]))
    both = low.after(
        [Observation(NAMES[1], "low:size=0.571", 0.96, None), Observation(NAMES[2], "low:size=0.571", 0.96, None)]
    )
    assert min(both.mean[1], both.mean[2]) > max(both.mean[0], both.mean[3], both.mean[4])


def test_full_results_set_the_unit_and_are_believed(before):
    cheap = before.after(seen("low:size=0.571", [0.80, 0.86, 0.84, 0.70, 0.75]))
    full = cheap.after([Observation(NAMES[1], "full", 0.91, 0.0), Observation(NAMES[2], "full", 0.90, 0.0)])
    assert (before.unit, cheap.unit, full.unit) == ("normal score", "normal score", "metric")
    assert full.mean[1] == pytest.approx(0.91, abs=1e-5)
    assert full.covariance[1, 1] < 1e-6
    assert full.probability_better(NAMES[1], NAMES[2]) > 0.99
    assert full.mean[3] < full.mean[0] < 0.95
    noisy = cheap.after([Observation(NAMES[1], "full", 0.91, 0.02), Observation(NAMES[2], "full", 0.90, 0.02)])
    assert 0.5 < noisy.probability_better(NAMES[1], NAMES[2]) < 0.8


def test_chances_and_regret_are_of_the_joint_distribution(before):
    best = before.probability_best(seed=1)
    assert best.sum() == pytest.approx(1)
    assert (best == before.probability_best(seed=1)).all()
    regrets = [before.expected_regret(name, seed=1) for name in NAMES]
    assert min(regrets) >= 0
    assert np.argmin(regrets) == np.argmax(before.mean)  # E max is the same for all
    assert regrets[0] - regrets[1] == pytest.approx(before.mean[1] - before.mean[0], abs=0.1)
    assert before.probability_better(*NAMES[:2]) + before.probability_better(NAMES[1], NAMES[0]) == pytest.approx(1)


def test_what_says_nothing_changes_nothing(before):
    for kind in ("score:linear_probe", "score:never_published"):
        after = before.after(seen(kind, [1.0, 2.0, 3.0, 4.0, 5.0]))
        np.testing.assert_allclose(after.mean, before.mean)
    assert not kind_model("score:linear_probe").says_something
    assert kind_model("low:size=0.286").specific > 0.2
    once = before.after(
        [Observation(NAMES[0], "low:size=0.286", 0.9, None)]
    )  # one of one kind has no level to compare with
    np.testing.assert_allclose(once.mean, before.mean)


def test_a_closer_training_says_more_and_an_unpublished_sort_as_little_as_the_least():
    small, middle, large = (kind_model(f"low:size={share}") for share in ("0.125", "0.286", "0.571"))
    assert small.specific < middle.specific < large.specific
    assert middle.specific < kind_model("low:size=0.4").specific < large.specific
    assert kind_model("low:epochs=0.9")[:3] == kind_model("curve:epoch=3")[:3] == small[:3]
    assert kind_model("low:epochs=0.9").num_groups == 0


def test_unknown_networks_are_flat_and_relatives_are_not(before):
    assert before.mean[4] == pytest.approx(0, abs=1e-9)
    assert before.covariance[4, 4] > max(before.covariance[i, i] for i in range(4))
    assert before.spoke[4] == ()
    assert "thesis, Table 6.5" in before.spoke[0]
    large, small = believe(["eva02_large_patch14_448.mim_in22k_ft_in22k_in1k", "mobilenetv3_small_050.lamb_in1k"]).mean
    assert large > small  # by ImageNet and size: no table knows either


def test_own_results_outweigh_published_ones():
    """The same contradiction of what is known moves more where it is the user's own."""
    rows = [
        result(name, f"t{i}", 0.9 - 0.1 * place) for i in range(3) for place, name in enumerate(reversed(NAMES[:4]))
    ]
    own = believe(NAMES[:4], known=rows)
    plain = believe(NAMES[:4])
    assert own.mean[3] - own.mean[1] > plain.mean[3] - plain.mean[1] + 0.2
    assert own.spoke[3][0] == "crossgraft tune"


def test_the_target_at_hand_and_its_relatives_tell_nothing_of_themselves():
    rows = [
        result(name, "OrganA", value, target_group="Organ")
        for name, value in zip(NAMES, (0.1, 0.9, 0.2, 0.3, 0.4), strict=True)
    ]
    with_own, without = believe(NAMES, known=rows, target="organcmnist_64"), believe(NAMES, target="organcmnist_64")
    np.testing.assert_allclose(with_own.mean, without.mean)


def test_bad_input_is_named(before):
    with pytest.raises(UnknownNameError, match="resnet19"):
        before.after([Observation("resnet19", "full", 0.9, None)])
    with pytest.raises(DataError, match="finite"):
        before.after([Observation(NAMES[0], "full", float("nan"), None)])
    with pytest.raises(DataError, match="error"):
        before.after([Observation(NAMES[0], "full", 0.9, -1.0)])
    with pytest.raises(DataError, match="at least one"):
        believe([])
    with pytest.raises(DataError, match="once"):
        believe(["a", "a"])


def test_one_failed_training_hides_nothing_of_the_others():
    names = [f"hub/{letter}" for letter in "abcdef"]
    values = [0.90, 0.91, 0.92, 0.93, 0.94, 0.02]
    after = believe(names).after(seen("low:size=0.571", values, names))
    assert after.mean.argsort().tolist() == [5, 0, 1, 2, 3, 4]
    assert after.mean[4] - after.mean[0] > 0.4


def test_values_that_differ_by_rounding_alone_are_equal(before):
    """Their spread of 1e-17 would be the scale of everything that is still to come."""
    rounded = before.after(seen("score:logme", [0.3, 0.1 + 0.2, 0.3, 0.3]))
    equal = before.after(seen("score:logme", [0.3, 0.3, 0.3, 0.3]))
    np.testing.assert_allclose(rounded.mean, equal.mean, atol=1e-9)
    look = NextLook("score:logme", (4,), None)
    ahead, as_equal = (each.foresight().moves([look])[0] for each in (rounded, equal))
    np.testing.assert_allclose(ahead, as_equal, atol=1e-9)
    assert 0 < np.abs(ahead).max() < 1
