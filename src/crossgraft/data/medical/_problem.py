"""What stands in the way of reading one medical file, and the error that names the file."""

from __future__ import annotations

import gzip
import zlib
from types import TracebackType

from crossgraft.data._pillow_files import quiet_libraries
from crossgraft.errors import CrossgraftError, OutOfMemoryError, UnreadableImageError
from crossgraft.paths import why_impossible


class UnreadableFileError(ValueError):
    """Why a file cannot be read, as the end of the sentence "Cannot read the image …: "."""


class named_problems:  # noqa: N801 - read as `with named_problems(where):`
    """Turn whatever goes wrong in a block into an UnreadableImageError that names the file; remarks are not shown.

    Args:
        where: Name of the file.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self._quiet = quiet_libraries()

    def __enter__(self) -> None:
        """What matters of the remarks of pydicom and nibabel is said in a notice or an error of our own."""
        self._quiet.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Raise the named error, unless all went well or the error is named already."""
        self._quiet.__exit__(kind, error, traceback)
        if isinstance(error, OutOfMemoryError):
            raise UnreadableImageError(self.where, str(error).removesuffix(".")) from error
        if isinstance(error, Exception) and not isinstance(error, CrossgraftError):
            raise UnreadableImageError(self.where, _reason(error)) from error


def _reason(error: Exception) -> str:
    if isinstance(error, UnreadableFileError):
        return str(error)
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "permission is denied"
    if isinstance(error, OSError) and (reason := why_impossible(error)) is not None:
        return reason
    if isinstance(error, IsADirectoryError):
        return "it is a folder"
    if isinstance(error, MemoryError):
        return "not enough memory to decode it"
    if isinstance(error, EOFError):
        return "the file is truncated"
    if isinstance(error, zlib.error | gzip.BadGzipFile):
        return f"its compression is damaged ({error})"
    # On a damaged header pydicom and nibabel raise nearly anything. What they say may quote the header and with it the
    # patient, so only the kind of error is passed on.
    return f"the file is damaged ({type(error).__name__})"
