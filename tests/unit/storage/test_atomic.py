"""Files appear whole, also where Windows refuses to replace what another program has open."""

import pytest

from crossgraft.errors import StorageError
from crossgraft.storage import atomic
from crossgraft.storage.atomic import atomic_file, remove_if_free, write_atomically

REFUSED = PermissionError(13, "The process cannot access the file because it is being used by another process")


@pytest.fixture
def busy(monkeypatch):
    """`busy(n)`: the next n attempts to replace a file are refused; returns the waits in between."""
    waits = []
    monkeypatch.setattr(atomic.time, "sleep", waits.append)

    def refuse(times):
        replace = atomic.Path.replace

        def refused(self, target):
            nonlocal times
            times -= 1
            if times >= 0:
                raise REFUSED
            return replace(self, target)

        monkeypatch.setattr(atomic.Path, "replace", refused)
        return waits

    return refuse


def write_report(path):
    write_atomically(path, "new")


def write_features(path):
    with atomic_file(path) as file:
        file.write(b"new")


@pytest.mark.parametrize("write", [write_report, write_features])
def test_a_scanner_that_holds_the_file_for_a_moment_is_waited_for(tmp_path, busy, write):
    (tmp_path / "file").write_text("old")
    waits = busy(3)
    write(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "new"
    assert len(waits) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("write", [write_report, write_features])
def test_a_program_that_keeps_the_file_open_is_named_as_the_likely_reason(tmp_path, busy, write):
    (tmp_path / "file").write_text("old")
    busy(100)
    with pytest.raises(StorageError, match="is it open in another program"):
        write(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_other_errors_are_not_waited_for(tmp_path, busy):
    waits = busy(0)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inside").write_text("")
    with pytest.raises(StorageError):
        write_atomically(tmp_path / "folder", "text")
    assert waits == []


def test_a_mapped_file_stays_until_the_next_time(tmp_path, monkeypatch):
    def refuse(self, missing_ok=False):
        raise REFUSED

    file = tmp_path / "shard"
    file.write_text("x")
    with monkeypatch.context() as patch:
        patch.setattr(atomic.Path, "unlink", refuse)
        remove_if_free(file)
    assert file.exists()
    remove_if_free(file)
    remove_if_free(file)
    assert not file.exists()
