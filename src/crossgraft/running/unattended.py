"""Runs that nobody waits for: jobs of a study, of which there may be thousands."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_UNATTENDED: ContextVar[bool] = ContextVar("unattended", default=False)


@contextmanager
def unattended() -> Generator[None]:
    """Inside, no page is drawn, no step is timed, and networks are kept in memory for the next run of the process.

    Numbers are the same; ``write_report`` draws the page at any time.
    """
    token = _UNATTENDED.set(True)
    try:
        yield
    finally:
        _UNATTENDED.reset(token)


def is_unattended() -> bool:
    """Whether nobody waits for this run."""
    return _UNATTENDED.get()
