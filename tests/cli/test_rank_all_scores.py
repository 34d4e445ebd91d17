"""All scores from images to report, and what is known of the models."""

import json

import pytest

from crossgraft.rank.record import KnownResult, RankingRecord
from crossgraft.rank.results_store import add_known_results
from support.few_rounds import leave_out_rounds

FLAGS = ("--models", "zoo.yaml", "--code", "tiny_models.py", "--workers", "1", "--quiet")


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch):
    leave_out_rounds(monkeypatch)


def numbers(text):
    record = json.loads(text)
    for cell in record["cells"]:
        cell["seconds"] = cell["peak_bytes"] = 0
    for model in record["models"]:
        model["feature_seconds"], model["features_from_cache"] = 0, True
    return record


def read(workspace, run):
    return RankingRecord.model_validate_json((workspace / run / "report.json").read_bytes())


def known_as(workspace, **names):
    text = (workspace / "zoo.yaml").read_text()
    for model, known in names.items():
        text = text.replace(f"{{name: {model},", f"{{name: {model}, known_as: {known},")
    (workspace / "zoo.yaml").write_text(text)


@pytest.mark.slow
def test_every_score_reaches_the_report_with_its_warnings_and_cost(workspace, crossgraft):
    outcome = crossgraft("rank", "images", *FLAGS, "--scores", "all", "--out", "run")
    assert outcome.code == 0, outcome.err
    record = read(workspace, "run")
    assert len(record.scores) > 20 and all(score.cost for score in record.scores)
    assert all(cell.value is not None or cell.reason for cell in record.cells)
    ped = record.cell("narrow", "ped")
    assert ped.value is not None and "No features of source images" in ped.warnings[0]
    assert "PED" in outcome.out.partition("Warnings of")[2]
    page = (workspace / "run" / "report.html").read_text()
    assert "No features of source images were given" in page.partition("Warnings of scores")[2]
    assert "two Cholesky factorisations" in page
    etas = {cell.model: cell.parts["eta"] for cell in record.cells if cell.score == "itm"}
    assert sorted(etas)[0] and etas["narrow"] != etas["wide"]
    assert len(page.encode()) < 2e6


@pytest.mark.slow
def test_a_killed_run_with_adaptive_options_gives_the_same_numbers(workspace, crossgraft, monkeypatch):
    from crossgraft.rank import sweep

    flags = (*FLAGS, "--scores", "itm,etran,logme")
    crossgraft("rank", "images", *flags, "--out", "whole")
    original = sweep.Evaluating.do

    def killed(self, job):
        if job.spec.position.startswith("2 "):
            raise KeyboardInterrupt
        return original(self, job)

    monkeypatch.setattr(sweep.Evaluating, "do", killed)
    assert crossgraft("rank", "images", *flags, "--out", "killed").code == 130
    monkeypatch.setattr(sweep.Evaluating, "do", original)
    measured = []
    monkeypatch.setattr(sweep, "measure_rounds", lambda *given, **named: measured.append(given))
    assert crossgraft("rank", "images", *flags, "--out", "killed").code == 0
    assert measured == []  # the first pass was kept
    first, second = ((workspace / run / "report.json").read_text() for run in ("whole", "killed"))
    assert numbers(first) == numbers(second)


def test_without_known_results_only_the_checks_speak_of_the_prior(workspace, crossgraft):
    outcome = crossgraft("rank", "images", *FLAGS, "--scores", "logme", "--out", "run")
    record = read(workspace, "run")
    assert record.prior is None
    check = next(check for check in record.checks if check.title == "Static prior")
    assert check.severity == "not assessed"
    assert check.text.startswith("No other target has known results of two of these models, measured in the same way")
    assert "static prior" not in outcome.out.partition("rank  model")[2]
    assert "What is known from other targets" not in (workspace / "run" / "report.html").read_text()


def test_known_results_are_a_control_and_are_aggregated(workspace, crossgraft):
    known_as(workspace, narrow="vgg/imagenet", wide="mnasnet/imagenet")
    (workspace / "results.csv").write_text("model,accuracy\nnarrow,0.7\nwide,0.9\n")
    outcome = crossgraft("rank", "images", *FLAGS, "--scores", "logme,leep", "--out", "run", "--ground-truth", "results.csv")
    prior = read(workspace, "run").prior
    assert [row.model for row in prior.rows] == ["narrow", "wide"]  # vgg did better on all eleven targets
    assert len(prior.targets) == 11
    assert "The static prior, which never looks at these images, puts narrow first" in " ".join(outcome.out.split())
    assert "Static prior (control)" in outcome.out.partition("Agreement with fine-tuned results")[2]
    lines = outcome.out.splitlines()
    assert max(len(line) for line in lines if not line.startswith("  crossgraft ")) <= 100  # a command is not broken
    page = (workspace / "run" / "report.html").read_text()
    assert "What is known from other targets" in page and "Static prior (control)" in page
    assert "Who spoke for which model: thesis, Table 6.5: narrow and wide." in " ".join(outcome.out.split())


def test_own_results_are_asked_by_the_fingerprint_of_the_weights(workspace, crossgraft):
    crossgraft("rank", "images", *FLAGS, "--scores", "logme", "--out", "first")
    weights = {model.name: model.weights_fingerprint for model in read(workspace, "first").models}
    rows = [
        KnownResult(
            model="m", weights=weights[name], source="s", target=f"t{i}", protocol="p", metric="auc", value=v, origin="tune"
        )
        for name, v in (("narrow", 0.5), ("wide", 0.9))
        for i in range(3)
    ]
    add_known_results(rows)
    crossgraft("rank", "images", *FLAGS, "--scores", "logme", "--out", "second")
    prior = read(workspace, "second").prior
    assert (prior.rows[0].model, prior.rows[0].num_targets, prior.targets) == ("wide", 3, ["t2", "t1", "t0"])


def test_a_name_that_is_not_known_stops_before_the_work(workspace, crossgraft):
    known_as(workspace, narrow="vgg/imagenett")
    outcome = crossgraft("rank", "images", *FLAGS, "--scores", "logme")
    assert outcome.code == 2
    assert "known_as of narrow" in outcome.err and "vgg/imagenet" in outcome.err


def test_the_list_of_scores_shows_needs_cost_and_reference(crossgraft):
    rows = {row["score"]: row for row in json.loads(crossgraft("list", "scores", "--json").out)["scores"]}
    assert all(row["needs"] and row["cost"] and row["reference"] for row in rows.values())
    assert rows["ped"]["needs"] == "features, labels, [source_features]"
    text = crossgraft("list", "scores").out
    assert "\ncost:\n" in text and "logme: one Gram matrix" in text
