"""Files appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from crossgraft.errors import StorageError

# Windows refuses to replace or remove a file that any program has open. Virus scanners and search indexes open every new
# file for a moment, so a refusal is worth a few more tries; a spreadsheet or another run keeps the file for longer.
_WAITS_SECONDS = (0.05, 0.1, 0.2, 0.4, 0.8)


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
    """Remove a file that is of no more use; where another program has it open, it stays for the next time."""
    with suppress(PermissionError):
        path.unlink(missing_ok=True)


def describe_os_error(error: OSError) -> str:
    """Why a file could not be written, in the words of the system, and what that often means."""
    reason = error.strerror or str(error)
    return f"{reason} (is it open in another program?)" if isinstance(error, PermissionError) else reason


def write_atomically(path: Path, content: str | bytes) -> Path:
    """Write to a temporary file in the same folder, then rename it over ``path``.

    Raises:
        StorageError: Disk full, no permission …; the temporary file is removed and an older ``path`` stays as it was.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)  # mkstemp gives 0600, but a report is there to be shared
        replace_file(temporary, path)
    except OSError as error:
        raise StorageError(
            f"Cannot write {path}: {describe_os_error(error)}. Free some space or choose another folder with --out."
        ) from error
    finally:
        if temporary is not None:
            remove_if_free(temporary)
    return path


def replace_folder(folder: Path, content: Mapping[str, str | bytes]) -> None:
    """Write everything into a new folder beside, then put that in the place of the old one.

    Args:
        folder: Replaced with all that is in it; folders above it are made.
        content: Name of each file → what is in it.

    Raises:
        StorageError: A file can not be written; an older ``folder`` stays as it was.
        OSError: A folder can not be made or moved.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as beside:
        fresh = Path(beside, "fresh")
        for name, text in content.items():
            write_atomically(fresh / name, text)
        if folder.exists():
            folder.rename(Path(beside, "before"))
        fresh.rename(folder)
