"""What may take the place of a file that is there: only the same kind of file, that crossgraft has written, and when told to."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from crossgraft.errors import RunDirectoryError, UsageError
from crossgraft.storage.atomic import describe_os_error


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
        raise UsageError(
            f"{path} holds {what} already. Choose another file, or replace it with overwrite=True (--overwrite)."
        )


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
