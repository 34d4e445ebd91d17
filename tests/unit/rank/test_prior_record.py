import numpy as np

from crossgraft.rank.assemble import NO_HISTORY, check_prior, describe_prior
from crossgraft.rank.record import PriorRecord
from crossgraft.rank.results_store import KnownTable
from support.model_records import model_record

MODELS = [model_record(name) for name in "abc"]


def history(results, targets=None):
    results = np.array(results, dtype=np.float64)
    names = targets or [f"t{i}" for i in range(len(results))]
    return KnownTable(names, names, results, ["tune"], [["tune"], ["tune"], []])


def test_without_history_there_is_no_prior_and_the_checks_say_so():
    assert describe_prior(KnownTable([], [], np.empty((0, 3)), []), MODELS) is None
    assert (check_prior(None).severity, check_prior(None).text) == ("not assessed", NO_HISTORY)


def test_the_best_elsewhere_comes_first():
    record = describe_prior(history([[0.5, 0.9, 0.7], [0.4, 0.6, 0.5]], targets=["t", "t"]), MODELS)
    assert [row.model for row in record.rows] == ["b", "c", "a"]
    assert [row.prior_rank for row in record.rows] == [1, 2, 3]
    assert [row.num_targets for row in record.rows] == [1, 1, 1]  # by two protocols
    assert record.summary.endswith("puts b first: it did best on average on 1 other target.")


def test_a_model_that_nobody_knows_has_no_place_and_is_named():
    record = describe_prior(history([[0.9, 0.5, np.nan]] * 4), MODELS)
    last = record.rows[-1]
    assert (last.model, last.num_targets, last.prior_rank, last.mean_rank) == ("c", 0, None, None)
    assert check_prior(record).severity == "notice" and "Nothing is known of c." in check_prior(record).text


def test_what_earlier_versions_wrote_is_read_without_its_aggregation():
    row = {"model": "a", "num_targets": 1, "mean_rank": 0.1, "prior_rank": 1, "posterior_rank": 1, "probability_best": 0.4}
    old = {"targets": ["t"], "origins": [], "rows": [row], "evidence": [], "slope": 0.0, "summary": "It is a."}
    assert PriorRecord.model_validate(old).rows[0].prior_rank == 1
