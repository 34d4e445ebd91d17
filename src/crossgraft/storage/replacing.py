"""What may take the place of a file that is there: only the same kind of file, that crossgraft has written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from crossgraft.errors import UsageError
from crossgraft.storage.atomic import describe_os_error


def refuse_to_replace(path: Path, is_ours: Callable[[bytes], bool], *, what: str) -> None:
    """Look before a file is written where the user said; a file without content has nothing to lose.

    Args:
        path: Where it is to be written; links are followed.
        is_ours: Whether this is the content of such a file.
        what: Such a file, for the message.

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
