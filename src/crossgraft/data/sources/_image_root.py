"""Images that data name lie below one folder, unless the user allows others: a strange table opens no file of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from crossgraft.errors import DataError
from crossgraft.paths import real_path, shortened

_NAMES_IN_MESSAGE = 5


class ImageRoot:
    """Folders that images must be in, looked up once each; symbolic links count as what they lead to.

    Args:
        folders: Any of them will do.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = [real_path(folder) for folder in folders]
        self._known: dict[Path, bool] = {}

    def holds_folder(self, folder: Path) -> bool:
        """Whether this folder lies inside, or is one of them. It need not exist."""
        if folder not in self._known:
            self._known[folder] = self._holds(folder)
        return self._known[folder]

    def holds_file(self, path: Path, *, is_link: bool) -> bool:
        """Whether this file, and what it leads to, lies inside."""
        return self.holds_folder(path.parent) and (not is_link or self._holds(path))

    def _holds(self, path: Path) -> bool:
        real = real_path(path)
        return any(real.is_relative_to(folder) for folder in self._folders)


def refuse_outside(
    names: Sequence[str], outside: Sequence[int], *, root: str, of_what: str, row_name: Callable[[int], str]
) -> None:
    """Raise if images lie outside of the folder that they must be in.

    Args:
        names: Path of each row as it is written.
        outside: Rows whose image lies outside.
        root: Name of the folder.
        of_what: Kind of the data that name the images.
        row_name: Function that names row i in messages.

    Raises:
        DataError: There are such rows; the first ones are named.
    """
    if not outside:
        return
    verb = "is" if len(outside) == 1 else "are"
    raise DataError(
        f"{len(outside)} of {len(names)} image files {verb} not in {root}, where the images of {of_what} must be: "
        f"{listed_rows(names, outside, row_name)}. Correct the paths, or pass --allow-outside if these files are meant."
    )


def listed_rows(names: Sequence[str], rows: Sequence[int], row_name: Callable[[int], str]) -> str:
    """The first of some rows, each with the path that it names."""
    shown = "; ".join(f"{shortened(names[row]) or '(empty)'} in {row_name(row)}" for row in rows[:_NAMES_IN_MESSAGE])
    return shown + (f"; and {len(rows) - _NAMES_IN_MESSAGE} more" if len(rows) > _NAMES_IN_MESSAGE else "")
