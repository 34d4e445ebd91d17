"""What is being written has a name that says by whom, so that what a killed process left behind can be removed.

A file or folder first lies beside its final place, as ``.NAME.MACHINE-PID-START-TOKEN.tmp``. Whoever writes the same name next,
or opens the same run, removes those whose process is gone.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

ABANDONED_SECONDS = 24 * 3600
"""Whether a process of another machine is alive cannot be seen; after so long without a change, what it wrote is given up."""

BEFORE = "before"
"""What a folder replaces waits under this name in the temporary one, and goes back if nothing takes its place."""

_NAME = re.compile(
    r"\.(?P<target>.+)\.(?P<machine>[0-9a-f]{6})-(?P<pid>[0-9a-f]+)-(?P<start>[0-9a-f]+)-[0-9a-f]{8}\.tmp"
)
_CLOCK_SECONDS = 2
"""The start of a process is computed from the start of the system, which a corrected clock moves."""


@contextmanager
def temporary_beside(path: Path) -> Generator[Path]:
    """A name in the folder of ``path``, for what is renamed to ``path`` when it is whole; what is still there then is removed.

    Leftovers of ``path`` by processes that were killed are removed first.
    """
    remove_leftovers(path.parent, of=path.name)
    temporary = path.with_name(f".{path.name}.{_owner()}.tmp")
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
    for entry in list(_entries(folder, recursive=recursive)):
        found = _NAME.fullmatch(entry.name)
        if found is None or found["target"] in (".", "..") or of not in (None, found["target"]):
            continue
        with suppress(OSError):
            if not _may_be_at_work(found, entry, locked=locked):
                _discard(entry, entry.with_name(found["target"]))


def _entries(folder: Path, *, recursive: bool) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        yield from (Path(place, name) for name in (*folders, *files))
        # What lies in a temporary folder goes with it.
        folders[:] = [name for name in folders if _NAME.fullmatch(name) is None] if recursive else []


def _may_be_at_work(found: re.Match[str], entry: Path, *, locked: bool) -> bool:
    if found["machine"] != _machine():
        return not locked and time.time() - entry.lstat().st_mtime < ABANDONED_SECONDS
    try:
        process = psutil.Process(int(found["pid"], 16))
        started, status = process.create_time(), process.status()
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
    return status != psutil.STATUS_ZOMBIE and abs(started - int(found["start"], 16)) <= _CLOCK_SECONDS


def _discard(temporary: Path, target: Path) -> None:
    """Remove a temporary file or folder; what was moved away for it goes back, if nothing has taken its place."""
    with suppress(OSError):
        if temporary.is_symlink() or not temporary.is_dir():
            temporary.unlink(missing_ok=True)
            return
        if (temporary / BEFORE).exists() and not target.exists():
            (temporary / BEFORE).rename(target)
        shutil.rmtree(temporary, ignore_errors=True)


def _owner() -> str:
    pid = os.getpid()
    return f"{_machine()}-{pid:x}-{int(psutil.Process(pid).create_time()):x}-{secrets.token_hex(4)}"


def _machine() -> str:
    """Short for the machine, or the container, in which a process number means one process."""
    try:
        numbers = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:  # not Linux
        numbers = 0
    return hashlib.sha256(f"{socket.gethostname()} {numbers}".encode()).hexdigest()[:6]
