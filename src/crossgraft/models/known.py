"""What was found out about a network by running it, kept for the next one that is the same to the last bit."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")
_MOST = 64


class Known(Generic[T]):
    """Findings by what decides them: a process that trains one network many times finds out once where its head is.

    Of the last 64 networks; findings hold no tensors.
    """

    def __init__(self) -> None:
        self._findings: dict[Hashable, T] = {}

    def get(self, key: Hashable | None) -> T | None:
        """The finding for ``key``; None where there is none, or no key."""
        return self._findings.get(key)

    def keep(self, key: Hashable | None, finding: T) -> T:
        """Remember and return it; one without a key is not kept."""
        if key is not None:
            while len(self._findings) >= _MOST:
                del self._findings[next(iter(self._findings))]
            self._findings[key] = finding
        return finding
