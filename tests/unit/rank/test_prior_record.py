import numpy as np
import pytest

from crossgraft.rank.prior_record import NO_HISTORY, check_prior, describe_prior, fitted_parameters
from crossgraft.rank.results_store import KnownTable
from crossgraft.records import ScoreCell
from support.model_records import model_record

TITLES = {"logme": "LogME"}


def history(results):
    results = np.array(results, dtype=np.float64)
    names = [f"t{i}" for i in range(len(results))]
    return KnownTable(names, names, results, ["tune"])


def cells(*values):
    return {"logme": [ScoreCell(model=m, score="logme", value=v) for m, v in zip("abc", values, strict=False)]}


def models(*architectures):
    sizes = zip("abc", architectures, strict=False)
    return [model_record(name, architecture=architecture, num_parameters=100) for name, architecture in sizes]


def describe(results, values, architectures=("x", "x", "x")):
    return describe_prior(history(results), models(*architectures), cells(*values), TITLES, seed=0)


def test_without_history_there_is_no_prior_and_the_checks_say_so():
    empty = KnownTable([], [], np.empty((0, 3)), [])
    assert describe_prior(empty, models("x", "x", "x"), cells(1.0, 2.0, 3.0), TITLES, seed=0) is None
    assert (check_prior(None).severity, check_prior(None).text) == ("not assessed", NO_HISTORY)


def test_prior_and_evidence_meet():
    """One architecture: LogME counts a little; equal histories are told apart by it, unequal ones are not."""
    even = describe([[0.5, 0.5, 0.5]] * 4, (1.0, 3.0, 2.0))
    assert [row.model for row in even.rows] == ["b", "c", "a"]
    assert 0 < even.slope < 0.5
    assert even.summary.endswith(f"b is best with probability {even.rows[0].probability_best:.2f}.")
    clear = describe([[0.9, 0.5, 0.7]] * 4, (1.0, 3.0, 2.0))
    assert [row.model for row in clear.rows] == ["a", "c", "b"]
    assert [row.prior_rank for row in clear.rows] == [1, 2, 3]
    assert sum(row.probability_best for row in clear.rows) == pytest.approx(1)
    assert all(1 <= row.rank_low <= row.rank_high <= 3 for row in clear.rows)


def test_between_architectures_scores_add_nothing_and_the_summary_says_so():
    record = describe([[0.9, 0.5, 0.7]] * 4, (1.0, 3.0, 2.0), ("x", "y", "z"))
    assert record.slope == 0
    assert "LogME added nothing beyond the prior on published results" in record.summary
    assert "9 architectures" in record.fitted_on


def test_models_without_history_lean_on_known_ones_and_are_named():
    record = describe([[0.9, 0.5, np.nan]] * 4, (1.0, 1.0, 1.0))
    unknown = next(row for row in record.rows if row.model == "c")
    assert (unknown.num_targets, unknown.prior_rank, unknown.mean_rank) == (0, None, None)
    assert 0 < unknown.probability_best < 0.6
    assert check_prior(record).severity == "notice" and "Nothing is known of c" in check_prior(record).text


def test_the_weights_are_fitted_on_scores_as_they_are():
    assert fitted_parameters("datasets", ("logme",)).slope > 0
    assert fitted_parameters("architectures", ("leep",)).slope == 0  # as is, it goes against the truth there
    assert fitted_parameters("datasets", ()).slope == 0


def test_probabilities_depend_on_the_seed_only_through_the_draws():
    assert describe([[0.9, 0.5, 0.7]], (1.0, 2.0, 3.0)) == describe([[0.9, 0.5, 0.7]], (1.0, 2.0, 3.0))
