"""Slopes of cheap trainings: found again in drawn tables, where least squares is drawn to 0; and metrics that differ."""

import numpy as np
import pytest

from crossgraft.rank.kind_slopes import CheapTraining, jackknife_variance, training_slopes

C, D, NOISE = 1.1, 0.6, 0.5
SPECIFIC, GENERAL, ERROR, RESULT_ERROR = 0.5, 0.5 / 10, 0.2, 0.4


def drawn(*, slope=D, metric="auc", seed=0, num_targets=60, num_models=40):
    rng, found = np.random.default_rng(seed), []
    for target in range(num_targets):
        prior, other, left = rng.standard_normal((3, num_models))
        omega = prior + np.sqrt(GENERAL) * rng.standard_normal(num_models)
        e = np.sqrt(SPECIFIC) * other
        z = omega + e + np.sqrt(RESULT_ERROR) * rng.standard_normal(num_models)
        g = 3.0 + C * omega + slope * e + NOISE * left + np.sqrt(ERROR) * rng.standard_normal(num_models)
        found.append(CheapTraining(f"group {target % 12}", metric, g, prior, z, 9, ERROR, RESULT_ERROR))
    return found


def test_errors_of_both_sides_do_not_draw_the_slope_to_0():
    cells = drawn()
    found = training_slopes(cells, None)
    repeatable = SPECIFIC / (SPECIFIC + RESULT_ERROR)
    assert found == pytest.approx((C, D, NOISE, repeatable), abs=0.06)
    x = np.concatenate([np.stack([each.prior, each.results - each.prior], axis=1) for each in cells])
    y = np.concatenate([each.values - 3.0 for each in cells])
    assert np.linalg.lstsq(x, y, rcond=None)[0][1] < 0.45  # what least squares makes of 0.6


def test_a_metric_keeps_what_it_differs_by_and_no_more():
    cells = [*drawn(slope=0.8), *drawn(slope=0.2, metric="accuracy", seed=1)]
    assert training_slopes(cells, "auc")[1] == pytest.approx(0.8, abs=0.08)
    assert training_slopes(cells, "accuracy")[1] == pytest.approx(0.2, abs=0.08)
    alike = [*drawn(), *drawn(metric="accuracy", seed=1)]
    together = training_slopes(alike, None)[1]
    apart = [
        abs(training_slopes([each for each in alike if each.metric == m], None)[1] - together)
        for m in ("auc", "accuracy")
    ]
    kept = [abs(training_slopes(alike, m)[1] - together) for m in ("auc", "accuracy")]
    assert max(kept) <= max(apart) + 0.01


def test_a_few_small_targets_leave_the_slopes_near_the_weak_prior():
    few = drawn(num_targets=3, num_models=4, seed=5)
    c, d, noise, repeatable = training_slopes(few, None)
    assert 0 <= d < 1.5 and 0 <= c < 2 and noise > 0.2 and 0 < repeatable < 1


def test_the_jackknife_of_a_mean_is_its_standard_error():
    values = np.random.default_rng(0).standard_normal(20)
    variance = jackknife_variance(lambda kept: np.array([values[list(kept)].mean()]), [str(i) for i in range(20)])
    assert variance[0] == pytest.approx(values.var(ddof=1) / 20)
