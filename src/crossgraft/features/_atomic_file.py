"""Files that appear whole or not at all, safe against a kill and against a second process doing the same."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import psutil

from crossgraft.errors import StorageError
from crossgraft.runs.atomic import describe_os_error, remove_if_free, replace_file


@contextmanager
def atomic_file(path: Path) -> Generator[BinaryIO]:
    """Write to a temporary file beside ``path``; it takes its name only after everything is on the disk.

    Raises:
        StorageError: Disk full, no permission …; the temporary file is gone, an older ``path`` is as it was.
    """
    owner = f"{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}"
    temporary = path.with_name(f".{path.name}.{owner}.tmp")
    try:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            replace_file(temporary, path)
        finally:
            remove_if_free(temporary)
    except OSError as error:
        raise StorageError(
            f"Cannot write features into {path.parent}: {describe_os_error(error)}. Finished parts are kept. Free some "
            "space there, or set CROSSGRAFT_CACHE to another folder, and run the same command again."
        ) from error


def remove_leftovers(folder: Path) -> None:
    """Delete temporary files whose process on this machine was killed before it could."""
    for path in folder.glob(".*.tmp"):
        host, _, rest = path.name.removesuffix(".tmp").rpartition(".")[0].rpartition(".")
        if host.endswith(f".{socket.gethostname()}") and rest.isdigit() and not psutil.pid_exists(int(rest)):
            remove_if_free(path)
