"""What to say when a location is not a data set."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from crossgraft.data.decoding import IMAGE_EXTENSIONS
from crossgraft.data.medical.formats import MEDICAL_EXTENSIONS, file_extension
from crossgraft.errors import DataError, nearest_names

_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")


def location_error(location: str, descriptions: Iterable[str]) -> DataError:
    """The error for a location that no source accepts.

    Args:
        location: Location as the user wrote it.
        descriptions: Descriptions of what the sources can open, for the message.
    """
    path = Path(location)
    if not path.exists():
        return DataError(_missing(location, path))
    suffix = file_extension(path.name)
    if suffix in _ARCHIVES:
        return DataError(f"{location} is an archive. Unpack it and give the folder or the table inside.")
    if suffix in (*IMAGE_EXTENSIONS, *MEDICAL_EXTENSIONS):
        return DataError(f"{location} is one image. Give the folder that holds one sub-folder per class.")
    return DataError(f"{location} is not a kind of data that can be opened. Data can be: {'; '.join(descriptions)}.")


def _missing(location: str, path: Path) -> str:
    what = "file" if path.suffix else "folder"
    parent = path.parent
    if not parent.is_dir():
        return f"No such {what}: {location}. There is no folder {parent} either."
    siblings = [entry.name for entry in parent.iterdir() if not entry.name.startswith(".")]
    known = [*siblings, "digits"] if location == path.name else siblings
    alike = [name for name in known if Path(name).suffix.casefold() == path.suffix.casefold()]
    near = nearest_names(path.name, alike) or nearest_names(path.name, known)
    if not near:
        return f"No such {what}: {location}."
    shown = [name if location == path.name else str(parent / name) for name in near]
    return f"No such {what}: {location}. Did you mean {' or '.join(shown)}?"
