"""Whole trainings in the expected order while the budget lasts; the best on val."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.errors import DataError, UsageError
from crossgraft.select.rule import (
    COST_NOISE,
    Candidate,
    Trial,
    choose,
    equal_costs,
    expected_regret,
    in_order,
    planned,
    refuse_small_budget,
    run_selection,
    seconds_of_all,
)

A, B, C = Candidate("a", 1.0, 10.0, 5), Candidate("b", 0.5, 10.0, 3), Candidate("c", 0.2, 20.0, 9)


def looking_up(values, calls=None, error=0.05):
    def train(models):
        if calls is not None:
            calls.append(list(models))
        return [Trial(m, values.get(m), error, reason="" if m in values else "it diverged") for m in models]

    return train


def test_models_are_trained_in_order_while_the_budget_lasts_and_the_best_on_val_is_taken():
    calls = []
    found = run_selection([C, B, A], 35.0, looking_up({"a": 0.8, "b": 0.9, "c": 1.0}, calls))
    assert calls == [["a"], ["b"]] and (found.model, found.booked_seconds, found.ending) == ("b", 20.0, "budget")
    found = run_selection([C, B, A], 40.0, looking_up({"a": 0.8, "b": 0.9, "c": 0.95}))
    assert (found.model, found.ending) == ("c", "all trained")


def test_what_no_longer_fits_is_passed_over():
    wide = [A, C._replace(expected=0.7), B]
    assert [[each.name for each in some] for some in planned(wide, 25.0)] == [["a"], ["b"]]


def test_ties_go_to_fewer_parameters_and_then_to_the_name():
    equal = [Candidate(name, 0.0, 1.0, size) for name, size in (("z", 1), ("b", 2), ("a", 2))]
    assert [each.name for each in in_order(equal)] == ["z", "a", "b"]
    for order in itertools.permutations(equal):
        assert run_selection(order, 3.0, looking_up(dict.fromkeys("zab", 0.8))).model == "z"
        same = [each._replace(num_parameters=2.0) for each in order]
        assert run_selection(same, 3.0, looking_up(dict.fromkeys("zab", 0.8))).model == "a"


def test_at_the_limit_of_val_the_search_ends_and_the_smallest_is_tried_beside():
    calls = []
    zoo = [A, B, C._replace(num_parameters=1, seconds=10.0), Candidate("d", 0.1, 10.0, 7)]
    found = run_selection(zoo, 100.0, looking_up(dict.fromkeys("abcd", 1.0), calls), limit=1.0)
    assert calls == [["a"], ["c"]] and (found.model, found.ending) == ("c", "limit of val")
    found = run_selection(zoo, 100.0, looking_up({"a": 1.0, "c": 0.9}), limit=1.0)
    assert found.model == "a"
    assert run_selection(zoo, 15.0, looking_up(dict.fromkeys("abcd", 1.0)), limit=1.0).model == "a"  # no time is left


def test_where_val_tells_nothing_the_first_that_fits_is_the_only_one():
    calls = []
    found = run_selection([A._replace(seconds=50.0), B, C], 30.0, looking_up({"b": 0.1}, calls), is_blind=True)
    assert calls == [["b"]] and (found.model, found.ending) == ("b", "val tells nothing")


def test_several_places_train_the_next_models_together():
    calls = []
    found = run_selection([A, B, C], 30.0, looking_up({"a": 0.1, "b": 0.2, "c": 0.3}, calls), num_parallel=2)
    assert calls == [["a", "b"], ["c"]] and found.booked_seconds == 30.0 == seconds_of_all([A, B, C], 2)


def test_a_failure_is_no_result_and_the_soonest_is_trained_where_all_within_the_budget_failed():
    calls = []
    found = run_selection([A, B, C], 20.0, looking_up({"c": 0.3}, calls))
    assert calls == [["a"], ["b"], ["c"]] and found.model == "c" and set(found.failed) == {"a", "b"}
    with pytest.raises(DataError, match=r"No training ended with a model\. a: it diverged; b: it diverged"):
        run_selection([A, B], 20.0, looking_up({}))


def test_a_budget_below_one_training_names_the_least_that_works():
    with pytest.raises(UsageError, match="the least that works is 10 s, for a"):
        run_selection([A, B, C], 9.0, looking_up({}))
    with pytest.raises(UsageError, match="the least that works is 50 s, for a, 40 s of it before and after the training"):
        refuse_small_budget([A, B, C], 45.0, beside=40.0)
    refuse_small_budget([A, B, C], 50.0, beside=40.0)


costs = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.floats(0.01, 1e6), min_size=1, max_size=12)


@given(costs)
def test_costs_within_the_noise_are_equal_and_none_moves_by_more(seconds):
    found = equal_costs(seconds)
    for name, cost in found.items():
        assert seconds[name] / (1 + COST_NOISE) <= cost * (1 + 1e-12) and cost <= seconds[name] * (1 + COST_NOISE) + 1e-9
    order = sorted(seconds, key=lambda name: seconds[name])
    assert all(found[a] <= found[b] for a, b in itertools.pairwise(order))


@given(st.lists(st.floats(0.93, 1.07), min_size=3, max_size=3), st.integers(0, 5))
def test_the_noise_of_measured_costs_changes_no_decision_within_a_share_of_all(noise, rotated):
    """Three equal networks, measured with noise: the same two are trained, and the same one is handed over."""
    names = ["a", "b", "c"][rotated % 3 :] + ["a", "b", "c"][: rotated % 3]
    cost = equal_costs({name: 10.0 * factor for name, factor in zip(names, noise, strict=True)})
    zoo = [Candidate(name, 0.0, cost[name], 7.0) for name in names]
    calls = []
    found = run_selection(zoo, 0.67 * seconds_of_all(zoo), looking_up({"a": 0.8, "b": 0.9, "c": 1.0}, calls))
    assert calls == [["a"], ["b"]] and found.model == "b"


@given(st.lists(st.floats(0, 1), min_size=2, max_size=6), st.floats(0.001, 0.5), st.sampled_from(["accurate", "small"]))
def test_an_expected_regret_never_exceeds_what_is_left_to_gain(values, error, prefer):
    zoo = [Candidate(f"m{i}", -float(i), 1.0, float(i)) for i in range(len(values))]
    shown = {each.name: value for each, value in zip(zoo, values, strict=True)}
    found = run_selection(zoo, float(len(zoo)), looking_up(shown, error=error), limit=1.0)
    preference = choose(found, prefer, {each.name: each.num_parameters for each in zoo}, 0.3)
    regret = expected_regret(found, preference.model, 0.3, limit=1.0, seed=1)
    if len(found.trained) > 1:
        assert 0 <= regret <= 1 - shown[preference.model] + 1e-12
    assert preference.leader == found.model and preference.leader not in preference.alike
    assert prefer == "small" or preference.model == found.model


def test_what_val_tells_apart_follows_from_its_errors():
    shown = {"a": 0.90, "b": 0.88, "c": 0.50}
    found = run_selection([A, B, C], 40.0, looking_up(shown, error=0.02))
    sizes = {"a": 5, "b": 3, "c": 9}
    assert choose(found, "accurate", sizes, 0.0).alike == ("b",)
    assert choose(found, "small", sizes, 0.0).model == "b"
    sure = run_selection([A, B, C], 40.0, looking_up(shown, error=0.002))
    assert choose(sure, "small", sizes, 0.0).model == "a"
    unknown = run_selection([A, B, C], 40.0, looking_up(shown, error=None))
    assert choose(unknown, "small", sizes, 0.0).alike == () and expected_regret(unknown, "a", 0.0, limit=1.0, seed=0) is None


def test_the_expected_regret_is_the_mean_over_draws():
    found = run_selection([A, B], 40.0, looking_up({"a": 0.8, "b": 0.7}, error=0.1))
    rng = np.random.default_rng(0)
    draws = np.array([0.8, 0.7]) + 0.1 * np.sqrt(0.5) * rng.normal(size=(200_000, 2))
    expected = np.mean(np.maximum(draws[:, 1] - draws[:, 0], 0))
    assert expected_regret(found, "a", 0.5, limit=None, seed=0) == pytest.approx(expected, rel=0.1)
