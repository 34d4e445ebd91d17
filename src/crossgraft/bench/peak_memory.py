"""The most memory that this process had at once since a job began, as Linux counts it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_FORGET, _STATUS, _PEAK = Path("/proc/self/clear_refs"), Path("/proc/self/status"), "VmHWM:"
_OF_PEAKS = "5"
"""What makes the kernel count from now on."""


def begin_peak() -> bool:
    """Forget the peak until now; whether that is possible here."""
    with suppress(OSError):
        _FORGET.write_text(_OF_PEAKS)
        return True
    return False


def peak_bytes() -> int | None:
    """Resident memory at its peak since then, all that the process keeps from earlier jobs included; None: not known."""
    with suppress(OSError, ValueError, IndexError, StopIteration):
        line = next(line for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines() if line.startswith(_PEAK))
        return 1024 * int(line.split()[1])
    return None
