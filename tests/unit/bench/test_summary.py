"""What a page says of jobs: which numbers are compared, what is paired with what, and what cannot be told."""

import pandas as pd
import pytest

from crossgraft.bench.done import DoneJob
from crossgraft.bench.job import numbers_of
from crossgraft.bench.page import _answer, study_verdict_section
from crossgraft.bench.record import LevelDifference
from crossgraft.bench.study import read_study
from crossgraft.bench.summary import summarise
from crossgraft.errors import UsageError
from crossgraft.report.blocks import Figure
from crossgraft.report.source import Source
from support.study_records import study_record
from support.toy_jobs import registered


@pytest.fixture(autouse=True)
def toil(monkeypatch):
    registered(monkeypatch)


def number(name, value):
    return {"metric": name, "value": value, "low": None, "high": None}


def said(study, value_of, folder, *, version="1", name="accuracy", more=()):
    """Record of a study whose jobs have the numbers that ``value_of`` says of their cells."""
    parsed = read_study({"command": "toil", **study})
    done = [
        DoneJob(job.key, cell, "jobs/x/1", 1.0, [number(name, value_of(cell)), *more], version)
        for cell, job in zip(parsed.cells, parsed.jobs, strict=True)
        if value_of(cell) is not None
    ]
    return summarise(parsed, folder, done)


THREE = {"one": {}, "more": {"bonus": 0.1}, "most": {"bonus": 0.2}}


def grid(num_data, num_steps=1, **more):
    steps = {"steps": list(range(1, num_steps + 1))} if num_steps > 1 else {}
    return {"grid": {"data": [letter * 2 for letter in "abcdefgh"[:num_data]], **steps}, "settings": THREE, **more}


def value(cell):
    return {"one": 0.3, "more": 0.4, "most": 0.5}[cell["settings"]] + 0.01 * int(cell.get("steps", 0)) * ord(
        cell["data"][0]
    ) % 0.03


def test_pairs_are_targets_and_not_what_else_varies_on_them(tmp_path):
    record = said(grid(2, num_steps=3, seeds=2), value, tmp_path)
    assert (record.over, [each.num_pairs for each in record.differences]) == ("data", [2, 2])
    assert record.friedman is None and "5 targets" in record.no_friedman_reason
    record = said(grid(5, num_steps=3), value, tmp_path)
    assert record.friedman.num_targets == 5
    assert [round(each.value, 9) for each in record.differences] == [0.1, 0.2]


def test_where_there_is_one_target_the_pairs_are_seeds(tmp_path):
    assert [each.num_pairs for each in said(grid(1, seeds=4), value, tmp_path).differences] == [4, 4]


def test_ranks_need_to_know_what_is_better(tmp_path):
    record = said(grid(6), value, tmp_path, name="depth")
    assert record.friedman is None and "`better`" in record.no_friedman_reason and record.larger_is_better is None
    ranks = [said(grid(6, better=better), value, tmp_path, name="depth").friedman.mean_ranks for better in ("larger", "smaller")]
    assert ranks == [[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]]


def test_a_number_that_no_job_has_is_said(tmp_path):
    record = said(grid(1, metric="acuracy"), value, tmp_path)
    assert [check.title for check in record.checks] == ["Nothing to compare"]
    assert "acuracy; there are: accuracy. Correct" in record.checks[0].text
    assert {each.reason for each in record.differences} == {"no job of both has this number"}


def test_of_several_numbers_of_one_name_it_is_said_which_is_compared_and_another_can_be_named(tmp_path):
    student = {"metric": "accuracy", "value": 0.9, "low": None, "high": None, "network": "student", "picked": True}
    record = said(grid(1), value, tmp_path, more=[student])
    assert [check.title for check in record.checks] == ["Several numbers of one name"]
    chosen = said(grid(1, metric={"metric": "accuracy", "network": "student"}), value, tmp_path, more=[student])
    assert not chosen.checks and {cell.value for cell in chosen.cells} == {0.9}


def test_results_without_numbers_are_said(tmp_path):
    study = read_study({"command": "toil", **grid(1)})
    done = [DoneJob(job.key, cell, "jobs/x/1", 1.0, [], "1") for cell, job in zip(study.cells, study.jobs, strict=True)]
    assert "crossgraft toil finds has no numbers" in summarise(study, tmp_path, done).checks[0].text


def test_jobs_of_several_versions_are_said(tmp_path):
    study = read_study({"command": "toil", **grid(1)})
    numbers = [{"metric": "accuracy", "value": 0.5, "low": None, "high": None}]
    done = [
        DoneJob(job.key, cell, "jobs/x/1", 1.0, numbers, version)
        for cell, job, version in zip(study.cells, study.jobs, "112", strict=True)
    ]
    assert "crossgraft 1 and 2" in summarise(study, tmp_path, done).checks[0].text


def test_columns_that_say_what_a_number_is_about_are_kept():
    frame = pd.DataFrame({"metric": ["auc"], "value": [0.5], "shots": [5], "alpha": [0.5], "picked": [True], "empty": [None]})
    assert numbers_of(frame) == [
        {"metric": "auc", "value": 0.5, "low": None, "high": None, "shots": 5, "alpha": 0.5, "picked": True}
    ]
    ranking = pd.DataFrame({"model": ["a"], "score": ["logme"], "rank": pd.array([1], "Int64"), "value": [0.5], "low": [0.4]})
    assert [(row["metric"], row["value"], row["low"], row["model"]) for row in numbers_of(ranking)] == [("logme", 0.5, 0.4, "a")]


def test_no_job_is_in_two_cells():
    for study in (
        {"fixed": {"data": "a"}, "settings": {"one": {}, "same": {"bonus": 0.0}}},
        {"fixed": {"data": "a"}, "grid": {"steps": [3, 4]}, "settings": {"one": {"steps": 5}, "two": {"bonus": 1.0}}},
        {"fixed": {"data": "a"}, "grid": {"step_seconds": [0.0, 0.1]}},
    ):
        with pytest.raises(UsageError, match="are the same job: nothing that decides its numbers differs"):
            read_study({"command": "toil", **study})


def test_a_level_without_an_interval_is_not_said_to_be_the_same(tmp_path):
    def unsure(cell):
        number = ord(cell["data"][0])
        if cell["settings"] == "most":
            return 0.5 if number < ord("c") else None
        return 0.3 + 0.01 * (number % 3) * (number % 2) if cell["settings"] == "more" else 0.305

    record = said(grid(5), unsure, tmp_path)
    assert [each.low is None for each in record.differences] == [False, True]
    assert "1 of 2 levels of settings have an interval; none of these differs" in _answer(record)


def test_a_page_begins_with_the_differences_as_a_picture():
    record = study_record(
        differences=[LevelDifference(level=f"at {n}", reference="plain", value=n, num_pairs=1) for n in range(23)]
    )
    figure = study_verdict_section(Source(record)).blocks[-1]
    assert "at 0, at 1" in figure.drawings[0] and "at 20" not in figure.drawings[0]
    assert figure.caption == "Means of paired differences, with 95 % intervals. 3 further levels not drawn."
    assert not any(isinstance(block, Figure) for block in study_verdict_section(Source(study_record(differences=[]))).blocks)
