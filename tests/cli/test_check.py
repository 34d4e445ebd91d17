import json
import shutil

import pytest

from crossgraft.data.checks.record import DataCheckRecord


@pytest.fixture
def with_copies(workspace):
    """images/ with a copy inside a class, and the same picture in the other class."""
    shutil.copy(workspace / "images" / "benign" / "00.png", workspace / "images" / "benign" / "copy.png")
    shutil.copy(workspace / "images" / "benign" / "01.png", workspace / "images" / "malignant" / "other.png")
    return workspace


def test_sound_data_end_with_code_0_and_the_answer_last(workspace, crossgraft):
    outcome = crossgraft("check", "images", "--out", "run")
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert any(line.startswith("Nothing unsound was found") for line in lines[-10:])
    assert lines[-4] == "  crossgraft rank images --models mobilenetv3_small_100,resnet18 --allow-download"  # none is here
    assert "not assessed  Patient leakage: No group column was given" in outcome.out
    assert lines[-1] == "Report: run/report.html"
    assert max(len(line) for line in lines if not line.startswith("  crossgraft ")) <= 100  # to be copied, so whole
    assert {path.name for path in (workspace / "run").iterdir()} >= {
        "run.json", "report.json", "report.html", "findings.csv",
    }  # fmt: skip


def test_unsound_data_end_with_code_3_and_their_files_on_stderr_only(with_copies, crossgraft):
    outcome = crossgraft("check", "images", "--holdout", "0")
    assert outcome.code == 3
    assert "\n\nNot sound. 1 picture is there more than once with different labels." in outcome.out
    assert "Same picture, different labels: benign/01.png = malignant/other.png" in outcome.err
    assert "other.png" not in outcome.out
    assert "Error" not in outcome.err
    severities = [line.split()[0] for line in outcome.out.splitlines() if line[:1].isalpha()]
    assert severities.index("unsound") < severities.index("warning") < severities.index("passed")


def test_json_is_the_record_and_quiet_is_quiet(with_copies, crossgraft):
    outcome = crossgraft("check", "images", "--json", "--quiet", "--out", "run")
    assert outcome.code == 3
    assert outcome.err == ""
    record = DataCheckRecord.model_validate_json(outcome.out)
    assert json.loads(outcome.out)["schema_version"] == 1
    assert sum(each.files for each in record.dataset.files) == record.dataset.num_images
    assert record == DataCheckRecord.model_validate_json((with_copies / "run" / "report.json").read_bytes())


def test_a_drawn_split_is_kept_and_can_be_given_again(workspace, crossgraft):
    crossgraft("check", "images", "--holdout", "0.25", "--out", "drawn")
    again = crossgraft("check", "images", "--split", "drawn/split.json", "--json", "--out", "again")
    record = DataCheckRecord.model_validate_json(again.out)
    assert record.split_counts == [[7, 7], [2, 2], [3, 3]]


def test_rank_warns_of_unsound_rows_and_refuses_them_when_strict(with_copies, crossgraft):
    flags = ("--models", "zoo.yaml", "--code", "tiny_models.py", "--scores", "logme", "--workers", "1", "--quiet")
    outcome = crossgraft("rank", "images", *flags, "--holdout", "0", "--json")
    assert outcome.code == 0
    assert "Warning: Same picture, different labels: 1 picture is there more than once" in outcome.err
    checks = {check["title"]: check["severity"] for check in json.loads(outcome.out)["checks"]}
    assert checks["Same picture, different labels"] == "unsound"
    assert checks["Identical images"] == "warning"
    assert checks["Constant images"] == "passed"
    strict = crossgraft("rank", "images", *flags, "--holdout", "0", "--strict", "--out", "strict")
    assert strict.code == 3
    assert "Error: The data are unsound: 1 picture is there more than once with different labels." in strict.err


def test_strict_ranks_sound_data(workspace, crossgraft):
    flags = ("--models", "zoo.yaml", "--code", "tiny_models.py", "--scores", "logme", "--workers", "1", "--quiet")
    assert crossgraft("rank", "images", *flags, "--strict").code == 0


def test_every_option_of_opening_data_is_there_or_has_no_meaning():
    from inspect import signature

    from crossgraft import check_data
    from crossgraft.data import DATA_OPTIONS

    missing = set(DATA_OPTIONS) - set(signature(check_data).parameters)
    assert missing == {"limit", "per_class", "class_shares", "pair_by", "skip_unreadable"}  # a check looks at everything
