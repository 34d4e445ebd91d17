"""Files appear whole or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from crossgraft.errors import StorageError
from crossgraft.storage.temporaries import BEFORE, temporary_beside

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
    path: Path, content: str | bytes, *, advice: str = "Free some space or choose another folder with --out."
) -> Path:
    """Write to a temporary file in the same folder, then rename it over ``path``.

    Args:
        path: Folders above it are made.
        content: All of it.
        advice: Advice for the case that it cannot be written.

    Raises:
        StorageError: Disk full, no permission …; the temporary file is removed and an older ``path`` stays as it was.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(path) as temporary:
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
