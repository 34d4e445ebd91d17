"""Files appear whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import psutil

from crossgraft.errors import RunDirectoryError, StorageError, UsageError

# What is being written has a name that says by whom, so that what a killed process left behind can be removed.
#
# A file or folder first lies beside its final place, as ``.NAME.MACHINE-PID-START-TOKEN.tmp``. Whoever writes the same name next,
# or opens the same run, removes those whose process is gone.

ABANDONED_SECONDS = 24 * 3600
"""Whether a process of another machine is alive cannot be seen; after so long without a change, what it wrote is given up."""

BEFORE = "before"
"""What a folder replaces waits under this name in the temporary one, and goes back if nothing takes its place."""

_NAME = re.compile(r"\.(?P<target>.+)\.(?P<machine>[0-9a-f]{6})-(?P<pid>[0-9a-f]+)-(?P<start>[0-9a-f]+)-[0-9a-f]{8}\.tmp")
_CLOCK_SECONDS = 2
"""The start of a process is computed from the start of the system, which a corrected clock moves."""


@contextmanager
def temporary_beside(path: Path, *, look: bool = True) -> Generator[Path]:
    """A name in the folder of ``path``, for what is renamed to ``path`` when it is whole; what is still there then is removed.

    Leftovers of ``path`` by processes that were killed are removed first, if ``look``: that reads the names of all of the folder.
    """
    if look:
        remove_leftovers(path.parent, of=path.name)
    temporary = path.with_name(f".{path.name}.{this_process()}-{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
    finally:
        _discard(temporary, path)


@contextmanager
def scratch_folder(name: str) -> Generator[Path]:
    """A folder of the system's temporary one, only for this user, which is gone after the block.

    Raises:
        OSError: It cannot be made.
    """
    with temporary_beside(Path(tempfile.gettempdir(), f"crossgraft-{name}")) as folder:
        folder.mkdir(mode=0o700)
        yield folder


def remove_leftovers(folder: Path, *, of: str | None = None, locked: bool = False, recursive: bool = False) -> None:
    """Remove what killed processes left half-written in ``folder``; what cannot be removed stays for the next time.

    A temporary file stays while its process lives, which is told by its number and start. Of processes of other machines (or
    containers) it stays for a day, unless the lock of the folder says that there are none.

    Args:
        folder: Folder, which may be missing.
        of: Name of the leftovers.
        locked: Whether this process holds the lock of the folder.
        recursive: Whether to look in the folders inside, too; links are not followed.
    """
    for entry, parts in list(_temporary(folder, recursive=recursive)):
        if parts["target"] in (".", "..") or of not in (None, parts["target"]):
            continue
        with suppress(OSError):
            if not _may_be_at_work(parts, entry, locked=locked):
                _discard(entry, entry.with_name(parts["target"]))


def _temporary(folder: Path, *, recursive: bool) -> Iterator[tuple[Path, re.Match[str]]]:
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            if name.endswith(".tmp") and (parts := _NAME.fullmatch(name)):
                yield Path(parent, name), parts
        # What lies in a temporary folder goes with it.
        folders[:] = [name for name in folders if _NAME.fullmatch(name) is None] if recursive else []


def _may_be_at_work(parts: re.Match[str], entry: Path, *, locked: bool) -> bool:
    alive = is_alive(f"{parts['machine']}-{parts['pid']}-{parts['start']}")
    return not locked and time.time() - entry.lstat().st_mtime < ABANDONED_SECONDS if alive is None else alive


def this_process() -> str:
    """The name of this process among all of all machines."""
    pid = os.getpid()
    return f"{_machine()}-{pid:x}-{int(psutil.Process(pid).create_time()):x}"


def is_alive(process: str) -> bool | None:
    """Whether a process is there that ``this_process`` named; None: it is one of another machine, which cannot be seen."""
    machine, pid, start = process.split("-")
    if machine != _machine():
        return None
    try:
        of_it = psutil.Process(int(pid, 16))
        started, status = of_it.create_time(), of_it.status()
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
    return status != psutil.STATUS_ZOMBIE and abs(started - int(start, 16)) <= _CLOCK_SECONDS


def _discard(temporary: Path, target: Path) -> None:
    """Remove a temporary file or folder; what was moved away for it goes back, if nothing has taken its place."""
    with suppress(OSError):
        if temporary.is_symlink() or not temporary.is_dir():
            temporary.unlink(missing_ok=True)
            return
        if (temporary / BEFORE).exists() and not target.exists():
            (temporary / BEFORE).rename(target)
        shutil.rmtree(temporary, ignore_errors=True)


def _machine() -> str:
    """Short for the machine, or the container, in which a process number means one process."""
    try:
        numbers = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:  # not Linux
        numbers = 0
    return hashlib.sha256(f"{socket.gethostname()} {numbers}".encode()).hexdigest()[:6]


# Windows refuses to replace or remove a file that any program has open. Virus scanners and search indexes open every new
# file for a moment, so a refusal is worth a few more tries; a spreadsheet or another run keeps the file for longer.
_WAITS_SECONDS = (0.05, 0.1, 0.2, 0.4, 0.8)

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def replace_file(temporary: Path, path: Path) -> None:
    """Rename ``temporary`` over ``path``, with patience for programs that look at ``path`` for a moment.

    Raises:
        OSError: It stays impossible.
    """
    for wait in _WAITS_SECONDS:
        try:
            temporary.replace(path)
            return
        except PermissionError:
            time.sleep(wait)
    temporary.replace(path)


def remove_if_free(path: Path) -> None:
    """Remove a file that is of no more use; where that is refused (open elsewhere, read-only), it stays for the next time."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


