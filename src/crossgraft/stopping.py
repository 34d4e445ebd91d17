"""Whether this process was asked to end by a signal.

The handler raises ``AskedToEnd`` wherever the program is. In an import, a callback or a destructor that gets lost, or
becomes another error. What the handler remembers is therefore looked at again where a stage ends, and when the command does.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

_received: list[int] = []


class AskedToEnd(KeyboardInterrupt):
    """A signal came.

    Of ``KeyboardInterrupt`` itself Python remembers that it left a text that is executed (``exec``, as in every dataclass), and
    ends ``python -m`` with the code of SIGINT, whoever caught it and whatever the program says.
    """


def ask_to_end(number: int | None) -> None:
    """Remember the first signal; None: forget it."""
    if number is None:
        _received.clear()
    elif not _received:
        _received.append(number)


def asked_to_end() -> int | None:
    """Number of the first signal; None: none came."""
    return _received[0] if _received else None


def end_if_asked() -> None:
    """Raise where the exception of the handler was lost.

    Raises:
        AskedToEnd: A signal came.
    """
    if _received:
        raise AskedToEnd


@contextmanager
def ending_if_asked() -> Generator[None]:
    """A stage of work that a signal ends, whatever became of its exception.

    Raises:
        AskedToEnd: A signal came.
    """
    try:
        yield
    except Exception:
        end_if_asked()
        raise
    end_if_asked()
