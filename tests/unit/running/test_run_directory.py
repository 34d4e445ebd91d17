import errno
import io
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from crossgraft.errors import DataError, RunDirectoryError, StorageError
from crossgraft.progress import Reporter
from crossgraft.records.base import RunRecord, StageRecord
from crossgraft.running import run_directory
from crossgraft.running.run_directory import open_run
from crossgraft.storage.atomic import write_atomically
from crossgraft.version import __version__


@contextmanager
def opened(path, *, config=None, seed=0, overwrite=False):
    with open_run(
        path,
        command="rank",
        command_line="crossgraft rank x",
        config={"limit": 3} if config is None else config,
        seed=seed,
        overwrite=overwrite,
    ) as run:
        yield run


def state(path):
    return RunRecord.model_validate_json((path / "run.json").read_bytes())


def test_a_finished_run_says_so_and_the_same_command_resumes(tmp_path):
    with opened(tmp_path) as run:
        assert not run.resumed
        assert state(tmp_path).state == "running"
        run.describe_data("sha256:1")
        run.write_record("piece.json", StageRecord(name="a", seconds=1.0))
    assert state(tmp_path).state == "done"
    with opened(tmp_path) as run:
        assert run.resumed
        assert run.read_record("piece.json", StageRecord) == StageRecord(name="a", seconds=1.0)
        assert run.read_record("other.json", StageRecord) is None


def test_a_report_that_the_next_run_would_not_take_for_its_own_is_not_written(tmp_path):
    with pytest.raises(TypeError, match="first fields of its record are schema_version"), opened(tmp_path) as run:
        run.write_record("report.json", StageRecord(name="a", seconds=1.0))
    assert not (tmp_path / "report.json").exists()


def test_another_configuration_is_refused_and_named_unless_overwritten(tmp_path):
    with opened(tmp_path) as run:
        run.write("old.txt", "old")
        run.write("models/old.json", "old")
    (tmp_path / "notes.md").write_text("mine")
    with pytest.raises(RunDirectoryError, match=r"different: limit.*--overwrite"), opened(tmp_path, config={"limit": 4}):
        pass
    with pytest.raises(RunDirectoryError, match="seed 0"), opened(tmp_path, seed=1):
        pass
    with opened(tmp_path, config={"limit": 4}, overwrite=True) as run:
        assert not run.resumed
        assert not (tmp_path / "old.txt").exists()
        assert not (tmp_path / "models" / "old.json").exists()
        assert (tmp_path / "notes.md").read_text() == "mine"


def test_an_option_that_came_later_and_is_not_used_is_no_other_configuration(tmp_path):
    with opened(tmp_path) as run:
        run.write("old.txt", "old")
    with opened(tmp_path, config={"limit": 3, "uncertain": None, "keep_masks": False}) as run:
        assert run.resumed
    with (
        pytest.raises(RunDirectoryError, match=r"\(different: keep_masks\)"),
        opened(tmp_path, config={"limit": 3, "keep_masks": True}),
    ):
        pass


def test_other_data_under_the_same_configuration_are_refused(tmp_path):
    with opened(tmp_path) as run:
        run.describe_data("sha256:1")
    with pytest.raises(RunDirectoryError, match="data changed"), opened(tmp_path) as run:
        run.describe_data("sha256:2")


def test_nothing_is_looked_for_in_a_folder_of_somebody_else(tmp_path):
    (tmp_path / "bin").symlink_to(tmp_path)  # as --out / would have it: a link that nobody should remove
    with pytest.raises(RunDirectoryError, match="not a crossgraft run"), opened(tmp_path, overwrite=True):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["bin"]


