"""Files that appear whole or not at all, safe against a kill and against a second process doing the same."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from crossgraft.errors import StorageError
from crossgraft.storage.atomic import describe_os_error, replace_file
from crossgraft.storage.temporaries import temporary_beside


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
