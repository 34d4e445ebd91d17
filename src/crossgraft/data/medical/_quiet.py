"""Keep the remarks of pydicom from the terminal: what matters of them is said in a notice or an error of our own."""

from __future__ import annotations

import threading
import warnings
from contextlib import ExitStack
from types import TracebackType

_lock = threading.Lock()
_restore = ExitStack()
_inside: list[int] = []  # the threads that are in a quiet block


class quiet_pydicom:  # noqa: N801 - read as `with quiet_pydicom():`
    """Ignore warnings of pydicom in this block.

    The list of filters belongs to the whole process, so threads must not save and restore it across each other: the
    first that enters sets the filter, and the last that leaves takes it back.
    """

    def __enter__(self) -> None:
        """Set the filter, if it is not set."""
        with _lock:
            if not _inside:
                _restore.enter_context(warnings.catch_warnings())
                warnings.filterwarnings("ignore", module=r"pydicom(\.|$)")
            _inside.append(threading.get_ident())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Take the filter back, if nobody else needs it."""
        with _lock:
            _inside.remove(threading.get_ident())
            if not _inside:
                _restore.close()
