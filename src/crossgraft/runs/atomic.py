"""Files appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from crossgraft.errors import StorageError


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
        temporary.replace(path)
    except OSError as error:
        raise StorageError(
            f"Cannot write {path}: {error.strerror or error}. Free some space or choose another folder with --out."
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
    return path
