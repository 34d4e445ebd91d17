"""What a finished run can do without never throws it away: pictures, pages, known results, trackers."""

import errno
import importlib
import json
import os
import shutil
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from crossgraft.cli.main import main
from crossgraft.errors import CrossgraftWarning
from crossgraft.rank.record import RankingRecord
from crossgraft.rank.results_store import known_results_file, read_known_results
from crossgraft.running import publishing as finish
from crossgraft.storage import atomic
from crossgraft.variants import curves
from crossgraft.variants.record import FineTuningComparisonRecord
from support.few_pages import A_PAGE
from support.tiny import make_workspace

COMMON = ("--workers", "1", "--device", "cpu")
TUNE = ("tune", "images", "--model", "tiny_models:tiny", "--epochs", "1", *COMMON, "--out", "run")
OWN = ("--code", "tiny_models.py")
RANK = ("rank", "images", "--models", "zoo.yaml", *OWN, "--scores", "logme", *COMMON, "--out", "run")


@dataclass
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    make_workspace(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "tiny_models", raising=False)
    yield tmp_path
    sys.modules.pop("tiny_models", None)


@pytest.fixture
def command(workspace, capsys):
    def run(*arguments):
        capsys.readouterr()
        code = main([*arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, " ".join(captured.err.split()))

    return run


@pytest.fixture
def full_disk(monkeypatch):
    """`full_disk("a.json")`: no room for files of this name; `full_disk()`: there is room again."""
    write, refused = atomic.replace_file, set()

    def refuse(temporary, path):
        if path.name in refused:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(temporary, path)

    monkeypatch.setattr(atomic, "replace_file", refuse)

    def change(*names):
        refused.clear()
        refused.update(names)

    return change


@pytest.fixture(autouse=True)
def quick_pages(monkeypatch):
    """Pages are tested elsewhere, and take half the time."""
    monkeypatch.setattr(finish, "write_report", lambda run, **_: atomic.write_atomically(run / "report.html", A_PAGE))


def state(folder):
    return json.loads((folder / "run.json").read_text())["state"]


def results(folder):
    """What a fine-tuning is done for."""
    names = ("predictions.csv", "metrics.csv", "split.json")
    files = [*(folder / "model").iterdir(), *(folder / name for name in names)]
    return {path.name: path.read_bytes() for path in files}


def damaged_store(full_disk):
    known_results_file().write_text("not a result\n")
    return "line 1 is not a known result"


def store_that_is_a_folder(full_disk):
    known_results_file().mkdir()
    return "Repair the file or move it away"


def full_store(full_disk):
    full_disk("known_results.jsonl")
    return "No space left on device. Allow writing there and free some space, or set CROSSGRAFT_CACHE to another folder."


@pytest.mark.parametrize("break_store", [damaged_store, store_that_is_a_folder, full_store])
def test_a_store_that_can_not_be_written_keeps_the_training(workspace, command, full_disk, break_store):
    reason = break_store(full_disk)
    outcome = command(*TUNE)
    assert outcome.code == 0, outcome.err
    assert "Warning: The result was not added to the known results: " in outcome.err
    assert reason in outcome.err
    assert "Run the same command again, without --overwrite, to make up for it." in outcome.err
    assert state(workspace / "run") == "done"
    before = results(workspace / "run")
    full_disk()
    file = known_results_file()
    shutil.rmtree(file) if file.is_dir() else file.unlink(missing_ok=True)
    again = command(*TUNE)
    assert again.code == 0
    assert "1 of 1 trainings were done before" in again.err
    assert results(workspace / "run") == before
    assert len(read_known_results()) == 1


def test_a_cache_folder_that_can_not_be_made_keeps_the_training(workspace, command, monkeypatch):
    (workspace / "file").touch()
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(workspace / "file" / "cache"))
    with pytest.warns(CrossgraftWarning, match="are computed again by the next training: .*Not a directory"):
        outcome = command(*TUNE, "--regularizer", "repsim:preset=paper")
    assert outcome.code == 0, outcome.err
    assert "The result was not added to the known results: " in outcome.err
    assert (workspace / "run" / "model" / "model.json").is_file()


