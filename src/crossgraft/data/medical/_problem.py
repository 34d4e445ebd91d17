"""What stands in the way of reading one medical file, and the error that names the file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Generator
from contextlib import contextmanager

from crossgraft.data._pillow_files import quiet_libraries
from crossgraft.errors import CrossgraftError, OutOfMemoryError, UnreadableImageError
from crossgraft.paths import why_impossible


class UnreadableFileError(ValueError):
    """Why a file cannot be read, as the end of the sentence "Cannot read the image …: "."""


@contextmanager
def named_problems(where: str) -> Generator[None]:
    """Turn whatever goes wrong in a block into an UnreadableImageError that names the file.

    Remarks are not shown: what matters of those of pydicom and nibabel is said in a notice or an error of our own.

    Args:
        where: Name of the file.
    """
    try:
        with quiet_libraries():
            yield
    except OutOfMemoryError as error:
        raise UnreadableImageError(where, str(error).removesuffix(".")) from error
    except CrossgraftError:
        raise
    except Exception as error:
        raise UnreadableImageError(where, _reason(error)) from error


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
