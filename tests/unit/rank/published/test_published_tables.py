"""What ships gives the printed tables again."""

import numpy as np
import pytest
from scipy import stats

from crossgraft import evaluate_published
from crossgraft.errors import DataError, UnknownNameError
from crossgraft.rank.published import Benchmark, itm_benchmark, thesis_architectures, thesis_datasets
from crossgraft.rank.published.papers import itm_tables
from crossgraft.rank.published.tables import PUBLISHED_SCORES, shipped
from crossgraft.running.run_directory import open_run


@pytest.fixture(scope="module")
def thesis():
    return evaluate_published("thesis").record


@pytest.fixture(scope="module")
def itm():
    return evaluate_published("itm").record


def literal_tau(benchmark, name, target):
    """Straight from the JSON by SciPy, without any of the code under test."""
    scenario = shipped("thesis")["dataset" if benchmark == "datasets" else "model"]
    auc = list(scenario["auc"][target])
    kept = [i for i, a in enumerate(auc) if a is not None]
    scores = {key: np.array([rows[target][i] for i in kept], dtype=float) for key, rows in scenario["scores"].items()}
    scaled = {key: (scores[key] - scores[key].min()) / np.ptp(scores[key]) for key in ("lp", "fu")}
    if benchmark == "datasets":
        scores["ours"] = scaled["lp"] * scaled["fu"]
    else:
        scores["ours"] = (1 - scaled["lp"]) * (1 - scaled["fu"])
        scores |= {key: 1 - scores[key] for key in ("parc", "ncti", "leep", "nleep")}
    if np.ptp(scores[name]) == 0:
        return None
    return float(stats.weightedtau(scores[name], [auc[i] for i in kept])[0])


@pytest.mark.parametrize(("scenario", "cells", "undefined"), [("datasets", 75, 2), ("architectures", 77, 0)])
def test_every_printed_cell_follows_from_the_shipped_scores(thesis, scenario, cells, undefined):
    record = next(s for s in thesis.scenarios if s.name == f"thesis-{scenario}")
    printed = shipped("thesis")["dataset" if scenario == "datasets" else "model"]["printed_tau"]
    equal = 0
    for t, target in enumerate(printed):
        for name in PUBLISHED_SCORES:
            method = next(m for m in record.methods if m.name == name)
            expected = literal_tau(scenario, name, target)
            assert method.weighted_kendall[t] == (None if expected is None else pytest.approx(expected, abs=1e-12))
            if expected is not None:
                assert round(expected, 2) == printed[target][name]
                equal += 1
    assert equal == cells
    assert (record.reproduction.num_cells, record.reproduction.num_equal) == (cells, cells)
    assert record.reproduction.num_undefined == undefined


def test_friedman_tests_are_the_recomputed_ones(thesis):
    datasets, architectures = (scenario.friedman for scenario in thesis.scenarios)
    assert datasets.p_value == pytest.approx(0.00202, abs=1e-5)
    assert architectures.p_value == pytest.approx(0.143, abs=5e-4)
    assert datasets.critical_difference == pytest.approx(2.716, abs=5e-4)
    assert [round(rank, 2) for rank in datasets.mean_ranks] == [4.0, 4.0, 5.82, 4.91, 3.91, 3.45, 1.91]
    assert [round(rank, 2) for rank in architectures.mean_ranks] == [4.91, 4.09, 4.18, 4.64, 2.91, 4.45, 2.82]


def test_the_slips_are_listed(thesis, itm):
    found = {slip.where: (slip.printed, slip.recomputed) for slip in thesis.slips}
    assert found["Table 6.2, row Pneumonia"] == ("LogME rank 3, N-LEEP rank 2", "LogME rank 2 (0.3113), N-LEEP rank 3 (0.3074)")
    printed, recomputed = found["Table 6.3, row of average ranks, and its Friedman test"]
    assert printed == "SFDA 3.91, N-LEEP 4.73; p = 0.113"
    assert recomputed == "SFDA 4.18, N-LEEP 4.45; p = 0.143"
    printed, recomputed = found["Text below Table 6.2, critical difference"]
    assert printed.startswith("2.792") and recomputed.startswith("2.716")
    assert "0.770" in itm.slips[0].recomputed


def test_the_ablation_follows_from_the_parts(thesis):
    table = next(t for t in thesis.cited if t.title.startswith("Fig. 6.6"))
    blood = next(row for row in table.rows if row[0] == "Blood")
    assert blood[1:] == pytest.approx([0.534376202402, 0.575532992584, 0.777387988817], abs=1e-9)
    assert [len(table.rows), len(table.columns)] == [12, 4]


def test_tables_6_4_and_6_5_hold_every_result(thesis):
    sources, networks = (t for t in thesis.cited if t.title.startswith(("Table 6.4", "Table 6.5")))
    assert sum(cell is not None for row in sources.rows for cell in row[1:-1]) == 15 * 11 - 11
    imagenet = next(row for row in sources.rows if row[0] == "imagenet")
    resnet = next(row for row in networks.rows if row[0] == "resnet")
    assert [round(cell, 2) for cell in imagenet[1:4]] == [99.85, 88.51, 89.46]
    assert imagenet[1:] == pytest.approx(resnet[1:], abs=1e-9)


def test_averages_of_itm_recompute_from_their_cells():
    tables = {table.title: table for table in itm_tables()}
    assert len(tables) == 6
    for title in ("Table 1: weighted Kendall", "Table 1: seconds", "Table 4: Spearman", "Table 4: Kendall"):
        for row in tables[title].rows:
            assert row[-1] == pytest.approx(row[-2], abs=0.0065), (title, row[0])
    assert tables["Table 3: accuracy (%)"].rows[0][-1] == pytest.approx(86.165)


def test_questions_are_answered_from_the_data(thesis):
    answers = {answer.question: answer.answer for answer in thesis.answers}
    assert "on 7 of 9 targets" in answers["Does the size of the source data predict transfer?"]
    assert "on 7 of 11" in answers["Do diverse sources transfer better?"]
    assert "On 4 of 11" in answers["Do medical sources outperform ImageNet?"]
    assert "1 of the 4" in answers["Is the source of the same kind of images the best one?"]


def test_the_first_tables_come_from_one_place():
    assert thesis_datasets().results.shape == (11, 15)
    assert thesis_architectures().results.shape == (11, 9)
    assert itm_benchmark().results.shape == (10, 10)
    assert np.nanmax(thesis_architectures().results) < 1


def test_a_run_directory_holds_record_and_page(tmp_path):
    record = evaluate_published("itm", out=tmp_path / "run").record
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Nothing beats the static prior" in page
    with open_run(tmp_path / "run", command="rank --published", command_line="", config={"published": "itm"}, seed=0) as run:
        assert run.read_record("report.json", type(record)) == record


def test_unknown_names_are_named():
    with pytest.raises(UnknownNameError, match="Did you mean thesis"):
        evaluate_published("thesi")


def test_a_benchmark_without_results_is_refused():
    with pytest.raises(DataError, match="fewer than two results on b"):
        Benchmark("x", "x", "x", ["m", "n"], ["a", "b"], ["a", "b"], np.array([[1.0, 2.0], [1.0, np.nan]]))
    with pytest.raises(DataError, match="expected"):
        Benchmark("x", "x", "x", ["m"], ["a", "b"], ["a", "b"], np.ones((2, 3)))