def test_a_store_without_locks_keeps_the_training(workspace, command, monkeypatch):
    def acquire(_):
        raise NotImplementedError("FileSystem does not appear to support flock")

    monkeypatch.setattr("crossgraft.running.json_lines.FileLock.__enter__", acquire)
    outcome = command(*TUNE)
    assert outcome.code == 0, outcome.err
    assert "its file system has no locks" in outcome.err


@pytest.mark.slow
def test_folds_and_grid_are_kept_too(workspace, command, full_disk):
    full_disk("known_results.jsonl", "thumbnails.json", "report.html")
    flags = ("--folds", "2", "--grid", "learning_rate=0.01,0.02")
    outcome = command(*TUNE, *flags)
    assert outcome.code == 0, outcome.err
    assert outcome.err.count("Warning:") - outcome.err.count("Fewer than") >= 3
    assert state(workspace / "run") == "done"
    assert (workspace / "run" / "folds" / "fold-1" / "model" / "model.json").is_file()
    full_disk()
    again = command(*TUNE, *flags)
    assert "4 of 4 trainings were done before" in again.err
    assert len(read_known_results()) == 1
    assert (workspace / "run" / "report.html").is_file()
    assert (workspace / "run" / "thumbnails.json").is_file()


@pytest.mark.slow
def test_a_comparison_makes_up_for_pages_and_known_results_without_training_again(workspace, command, full_disk, monkeypatch):
    monkeypatch.setattr(curves, "ALPHAS", (0.0, 1.0))
    compare = (*TUNE, "--compare", "full,linear")
    full_disk("known_results.jsonl", "report.html")
    outcome = command(*compare)
    assert outcome.code == 0, outcome.err
    first = FineTuningComparisonRecord.model_validate_json((workspace / "run" / "report.json").read_bytes())
    assert read_known_results() == []
    trained = {path: path.read_bytes() for path in workspace.glob("run/trainings/*/jobs/only/weights.safetensors")}
    assert len(trained) == 2
    full_disk()
    again = command(*compare)
    assert again.code == 0, again.err
    assert {row.metric for row in read_known_results()} == {first.primary_metric}
    assert len(read_known_results()) == 2
    assert len(list(workspace.glob("run/trainings/*/report.html"))) == 2
    assert (workspace / "run" / "report.html").is_file()
    for path, weights in trained.items():
        assert path.read_bytes() == weights
    second = FineTuningComparisonRecord.model_validate_json((workspace / "run" / "report.json").read_bytes())
    assert [row.metric for row in second.variants] == [row.metric for row in first.variants]


@pytest.mark.slow
def test_a_result_that_was_lost_by_a_kill_is_added_when_the_comparison_is_read_back(workspace, command, monkeypatch):
    monkeypatch.setattr(curves, "ALPHAS", (0.0, 1.0))
    compare = (*TUNE, "--compare", "full,linear", "--no-images")
    assert command(*compare).code == 0
    known = known_results_file().read_bytes()
    known_results_file().unlink()
    again = command(*compare)
    assert "full with seed 0 was trained before" in again.err
    assert known_results_file().read_bytes() == known


@pytest.mark.slow
@pytest.mark.parametrize("file", ["report.html", "thumbnails.json"])
def test_pictures_and_pages_are_not_needed(workspace, command, full_disk, file):
    for arguments in (TUNE, ("predict", "run", "images", *OWN, *COMMON), ("check", "images", "--workers", "1"), RANK):
        name = arguments[0]
        full_disk(file)
        outcome = command(*arguments[:-1], name) if "--out" in arguments else command(*arguments, "--out", name)
        if name == "tune":
            (workspace / "tune").rename(workspace / "run")
            (workspace / "tune").symlink_to("run")
        assert outcome.code == 0, outcome.err
        assert f"Cannot write {name}/{file}: No space left on device" in outcome.err
        assert state(workspace / name) == "done"
        assert (workspace / name / "report.json").is_file()
        assert "Report: None" not in outcome.out
        assert not (workspace / name / file).exists()
        full_disk()
        if file == "report.html":
            assert f"write the page with: crossgraft report {name}" in outcome.err
            if name == "tune":
                assert command("report", name).code == 0
        else:
            assert "Run the same command again, without --overwrite, to make up for it." in outcome.err
    assert not list(workspace.rglob("*.tmp"))


