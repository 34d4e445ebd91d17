"""Prior × evidence: the posterior is the conjugate one, and evidence counts only as far as it is known to help."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from crossgraft.errors import DataError
from crossgraft.rank.aggregate import Evidence, Parameters, aggregate, combine_evidence, fit_parameters, normal_scores
from crossgraft.rank.published import itm_benchmark, thesis_architectures, thesis_datasets

PLAIN = Parameters(shrinkage=1.0, slope=0.5, noise=0.7)
NOTHING = Parameters(shrinkage=1.0, slope=0.0, noise=0.7)


def simulated(seed, *, num_targets=40, num_models=12, tau=0.6, slope=0.0, noise=0.6):
    rng = np.random.default_rng(seed)
    evidence = rng.normal(size=(num_targets, num_models))
    results = rng.normal(0, tau, num_models) + slope * evidence + rng.normal(0, noise, (num_targets, num_models))
    return results, evidence, [str(t) for t in range(num_targets)]


def test_the_posterior_is_the_one_that_integration_gives():
    results, _, _ = simulated(1, num_targets=5, num_models=4)
    z = normal_scores(results)
    noise, shrinkage = 0.7, 1.6
    tau = noise / np.sqrt(shrinkage)
    omega = np.linspace(-6, 6, 20001)
    expected = []
    for model in range(4):
        weights = stats.norm.pdf(omega, 0, tau) * np.prod(stats.norm.pdf(z[:, model, None], omega, noise), axis=0)
        expected.append(np.sum(weights * omega) / np.sum(weights))
    found = aggregate(results, parameters=Parameters(shrinkage, 0.0, noise))
    np.testing.assert_allclose(found.mean, expected, atol=1e-6)
    variance = found.standard_deviation**2 - noise**2
    np.testing.assert_allclose(variance, tau**2 * shrinkage / (5 + shrinkage), atol=1e-12)


@settings(max_examples=20)
@given(st.integers(0, 1000), st.permutations(range(5)))
def test_probabilities_are_probabilities_whatever_the_order_of_the_models(seed, order):
    results, evidence, _ = simulated(seed, num_targets=4, num_models=5)
    first = aggregate(results[1:], [Evidence(evidence[0])], parameters=PLAIN)
    np.testing.assert_allclose(first.rank_probabilities.sum(axis=0), 1)
    np.testing.assert_allclose(first.rank_probabilities.sum(axis=1), 1)
    other = aggregate(results[1:, order], [Evidence(evidence[0, order])], parameters=PLAIN)
    np.testing.assert_allclose(other.mean, first.mean[order])
    np.testing.assert_allclose(other.probability_best, first.probability_best[order], atol=0.05)


def test_probability_of_being_best_is_that_of_two_normals():
    history = np.array([[2.0, 1.0]] * 4)
    found = aggregate(history, parameters=NOTHING)
    gap = (found.mean[0] - found.mean[1]) / np.hypot(*found.standard_deviation)
    assert found.probability_best[0] == pytest.approx(stats.norm.cdf(gap), abs=0.02)


def test_more_known_targets_shrink_less():
    once, often = (aggregate(np.array([[3.0, 2.0, 1.0]] * n), parameters=NOTHING) for n in (1, 9))
    assert 0 < once.mean[0] < often.mean[0]
    assert once.standard_deviation[0] > often.standard_deviation[0]
    assert once.mean[0] == pytest.approx(often.mean[0] * (1 / 2) / (9 / 10))


def test_related_targets_count_once():
    history = np.array([[3.0, 2.0, 1.0]] * 3)
    together = aggregate(history, parameters=NOTHING, groups=["organ"] * 3)
    assert together.num_known.tolist() == [1, 1, 1]
    np.testing.assert_allclose(together.mean, aggregate(history[:1], parameters=NOTHING).mean)


def test_without_history_and_evidence_nothing_is_known():
    found = aggregate(np.empty((0, 4)), parameters=PLAIN)
    np.testing.assert_allclose(found.probability_best, 0.25, atol=0.03)


def test_without_history_the_evidence_decides():
    found = aggregate(np.empty((0, 3)), [Evidence(np.array([0.1, 0.9, 0.5]))], parameters=PLAIN)
    assert np.argsort(-found.mean).tolist() == [1, 2, 0]


def test_a_model_without_history_stands_in_the_middle():
    found = aggregate(np.array([[4.0, 3.0, 2.0, 1.0, np.nan]] * 5), parameters=NOTHING)
    assert found.mean[4] == 0 and found.standard_deviation[4] > found.standard_deviation[0]


def test_uncertain_scores_count_less():
    values = np.array([0.0, 1.0, 2.0])
    sure = aggregate(np.empty((0, 3)), [Evidence(values, np.full(3, 1e-9))], parameters=PLAIN)
    vague = aggregate(np.empty((0, 3)), [Evidence(values, np.full(3, values.std()))], parameters=PLAIN)
    np.testing.assert_allclose(vague.mean, sure.mean / 2, atol=1e-9)  # error as large as the spread: reliability ½
    assert vague.standard_deviation[0] > sure.standard_deviation[0]


def test_evidence_is_the_mean_normal_score():
    signal, error = combine_evidence(
        [Evidence(np.array([1.0, 2.0, np.nan])), Evidence(np.array([5.0, 5.0, 5.0])), Evidence(np.array([3.0, 1.0, 2.0]))], 3
    )
    half, third = stats.norm.ppf(0.75), stats.norm.ppf(5 / 6)
    np.testing.assert_allclose(signal, [(-half + third) / 2, (half - third) / 2, 0.0], atol=1e-12)
    assert error.tolist() == [0, 0, 0]
    assert np.isinf(combine_evidence([], 2)[1]).all()


@pytest.mark.parametrize("seed", range(3))
def test_parameters_are_recovered(seed):
    results, evidence, groups = simulated(seed, num_targets=200, num_models=20, tau=0.6, slope=0.4, noise=0.6)
    scale = results.std()  # normal scores have unit variance
    found = fit_parameters(results, evidence, groups)
    assert found.slope == pytest.approx(0.4 / scale, rel=0.15)  # ranks squeeze the extremes
    assert found.noise == pytest.approx(0.6 / scale, abs=0.05)
    within = 0.6**2 + 0.4**2  # the prior alone takes the evidence for noise
    of_models = results.mean(axis=0).var(ddof=1)
    assert found.shrinkage == pytest.approx(within / of_models, rel=0.2)


def test_evidence_that_says_nothing_counts_nothing():
    slopes = [fit_parameters(*simulated(seed, num_targets=15)).slope for seed in range(20)]
    assert np.mean(np.abs(slopes)) < 0.05
    assert sum(slope == 0 for slope in slopes) >= 8


def test_few_targets_fit_nothing():
    results, evidence, _ = simulated(0, num_targets=3)
    assert fit_parameters(results, evidence, ["a", "a", "a"]) == Parameters(1.0, 0.0, 0.7)
    assert fit_parameters(results[:2], evidence[:2], ["a", "b"]).slope == 0


@pytest.mark.parametrize("benchmark", [thesis_datasets, thesis_architectures, itm_benchmark])
def test_the_truly_best_model_gets_more_than_its_share(benchmark):
    table = benchmark()
    given_to_best, shares = [], []
    for held_out, others in table.folds():
        groups = [table.groups[t] for t in others.tolist()]
        parameters = fit_parameters(table.results[others], np.full_like(table.results[others], np.nan), groups)
        for target in held_out.tolist():
            models = table.known(target)
            found = aggregate(table.results[np.ix_(others, models)], parameters=parameters, groups=groups)
            given_to_best.append(found.probability_best[np.argmax(table.results[target, models])])
            shares.append(1 / len(models))
    assert np.mean(given_to_best) > 1.5 * np.mean(shares)


def test_bad_input_is_named():
    with pytest.raises(DataError, match="each of 2 models"):
        combine_evidence([Evidence(np.ones(3))], 2)
    with pytest.raises(DataError, match="negative error"):
        combine_evidence([Evidence(np.ones(2), np.array([-1.0, 0.0]))], 2)
    with pytest.raises(DataError, match="2 groups for 1 targets"):
        aggregate(np.ones((1, 2)), parameters=PLAIN, groups=["a", "b"])
