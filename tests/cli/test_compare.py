import json

import pytest

from crossgraft.records.base import RunRecord
from crossgraft.variants import curves
from crossgraft.variants.record import ComparisonPlanRecord, FineTuningComparisonRecord
from support.few_pages import leave_out_pages

FAST = ("--model", "tiny_models:tiny", "--epochs", "1", "--workers", "1", "--no-store")

CODE = ("--code", "tiny_models.py")


@pytest.fixture(autouse=True)
def few_pages(monkeypatch):
    """Pages of single trainings take half the time, and are tested elsewhere."""
    leave_out_pages(monkeypatch, of_comparisons=False)
    monkeypatch.setattr(curves, "ALPHAS", (0.0, 1.0))


def test_the_answer_comes_last_and_the_command_line_gives_it_again(workspace, crossgraft):
    outcome = crossgraft("tune", "images", *FAST, "--compare", "full,linear,l2_sp:1,0.1", "--quiet")
    assert outcome.code == 0, outcome.err
    copied = outcome.out.splitlines()[-4]
    assert copied == "  crossgraft predict runs/tune-compare-images/trainings/full-0 NEW_IMAGES" or copied.startswith(
        "  crossgraft tune images"
    )
    assert max(len(line) for line in outcome.out.splitlines() if line != copied) <= 100
    assert outcome.out.splitlines()[-1] == "Report: runs/tune-compare-images/report.html"
    folder = workspace / "runs" / "tune-compare-images"
    record = FineTuningComparisonRecord.model_validate_json((folder / "report.json").read_bytes())
    assert {row.variant for row in record.variants} == {"full", "linear", "l2_sp:1", "l2_sp:0.1"}
    run = RunRecord.model_validate_json((folder / "run.json").read_bytes())
    again = crossgraft(*run.command_line.split()[1:], "--workers", "1", "--json", "--quiet")
    assert again.code == 0, again.err
    assert FineTuningComparisonRecord.model_validate_json(again.out).variants == record.variants
    predicted = crossgraft("predict", str(folder / "trainings" / "linear-0"), "images", *CODE, "--quiet", "--workers", "1")
    assert predicted.code == 0, predicted.err


def test_a_file_of_flags_may_hold_the_variants(workspace, crossgraft):
    (workspace / "c.yaml").write_text(
        "model: tiny_models:tiny\nepochs: 1\nseeds: 2\ncompare:\n- linear\n- {name: slow, learning_rate: 1.0e-5}\n"
    )
    command = ("tune", "images", "--config", "c.yaml", "--plan", "--json", "--quiet", "--workers", "1")
    assert crossgraft(*command).code == 2
    planned = crossgraft(*command, "--code", "tiny_models:tiny")
    assert planned.code == 0, planned.err
    plan = ComparisonPlanRecord.model_validate_json(planned.out)
    assert [each.variant for each in plan.variants] == ["linear", "slow"]
    assert plan.num_trainings == 4
    assert not (workspace / "runs").exists()


def test_a_failed_variant_ends_with_code_6(workspace, crossgraft):
    (workspace / "a.yaml").write_text(json.dumps([{"name": "too fast", "optimizer": "sgd", "learning_rate": 1e6, "epochs": 3}]))
    outcome = crossgraft("tune", "images", *FAST, "--compare", "linear,a.yaml", "--out", "run", "--quiet")
    assert outcome.code == 6
    assert "0 of 1" in outcome.out
    assert "too fast with seed 0 failed" in " ".join(outcome.out.split())


def test_what_contradicts_itself_is_a_usage_error(workspace, crossgraft):
    for flags, said in {
        ("--seeds", "2"): "--compare",
        ("--compare", "full,linear", "--method", "linear"): "--method does not go with --compare",
        ("--compare", "full,linear", "--folds", "3"): "--folds does not go with --compare",
        ("--compare", "full,lienar"): "Did you mean linear?",
    }.items():
        outcome = crossgraft("tune", "images", *FAST, *flags, "--out", "run")
        assert outcome.code == 2
        assert said in outcome.err
