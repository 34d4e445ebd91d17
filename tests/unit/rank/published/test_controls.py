"""The static prior and the other contenders on the published benchmarks."""

from functools import cache

import numpy as np
import pytest

from crossgraft.rank.published import itm_benchmark, thesis_architectures, thesis_datasets
from crossgraft.rank.published.contenders import fitted, held_out_prior
from crossgraft.rank.published.evaluate import agreement_by_target, evaluate_benchmark, mean_over_targets
from crossgraft.statistics import mean_interval


@pytest.mark.parametrize(("benchmark", "mean"), [(itm_benchmark, 0.646), (thesis_datasets, 0.528), (thesis_architectures, 0.449)])
def test_the_prior_of_other_targets_foresees_the_results(benchmark, mean):
    table = benchmark()
    assert agreement_by_target(held_out_prior(table), table.results).mean() == pytest.approx(mean, abs=5e-4)


@cache
def record_of(benchmark):
    """A second of work, which several tests look at."""
    return evaluate_benchmark(benchmark())


def method(record, name):
    return next(entry for entry in record.methods if entry.name == name)


def test_published_means():
    datasets, architectures = record_of(thesis_datasets), record_of(thesis_architectures)
    assert method(datasets, "ours").mean.value == pytest.approx(0.5226, abs=5e-4)
    assert method(datasets, "nleep").mean.value == pytest.approx(0.411226, abs=1e-5)
    assert method(architectures, "ours").mean.value == pytest.approx(0.260953, abs=1e-5)
    assert method(architectures, "leep").mean.value == pytest.approx(0.279542, abs=1e-5)
    itm = record_of(itm_benchmark)
    assert method(itm, "ITM").mean.value == pytest.approx(0.609, abs=1e-9)
    assert method(itm, "LogME").mean.value == pytest.approx(0.451, abs=1e-9)
    assert method(itm, "ITM").gain.value == pytest.approx(0.609 - 0.6465, abs=1e-4)


def test_the_prior_never_sees_the_target_or_its_group():
    table = thesis_datasets()
    before = held_out_prior(table)
    organ = [i for i, group in enumerate(table.groups) if group == "Organ"]
    table.results[organ] = -table.results[organ]
    after = held_out_prior(table)
    np.testing.assert_array_equal(after[organ], before[organ])
    assert (after != before)[0].any()  # other targets do see them


def test_reproducible_columns_only_are_aggregated():
    record = record_of(thesis_datasets)
    names = {entry.name for entry in record.methods}
    assert {"prior+nleep", "prior+ours", "borda", "robust_rank_aggregation"} <= names
    assert not {"prior+ncti", "prior+parc"} & names
    assert any("NCTI is not aggregated" in note for note in record.notes)


def test_the_conclusion_says_that_nothing_beats_the_prior():
    for benchmark in (thesis_datasets, thesis_architectures, itm_benchmark):
        assert record_of(benchmark).conclusion.startswith("Nothing beats the static prior")


def test_intervals_leave_out_groups_and_stay_in_their_range():
    values = np.array([0.9, 0.9, 0.9, 1.0, -0.2])
    alone = mean_over_targets(values, ["a", "b", "c", "d", "e"], limits=(-1.0, 1.0))
    assert alone.high <= 1.0 and alone.low < alone.value
    together = mean_over_targets(values, ["a", "a", "b", "c", "d"])
    expected = mean_interval(values, ["a", "a", "b", "c", "d"])
    assert (together.low, together.high) == (expected.low, expected.high)
    assert together.high > mean_over_targets(values, ["a", "b", "c", "d", "e"]).high  # fewer groups tell less
    few = mean_over_targets(values, ["a", "b", "c", "d", "e"], least=6)
    assert few.low is None and few.no_interval_reason == "5 groups, where 6 are needed"
    assert mean_over_targets(np.array([np.nan]), ["a"]).value is None
    assert mean_over_targets(values[:2], ["a", "b"]).low is None


def test_the_fitted_one_is_judged_without_having_seen_the_target():
    table = thesis_datasets()
    before = fitted(table)
    organ = [i for i, group in enumerate(table.groups) if group == "Organ"]
    table.results[organ] = -table.results[organ]
    np.testing.assert_allclose(fitted(table)[organ], before[organ])


@pytest.mark.parametrize(("benchmark", "mean"), [(itm_benchmark, 0.655), (thesis_datasets, 0.551), (thesis_architectures, 0.448)])
def test_the_fitted_one_does_not_beat_the_prior_clearly(benchmark, mean):
    found = method(evaluate_benchmark(benchmark()), "aggregate")
    assert found.mean.value == pytest.approx(mean, abs=1e-3)
    assert found.gain.low < 0
