"""Volumes of which several slices are images are read once, not once a slice."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from crossgraft.errors import UnreadableImageError

T = TypeVar("T")


@dataclass
class _Entry(Generic[T]):
    lock: threading.Lock = field(default_factory=threading.Lock)
    value: T | None = None
    problem: UnreadableImageError | None = None


class VolumeCache(Generic[T]):
    """The volumes that were used last; may be asked by several threads.

    Rows are read in order, so threads at work meet in one volume, or two at a border.

    Args:
        capacity: Volumes that are kept.
    """

    def __init__(self, capacity: int = 2) -> None:
        self.capacity = capacity
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry[T]] = OrderedDict()

    def get(self, key: Hashable, load: Callable[[], T]) -> T:
        """The volume ``key``; the first thread loads it while others wait. That it is unreadable is remembered, too.

        Raises:
            UnreadableImageError: ``load`` raised it.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            while len(self._entries) > self.capacity:
                self._entries.popitem(last=False)
        with entry.lock:
            if entry.problem is not None:
                raise UnreadableImageError(entry.problem.where, entry.problem.reason)
            if entry.value is None:
                try:
                    entry.value = load()
                except UnreadableImageError as error:
                    entry.problem = error
                    raise
            return entry.value
