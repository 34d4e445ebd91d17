"""Runs that nobody waits for: jobs of a study, of which there may be thousands, and what a process keeps from one to the next."""

from __future__ import annotations

from collections.abc import Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

T = TypeVar("T")
_UNATTENDED: ContextVar[bool] = ContextVar("unattended", default=False)


@contextmanager
def unattended() -> Generator[None]:
    """Inside, no page is drawn, no step is timed; networks and images are kept in memory for the next run of the process.

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


class Kept(Generic[T]):
    """What a process keeps of its runs for the next one; nothing outside of ``unattended``. Whoever gets it must not change it.

    Args:
        most: Largest sum of sizes, in whatever unit they are given. The oldest leave first.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._items: dict[Hashable, tuple[T, int]] = {}

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: Hashable) -> T | None:
        """What was kept under ``key``."""
        item = self._items.get(key) if is_unattended() else None
        return None if item is None else item[0]

    def keep(self, key: Hashable, item: T, size: int) -> T:
        """The item, which is kept if it has room."""
        if is_unattended() and size <= self.most:
            while self._items and size + sum(other for _, other in self._items.values()) > self.most:
                del self._items[next(iter(self._items))]
            self._items[key] = item, size
        return item

    def clear(self) -> None:
        """Forget everything."""
        self._items.clear()