def describe_os_error(error: OSError) -> str:
    """Why a file could not be written, in the words of the system, and what that often means."""
    reason = error.strerror or str(error)
    return f"{reason} (is it open in another program?)" if isinstance(error, PermissionError) else reason


def write_atomically(
    path: Path, content: str | bytes, *, advice: str = "Free some space or choose another folder with --out.", look: bool = True
) -> Path:
    """Write to a temporary file in the same folder, then rename it over ``path``.

    Args:
        path: Folders above it are made.
        content: All of it.
        advice: Advice for the case that it cannot be written.
        look: Whether leftovers of ``path`` are looked for; who writes many files of one folder does so once, before.

    Raises:
        StorageError: Disk full, no permission …; the temporary file is removed and an older ``path`` stays as it was.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(path, look=look) as temporary:
            with os.fdopen(os.open(temporary, _NEW_FILE, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(0o644)  # a report is there to be shared
            replace_file(temporary, path)
    except OSError as error:
        raise StorageError(f"Cannot write {path}: {describe_os_error(error)}. {advice}") from error
    return path


def replace_folder(folder: Path, content: Mapping[str, str | bytes], *, what: str, advice: str) -> None:
    """Write everything into a new folder beside, then put that in the place of the old one.

    Args:
        folder: Replaced with all that is in it; folders above it are made.
        content: Name of each file → what is in it.
        what: What the files are together, for the message.
        advice: Advice for the case that a folder cannot be made or moved.

    Raises:
        StorageError: It cannot be written; an older ``folder`` stays as it was.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder_beside(folder) as fresh:
            for name, text in content.items():
                write_atomically(fresh / name, text)
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"Cannot write {what} into {folder}: {describe_os_error(error)}. {advice}") from error


@contextmanager
def folder_beside(folder: Path) -> Generator[Path]:
    """A new folder beside ``folder``, which takes its place when the block ends well and is removed when it does not.

    Raises:
        OSError: It cannot be made or moved; an older ``folder`` stays as it was.
    """
    with temporary_beside(folder) as beside:
        beside.mkdir(mode=0o700)
        fresh = beside / "fresh"
        fresh.mkdir()
        yield fresh
        if folder.exists():
            folder.rename(beside / BEFORE)
        fresh.rename(folder)


@contextmanager
def atomic_file(path: Path) -> Generator[BinaryIO]:
    """Write to a temporary file beside ``path``; it takes its name only after everything is on the disk.

    Raises:
        StorageError: Disk full, no permission …; the temporary file is gone, an older ``path`` is as it was.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(path) as temporary:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            replace_file(temporary, path)
    except OSError as error:
        raise StorageError(
            f"Cannot write features into {path.parent}: {describe_os_error(error)}. Finished parts are kept. Free some "
            "space there, or set CROSSGRAFT_CACHE to another folder, and run the same command again."
        ) from error


def refuse_to_replace(path: Path, is_ours: Callable[[bytes], bool], *, what: str, overwrite: bool = True) -> None:
    """Look before a file is written where the user said; a file without content has nothing to lose.

    Args:
        path: Where it is to be written; links are followed.
        is_ours: Whether this is the content of such a file.
        what: Such a file, for the message.
        overwrite: Whether one of ours may be replaced; none else is.

    Raises:
        UsageError: There is another file, or a folder; it stays as it is.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder, and {what} is one file. Choose a file with --out.")
    try:
        content = path.read_bytes() if path.is_file() else b""
    except OSError as error:
        raise UsageError(
            f"{path} is there and cannot be read, so that it is not replaced: {describe_os_error(error)}. Choose another file "
            "with --out."
        ) from error
    if content and not is_ours(content):
        raise UsageError(
            f"{path} is there and is not {what} of crossgraft, so that it is not replaced, whatever is asked. Choose another "
            "file with --out."
        )
    if content and not overwrite:
        raise UsageError(f"{path} holds {what} already. Choose another file, or replace it with overwrite=True (--overwrite).")


def refuse_to_replace_folder(
    folder: Path, names: Collection[str], is_ours: Callable[[Path], bool], *, what: str, overwrite: bool
) -> None:
    """Look before a folder is written as a whole where the user said; an empty one has nothing to lose.

    Args:
        folder: Where it is to be written; links are followed.
        names: All files that such a folder has.
        is_ours: Whether this folder, which has no other files, is one that crossgraft has written.
        what: Such a folder, for the message.
        overwrite: Whether one of ours may be replaced; none else is.

    Raises:
        RunDirectoryError: There is another folder, or a file; it stays as it is.
    """
    if not folder.is_dir():
        if folder.exists():
            raise RunDirectoryError(f"{folder} is a file. Choose another folder.")
        return
    there = sorted(path.name for path in folder.iterdir())
    if others := [name for name in there if name not in names]:
        raise RunDirectoryError(
            f"{folder} holds files that are not {what} ({others[0]}), which would be lost. Choose another folder."
        )
    if there and not is_ours(folder):
        raise RunDirectoryError(
            f"{folder} is there and is not {what} of crossgraft, so that it is not replaced, whatever is asked. Choose another "
            "folder."
        )
    if there and not overwrite:
        raise RunDirectoryError(
            f"{folder} holds {what} already. Choose another folder, or replace it with overwrite=True (--overwrite)."
        )
