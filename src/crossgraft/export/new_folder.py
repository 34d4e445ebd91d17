"""A folder that appears whole or not at all."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import ValidationError

from crossgraft.errors import CrossgraftError, RunDirectoryError, StorageError
from crossgraft.export.record import ExportRecord
from crossgraft.storage.atomic import describe_os_error, folder_beside
from crossgraft.storage.temporaries import remove_leftovers

RECORD_FILE = "export.json"
"""In every export; says that a folder may be replaced by another one."""


def refuse_existing(out: Path, *, overwrite: bool) -> None:
    """Look before the work is done; what a killed export left beside ``out`` is removed.

    Raises:
        RunDirectoryError: ``out`` is there, and is not to be replaced or is no export.
    """
    remove_leftovers(out.parent, of=out.name)
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / RECORD_FILE).is_file():
        raise RunDirectoryError(f"{out} holds files that are not an export. Choose another folder with --out.")
    if not overwrite:
        raise RunDirectoryError(f"{out} holds an export already. Use --overwrite to replace it, or another --out.")
    known = _files_of(out / RECORD_FILE)
    if others := sorted(entry.name for entry in out.iterdir() if entry.name not in known):
        raise RunDirectoryError(
            f"{out} holds {others[0]} beside an export, which would be lost with it. Move it, or choose another --out."
        )


def _files_of(record: Path) -> set[str]:
    try:
        files = ExportRecord.model_validate_json(record.read_bytes()).files
    except (OSError, ValidationError) as error:
        raise RunDirectoryError(
            f"{record} is no record of an export, so that the folder is not replaced. Choose another --out."
        ) from error
    return {RECORD_FILE, *(file.name for file in files)}


@contextmanager
def new_folder(out: Path) -> Generator[Path]:
    """A folder to write into, beside ``out``; takes its place when the block ends well, and is removed when it does not.

    Raises:
        StorageError: It cannot be written; an older ``out`` stays as it was.
    """
    missing = [folder for folder in out.parents if not folder.exists()]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with folder_beside(out) as fresh:
            yield fresh
    except BaseException as error:
        for folder in missing:
            with suppress(OSError):  # not empty: somebody else uses it
                folder.rmdir()
        if isinstance(error, OSError) and not isinstance(error, CrossgraftError):
            raise StorageError(
                f"Cannot write the export into {out}: {describe_os_error(error)}. Free some space or choose another --out."
            ) from error
        raise
