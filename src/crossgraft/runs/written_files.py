"""The list of what a run wrote, so that --overwrite takes the place of that only, and not before the new run has its result.

A name that ends in ``/`` is a folder of the run. While a run replaces an earlier one, that lies in ``.before``; if it does not
get to its end, the earlier one goes back, and what it did lies in ``.unfinished`` for the next attempt. Everything is moved by
renaming, in an order from which the next run tells what a kill has left.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from crossgraft.errors import DataError, StorageError
from crossgraft.paths import read_whole
from crossgraft.records import RunRecord
from crossgraft.storage.atomic import describe_os_error
from crossgraft.storage.temporaries import temporary_beside

WRITTEN = ".files"
"""Name of the list."""

RUN_FILE = "run.json"
BEFORE = ".before"
UNFINISHED = ".unfinished"


def written_files(path: Path) -> list[str]:
    """The names in the list of what a run wrote; empty lines are none."""
    listing = path / WRITTEN
    try:
        return [name for name in read_whole(listing).decode("utf-8").splitlines() if name]
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"Cannot read {listing}: {error}. Remove the folder by hand, or choose another --out."
        ) from error


def set_aside(path: Path) -> None:
    """Move what the earlier run wrote to ``.before``, and nothing that somebody put beside it.

    Raises:
        DataError: The list of its files names one outside of the folder; nothing was moved.
        StorageError: A file cannot be moved; those that were go back.
    """
    names = _written_in(path)
    try:
        for name in (WRITTEN, RUN_FILE, *names):  # what has no list any more is never taken for the new run
            _move(path / name, path / BEFORE / name)
    except BaseException:
        put_back(path)
        raise


def put_back(path: Path) -> None:
    """Let the earlier run take its place again, if one was set aside; what was done since goes to ``.unfinished``.

    Raises:
        StorageError: A file cannot be moved; the next run in this folder goes on with it.
    """
    if (path / BEFORE / RUN_FILE).is_file() and ((path / WRITTEN).is_file() or (path / RUN_FILE).is_file()):
        for name in (*_written_in(path), RUN_FILE, WRITTEN):
            _move(path / name, path / UNFINISHED / name)
    if (path / BEFORE).is_dir():
        for name in (*_entries(path / BEFORE), RUN_FILE, WRITTEN):
            _merge(path / BEFORE / name, path / name)
        _remove(path / BEFORE)


def go_on(path: Path) -> None:
    """Let the unfinished run take its place, after ``set_aside``."""
    for name in (WRITTEN, *_entries(path / UNFINISHED), RUN_FILE):
        _merge(path / UNFINISHED / name, path / name)
    _remove(path / UNFINISHED)


def let_go(path: Path, *names: str) -> None:
    """Remove ``.before`` or ``.unfinished``, which are either there with all that is in them, or not at all."""
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
    if (path / BEFORE).is_dir():
        _move(path / name, path / BEFORE / name)
    else:
        _remove(path / name)


def _written_in(path: Path) -> Sequence[str]:
    """What the run wrote, without its list and its record; a file before the folder that it lies in."""
    names = dict.fromkeys([*written_files(path), "report.html"])
    for name in names:
        _inside(path, name)
    own = {(path / name).resolve() for name in (RUN_FILE, WRITTEN, BEFORE, UNFINISHED, ".lock", "")}
    return sorted((name for name in names if _entry(path, name) not in own), key=lambda name: name.endswith("/"))


def _entry(path: Path, name: str) -> Path:
    """The file or link itself, by the real folder that it lies in."""
    return (path / name).parent.resolve() / Path(name).name


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


def _inside(path: Path, name: str) -> Path:
    """The file of this name in the folder; the list is data, which may have come with the folder from anywhere."""
    file = path / name
    try:
        stays = file.parent.resolve().is_relative_to(path.resolve()) and file.name != ".." and "\0" not in name
    except (OSError, ValueError, RuntimeError):  # a loop of links, a NUL
        stays = False
    if not stays:
        raise DataError(
            f"{path / WRITTEN} lists {name!r}, which is not in the folder of the run, so nothing was removed. A run lists its "
            "own files only: somebody changed the list. Remove the folder by hand, or choose another --out."
        )
    return file


def is_of_a_beginning(name: str) -> bool:
    """Whether a run leaves a file of this name that is stopped before its first ``run.json``: disk full, power cut."""
    return name in (".lock", WRITTEN, UNFINISHED) or name.startswith((f".{WRITTEN}.", ".run.json."))


def is_without_result(path: Path, record: RunRecord) -> bool:
    """Whether the run stopped before it wrote anything that could be gone on with, for example at a typo."""
    return record.state != "done" and {entry.name for entry in path.iterdir()} <= {".lock", WRITTEN, RUN_FILE}
