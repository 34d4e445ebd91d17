"""recipes/benchmark_select_noise.py: what no selection can be expected to go below."""

import numpy as np
import pytest


def test_errors_of_results_cost_what_a_simulation_says(load_recipe):
    recipe = load_recipe("benchmark_select_noise")
    rng = np.random.default_rng(0)
    expected, errors = rng.normal(0.8, 0.03, (300, 17)), rng.uniform(0.01, 0.04, 17)
    seen = expected + errors * rng.standard_normal(expected.shape)
    true = np.mean([each.max() - each[best] for each, best in zip(seen, expected.argmax(axis=1), strict=True)])
    said = np.mean([recipe.regret_of_the_truly_best(each, errors) for each in seen])
    assert said == pytest.approx(true, rel=0.25) and true > 0.01


def test_without_errors_the_best_is_first_and_with_nothing_else_anyone_may_be(load_recipe):
    recipe = load_recipe("benchmark_select_noise")
    results = np.array([0.7, 0.72, 0.74, 0.8])
    assert recipe.regret_of_the_truly_best(results, np.full(4, 1e-6)) == pytest.approx(0, abs=1e-12)
    anyone = float(results.max() - results.mean())
    assert recipe.regret_of_the_truly_best(results, np.full(4, 0.5)) == pytest.approx(anyone, rel=0.05)


def test_errors_are_of_the_seeds_where_nothing_else_is_known(load_recipe):
    recipe, benchmark = load_recipe("benchmark_select_noise"), load_recipe("benchmark")
    replay = benchmark.replay_of("medmnistplus_auc")
    models = replay.benchmark.known(1)
    expected = replay.table.standard_deviations[1, models] / np.sqrt(3)
    np.testing.assert_allclose(recipe.result_errors(replay, 1, models), expected)
    shift = benchmark.replay_of("shift")
    assert recipe.result_errors(shift, 0, shift.benchmark.known(0)) is None