def test_a_folder_with_other_files_is_never_touched(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(RunDirectoryError, match="not a crossgraft run"), opened(tmp_path, overwrite=True):
        pass
    assert (tmp_path / "thesis.tex").read_text() == "precious"


SECOND_PROCESS = """
import pathlib, sys
from crossgraft.running import open_run
with open_run(pathlib.Path(sys.argv[1]), command="rank", command_line="", config={"limit": 3}, seed=0):
    pass
"""


def test_a_second_process_in_the_same_directory_is_refused(tmp_path):
    with opened(tmp_path):
        command = [sys.executable, "-c", SECOND_PROCESS, str(tmp_path)]
        second = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert second.returncode == 1
        assert "Another crossgraft command is at work" in second.stderr
    with opened(tmp_path) as run:
        assert run.resumed


@pytest.mark.parametrize(("error", "expected"), [(KeyboardInterrupt, "interrupted"), (ValueError, "failed")])
def test_the_state_is_true_after_an_error(tmp_path, error, expected):
    with pytest.raises(error), opened(tmp_path):
        raise error
    assert state(tmp_path).state == expected
    with opened(tmp_path):
        pass
    assert state(tmp_path).state == "done"


def test_a_full_disk_leaves_the_old_file_and_no_temporary_one(tmp_path, monkeypatch):
    target = write_atomically(tmp_path / "a.json", "old")

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"Cannot write .*No space left"):
        write_atomically(target, "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_going_on_with_other_threads_is_warned_of_once(tmp_path):
    def said(**facts):
        stream = io.StringIO()
        with opened(tmp_path) as run:
            run.write("piece.txt", "")
            run.describe_machine(Reporter(stream), **facts)
        return stream.getvalue()

    assert said(threads=2, device="cpu") == ""
    assert said(threads=2, device="cpu") == ""
    warning = said(threads=1, device="cpu")
    assert "was started under other conditions: threads 2, now 1. They change rounding" in warning
    assert said(threads=1, device="cpu") == ""
    assert state(tmp_path).machine["threads"] == "1"
    with opened(tmp_path / "fresh") as run:
        run.describe_machine(Reporter(stream := io.StringIO()), threads=4)
    assert stream.getvalue() == ""


def test_going_on_with_other_versions_is_warned_of(tmp_path, monkeypatch):
    def said(**facts):
        with opened(tmp_path) as run:
            run.write("piece.txt", "")
            run.describe_machine(Reporter(stream := io.StringIO()), **facts)
        return " ".join(stream.getvalue().split())

    assert said(threads=2) == ""
    now = state(tmp_path).versions["torch"]
    monkeypatch.setattr(run_directory, "_version_of", lambda package: "0.1" if package == "torch" else "1")
    monkeypatch.setattr(run_directory, "RECORDED_PACKAGES", ("torch",))
    warning = said(threads=2)
    assert f"was started under other conditions: torch {now}, now 0.1. They change rounding" in warning
    assert warning.endswith("For the same bits use the versions that it was started with.")
    assert said(threads=2) == ""
    monkeypatch.setattr(run_directory, "__version__", "9")
    warning = said(threads=1)
    assert f"threads 2, now 1; crossgraft {__version__}, now 9. They" in warning
    assert "use the --workers, --device and --devices and the versions that it was started with." in warning
    assert warning.endswith("Another crossgraft may also compute otherwise: --overwrite starts the run anew.")


def test_stages_are_kept_across_a_resume(tmp_path):
    with opened(tmp_path) as run, run.stage("look"):
        pass
    with opened(tmp_path) as run, run.stage("score"):
        pass
    assert [stage.name for stage in state(tmp_path).stages] == ["look", "score"]


def test_a_run_that_stopped_before_its_first_result_does_not_hold_the_folder(tmp_path):
    """A typo found while the data are opened must not ask for --overwrite once it is corrected."""
    with pytest.raises(KeyboardInterrupt), opened(tmp_path):
        raise KeyboardInterrupt
    with opened(tmp_path, config={"limit": 4}) as run:
        assert not run.resumed
        run.write("first.txt", "a result")
    with pytest.raises(RunDirectoryError, match="different: limit"), opened(tmp_path, config={"limit": 5}):
        pass


def test_data_may_change_after_a_run_that_has_no_result(tmp_path):
    def stop_after_looking_at(fingerprint):
        with opened(tmp_path) as run:
            run.describe_data(fingerprint)
            raise KeyboardInterrupt

    for fingerprint in ("sha256:1", "sha256:2"):
        with pytest.raises(KeyboardInterrupt):
            stop_after_looking_at(fingerprint)


def test_a_run_of_another_version_can_be_overwritten_only_when_asked(tmp_path):
    (tmp_path / "run.json").write_text('{"schema_version": 99}')
    with pytest.raises(DataError, match="not a record of this version"), opened(tmp_path):
        pass
    with opened(tmp_path, overwrite=True) as run:
        assert not run.resumed


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    def acquire(_):
        raise NotImplementedError("FileSystem does not appear to support flock")

    monkeypatch.setattr("crossgraft.running.run_directory.FileLock.acquire", acquire)
    with pytest.raises(StorageError, match="has no locks"), opened(tmp_path):
        pass


def test_a_stopped_cell_of_a_notebook_leaves_no_lock(tmp_path):
    kept = []  # a notebook keeps the last exception, and with it every frame
    for _ in range(2):
        try:
            with opened(tmp_path):
                raise KeyboardInterrupt
        except KeyboardInterrupt as stopped:
            kept.append(stopped)
    assert len(kept) == 2


def test_overwriting_says_which_file_is_open(tmp_path, monkeypatch):
    replace = Path.replace

    def refuse(self, target):
        if self.name == "table.csv":
            raise PermissionError(13, "in use")
        return replace(self, target)

    with opened(tmp_path) as run:
        run.write("table.csv", "a,b")
    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.replace", refuse)
        with (
            pytest.raises(StorageError, match=r"Cannot move .*: in use \(is it open in another program"),
            opened(tmp_path, overwrite=True),
        ):
            pass
    assert (tmp_path / "table.csv").exists()


def test_a_run_that_could_not_write_its_first_record_can_be_started_again(tmp_path, monkeypatch):
    """The disk is full after the listing of files, or the power is cut within a file."""
    from crossgraft.running import run_directory

    write = run_directory.write_atomically

    def full(path, content):
        if path.name == "run.json":
            raise StorageError("No space left on device")
        return write(path, content)

    monkeypatch.setattr(run_directory, "write_atomically", full)
    with pytest.raises(StorageError), opened(tmp_path):
        pass
    assert [entry.name for entry in tmp_path.iterdir() if entry.name != ".lock"] == [".files"]
    monkeypatch.undo()
    (tmp_path / ".run.json.abc").write_text("{")
    with opened(tmp_path) as run:
        assert not run.resumed
    (tmp_path / "run.json").unlink()
    (tmp_path / "thesis.txt").write_text("of somebody")
    with pytest.raises(RunDirectoryError, match="not a crossgraft run"), opened(tmp_path):
        pass


def test_weights_that_changed_under_the_same_name_are_said(tmp_path, capsys):
    with opened(tmp_path) as run:
        run.describe_weights(Reporter(), {"net": "ab" * 32, "other": "ef" * 32})
    assert capsys.readouterr().err == ""
    with opened(tmp_path) as run:
        run.describe_weights(Reporter(), {"net": "cd" * 32, "other": "ef" * 32, "new": "ab" * 32})
    said = " ".join(capsys.readouterr().err.split())
    assert "net abababababab, now cdcdcdcdcdcd. What they decide is computed anew." in said and "other ef" not in said
    assert "put their file back" in said
    assert state(tmp_path).weights_fingerprints["net"] == "cd" * 32


def test_weights_of_one_model_after_the_other_are_said_once_after_an_attempt_that_was_stopped(tmp_path, capsys):
    def stopped():
        with opened(tmp_path) as run:
            run.describe_weights(Reporter(), {"net": "ab" * 32})
            run.write("part.json", "{}")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    with opened(tmp_path) as run:
        run.describe_weights(Reporter(), {"net": "cd" * 32})
        run.describe_weights(Reporter(), {"other": "ef" * 32})
        run.describe_weights(Reporter(), {"net": "cd" * 32})
    assert capsys.readouterr().err.count("Weights have changed") == 1
    assert list(state(tmp_path).weights_fingerprints) == ["net", "other"]
