"""An earlier run in the place of a new one leaves when that has its result, and not before.

Meanwhile it lies in ``.crossgraft-before``. If the new one does not get to its end, the earlier one goes back, and what the new
one did lies in ``.crossgraft-unfinished`` for the next attempt. Everything is moved by renaming, in an order from which the next
run tells what a kill has left: a run that is set aside has its ``run.json`` in ``.crossgraft-before``, and a new one its list or
its ``run.json`` in the folder.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from crossgraft.errors import StorageError
from crossgraft.records.base import RunRecord
from crossgraft.running.written_files import BEFORE, RUN_FILE, UNFINISHED, WRITTEN, written_in
from crossgraft.storage.atomic import describe_os_error, temporary_beside


def settle(path: Path) -> None:
    """What a run that was killed has left: the new one if it had its result, else the earlier one."""
    if is_replaced(path) and done_record(path) is not None:
        let_go(path, BEFORE)
    put_back(path)


def done_record(path: Path) -> bytes | None:
    """What ``run.json`` holds, if its run is done."""
    with suppress(OSError, ValidationError):
        content = (path / RUN_FILE).read_bytes()
        return content if RunRecord.model_validate_json(content).state == "done" else None
    return None


def replace_run(path: Path, digest: str) -> RunRecord | None:
    """Set the earlier run aside; the record of an attempt with the same configuration that was stopped, which goes on."""
    unfinished: RunRecord | None = None
    with suppress(OSError, ValidationError):
        unfinished = RunRecord.model_validate_json((path / UNFINISHED / RUN_FILE).read_bytes())
    _set_aside(path)
    if unfinished is None or unfinished.config_hash != digest:
        let_go(path, UNFINISHED)
        return None
    _go_on(path)
    return unfinished


def _set_aside(path: Path) -> None:
    """Move what the earlier run wrote to ``.crossgraft-before``, and nothing that somebody put beside it.

    Raises:
        DataError: The list of its files names one outside of the folder; nothing was moved.
        StorageError: A file cannot be moved; those that were go back.
    """
    names = written_in(path)
    try:
        for name in (WRITTEN, RUN_FILE, *names):  # what has no list any more is never taken for the new run
            _move(path / name, path / BEFORE / name)
    except BaseException:
        put_back(path)
        raise


def put_back(path: Path) -> None:
    """Let the earlier run take its place again, if one was set aside; what was done since goes to ``.crossgraft-unfinished``.

    Raises:
        StorageError: A file cannot be moved; the next run in this folder goes on with it.
    """
    if (path / BEFORE / RUN_FILE).is_file() and ((path / WRITTEN).is_file() or (path / RUN_FILE).is_file()):
        for name in (*written_in(path), RUN_FILE, WRITTEN):
            _move(path / name, path / UNFINISHED / name)
    if any((path / BEFORE / name).is_file() for name in (RUN_FILE, WRITTEN)):
        for name in (*_entries(path / BEFORE), RUN_FILE, WRITTEN):
            _merge(path / BEFORE / name, path / name)
        _remove(path / BEFORE)


def _go_on(path: Path) -> None:
    """Let the unfinished run take its place, after ``_set_aside``."""
    for name in (WRITTEN, *_entries(path / UNFINISHED), RUN_FILE):
        _merge(path / UNFINISHED / name, path / name)
    _remove(path / UNFINISHED)


def let_go(path: Path, *names: str) -> None:
    """Remove ``BEFORE`` or ``UNFINISHED``, which are either there with all that is in them, or not at all."""
    for name in names:
        if (path / name).exists():
            with suppress(OSError), temporary_beside(path / name) as gone:
                (path / name).replace(gone)
                _remove(gone)


def is_replaced(path: Path) -> bool:
    """Whether all of an earlier run has been set aside, or is about to be."""
    return (path / BEFORE / RUN_FILE).is_file()


def set_one_aside(path: Path, name: str) -> None:
    """Move a file or folder of the earlier run that its list does not name, or remove what a killed one has left.

    Raises:
        StorageError: It cannot be moved.
    """
    if is_replaced(path):
        _move(path / name, path / BEFORE / name)
    else:
        _remove(path / name)


def _entries(path: Path) -> list[str]:
    return sorted({entry.name for entry in path.iterdir()} - {WRITTEN, RUN_FILE})


def _move(source: Path, target: Path) -> None:
    if not source.exists() and not source.is_symlink():
        return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _merge(source, target)
    except OSError as error:  # on Windows a file that a program has open cannot be moved
        raise StorageError(f"Cannot move {source}: {describe_os_error(error)}.") from error


def _merge(source: Path, target: Path) -> None:
    """Rename, into a folder that is there already, too; a file takes the place of an older one."""
    if not source.exists() and not source.is_symlink():
        return
    both = source.is_dir() and target.is_dir() and not source.is_symlink() and not target.is_symlink()
    if both:
        for entry in list(source.iterdir()):
            _merge(entry, target / entry.name)
        source.rmdir()
        return
    if source.is_dir() != target.is_dir() and (target.exists() or target.is_symlink()):
        _remove(target)
    source.replace(target)


def _remove(path: Path) -> None:
    """A file, or a folder with all that is in it; what cannot be removed stays for the next time."""
    with suppress(OSError):
        if not path.is_dir() or path.is_symlink():
            path.unlink(missing_ok=True)
            return
        for entry in list(path.iterdir()):
            _remove(entry)
        path.rmdir()
