"""The list of the files that a run wrote, so that --overwrite removes those only."""

from __future__ import annotations

from pathlib import Path

from crossgraft.errors import DataError, StorageError
from crossgraft.paths import read_whole
from crossgraft.records import RunRecord
from crossgraft.storage.atomic import describe_os_error

WRITTEN = ".files"
"""Name of the list."""


def written_files(path: Path) -> list[str]:
    """The names in the list of what a run wrote; empty lines are none."""
    listing = path / WRITTEN
    try:
        return [name for name in read_whole(listing).decode("utf-8").splitlines() if name]
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"Cannot read {listing}: {error}. Remove the folder by hand, or choose another --out."
        ) from error


def remove_written(path: Path) -> None:
    """Remove what the earlier run wrote, and nothing that somebody put beside it.

    Raises:
        DataError: The list of its files names one outside of the folder; nothing was removed.
        StorageError: A file cannot be removed.
    """
    files = [_inside(path, name) for name in written_files(path)]
    for file in [*files, path / "report.html", path / "run.json", path / WRITTEN]:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:  # on Windows a file that a program has open cannot be removed
            raise StorageError(f"Cannot remove {file}: {describe_os_error(error)}.") from error


def _inside(path: Path, name: str) -> Path:
    """The file of this name in the folder; the list is data, which may have come with the folder from anywhere."""
    file = path / name
    try:
        stays = file.parent.resolve().is_relative_to(path.resolve()) and file.name != ".." and "\0" not in name
    except (OSError, ValueError, RuntimeError):  # a loop of links, a NUL
        stays = False
    if not stays:
        raise DataError(
            f"{path / WRITTEN} lists {name!r}, which is not in the folder of the run, so nothing was removed. A run lists its "
            "own files only: somebody changed the list. Remove the folder by hand, or choose another --out."
        )
    return file


def is_of_a_beginning(name: str) -> bool:
    """Whether a run leaves a file of this name that is stopped before its first ``run.json``: disk full, power cut."""
    return name in (".lock", WRITTEN) or name.startswith((f".{WRITTEN}.", ".run.json."))


def is_without_result(path: Path, record: RunRecord) -> bool:
    """Whether the run stopped before it wrote anything that could be gone on with, for example at a typo."""
    return record.state != "done" and {entry.name for entry in path.iterdir()} <= {".lock", WRITTEN, "run.json"}
