"""Questions about paths that people write. A path that no file can have (too long, a circle of links) is an answer, not a crash.

``Path.is_file`` and the like raise for names that the system does not allow; what is here does not.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from crossgraft.errors import CrossgraftError, UsageError

_MOST_CHARACTERS = 200

ALLOW_OR_ANOTHER = "Give this user access to it, or choose another path."
"""What to do where permission is denied."""


def is_file(path: Path) -> bool:
    """Whether the path leads to a file, perhaps through symbolic links."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether the path leads to a folder, perhaps through symbolic links."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def is_link(path: Path) -> bool:
    """Whether the path is a symbolic link, even one that leads nowhere."""
    try:
        return path.is_symlink()
    except (OSError, ValueError):
        return False


def read_whole(path: Path) -> bytes:
    """What is in a file. A pipe or a device, which a link in a folder of somebody else may lead to, may have no end.

    Raises:
        OSError: It is such a one, or cannot be read.
    """
    if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():  # the system has its own word for a folder
        raise OSError(errno.EINVAL, "It is a pipe or a device, not a file", str(path))
    return path.read_bytes()


def refuse_impossible(path: str | Path, *, what: str, kind: type[CrossgraftError]) -> None:
    """Raise for a path that cannot lead to anything; one where nothing is yet will do.

    Args:
        path: Path as it was written.
        what: Owner of the path, for the message: an argument or a flag.
        kind: The error to raise.

    Raises:
        CrossgraftError: The error is of the given ``kind``: the path is too long, or its symbolic links lead in a circle.
    """
    try:
        Path(path).stat()
    except ValueError as error:
        raise kind(f"{what} holds a character that no path can have: {shortened(repr(str(path)))}. Correct it.") from error
    except OSError as error:
        if (reason := why_impossible(error)) is not None:
            raise kind(f"{what} cannot be used: {reason}: {shortened(str(path))}. Give another path.") from error


def refuse_for_weights(folder: Path) -> None:
    """Raise, before hours of training, for a folder that safetensors cannot open a file in.

    Raises:
        UsageError: Its path is not UTF-8.
    """
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{shortened(str(folder))} can hold no weights: the path is not UTF-8. Choose another --out.") from error


def why_impossible(error: OSError) -> str | None:
    """What is wrong with the path itself, as a part of a sentence; None where the error is about something else."""
    if error.errno == errno.ELOOP:
        return "its symbolic links lead in a circle"
    return "its name is longer than the system allows" if error.errno == errno.ENAMETOOLONG else None


def shortened(path: str) -> str:
    """A path for a message; of a very long one the beginning, and how long it is.

    >>> shortened("scans/1.png"), len(shortened("x" * 5000))
    ('scans/1.png', 220)
    """
    return path if len(path) <= _MOST_CHARACTERS else f"{path[:_MOST_CHARACTERS]}… ({len(path):,} characters)"


def real_path(path: str | Path) -> Path:
    """Where a path leads when all links are followed; of what does not exist, where it would be."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:  # a NUL: no file can be called so, thus there is no link to follow
        return Path(os.path.normpath(Path.cwd() / path))