def test_an_image_that_vanishes_after_training_is_missed_by_pictures_only(workspace, command, monkeypatch):
    from crossgraft.errors import UnreadableImageError
    from crossgraft.tune import trainings

    def gone(_):
        raise UnreadableImageError("benign/00.png", "it is gone")

    monkeypatch.setattr(trainings, "make_thumbnails", gone)
    outcome = command(*TUNE)
    assert outcome.code == 0, outcome.err
    assert "The pictures of the report were not written: Cannot read the image benign/00.png" in outcome.err
    assert (workspace / "run" / "report.html").is_file()


def test_what_goes_wrong_after_the_end_does_not_undo_it(workspace, command, monkeypatch):
    def stop(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(finish, "write_report", stop)
    assert command(*TUNE).code == 130
    assert state(workspace / "run") == "done"


def test_a_full_disk_hides_no_interruption(workspace, command, full_disk, monkeypatch):
    from crossgraft.tune import trainings

    def stop(*_, **__):
        full_disk("run.json", ".files")
        raise KeyboardInterrupt

    monkeypatch.setattr(trainings, "predict_fold", stop)
    assert command(*TUNE).code == 130


def test_a_run_that_can_not_be_marked_as_done_is_not_said_to_be(workspace, command, monkeypatch):
    from crossgraft.running.run_directory import RunDirectory

    update = RunDirectory.update

    def full(self, **changes):
        if changes.get("state") == "done":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        update(self, **changes)

    monkeypatch.setattr(RunDirectory, "update", full)
    assert command(*TUNE).code == 1
    assert state(workspace / "run") == "failed"


def test_a_disk_that_is_full_for_one_grid_point_stops_instead_of_picking_among_the_others(workspace, command, full_disk):
    flags = ("--grid", "learning_rate=0.01,0.02")
    full_disk("result.json")
    outcome = command(*TUNE, *flags)
    assert outcome.code == 1
    assert "No space left" in outcome.err
    full_disk()
    assert command(*TUNE, *flags).code == 0


def test_a_ranking_does_without_damaged_known_results(workspace, command):
    damaged_store(None)
    outcome = command(*RANK)
    assert outcome.code == 0, outcome.err
    assert "line 1 is not a known result" in outcome.err
    assert "The ranking does without your own results" in outcome.err
    record = RankingRecord.model_validate_json((workspace / "run" / "report.json").read_bytes())
    assert any(check.title == "Known results not read" for check in record.checks)
    known_results_file().unlink()
    assert command(*RANK).code == 0
    again = RankingRecord.model_validate_json((workspace / "run" / "report.json").read_bytes())
    assert again.cells == record.cells
    assert not any(check.title == "Known results not read" for check in again.checks)


@pytest.mark.parametrize("broken", ["start_run", "log_params", "log_metrics", "end_run"])
def test_a_tracker_that_fails_is_a_warning(workspace, command, monkeypatch, broken):
    calls = []

    def told(name):
        def call(*_, **__):
            calls.append(name)
            if name == broken:
                raise ConnectionError("the server is away.\nand more lines")

        return call

    names = ("start_run", "log_params", "log_metrics", "end_run")
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(**{name: told(name) for name in names}))
    outcome = command(*TUNE, "--track", "mlflow")
    assert outcome.code == 0, outcome.err
    assert outcome.err.count("--track mlflow failed, and the training goes on without it: the server is away.") == 1
    assert state(workspace / "run") == "done"
    assert calls[-1] == "end_run"


def test_an_export_that_was_sent_is_not_undone_by_its_own_record(workspace, command, full_disk, monkeypatch):
    module = importlib.import_module("crossgraft.export.verb")

    def sent(folder, push_to, *, private):
        full_disk("export.json")
        return "https://hub/me/net"

    monkeypatch.setattr(module, "check_push", lambda *_, **__: None)
    monkeypatch.setattr(module, "push", sent)
    assert command(*TUNE, "--no-images").code == 0
    outcome = command("export", "run", *OWN, "--push-to", "me/net")
    assert outcome.code == 0, outcome.err
    assert "export.json does not say that the export was sent" in outcome.err
