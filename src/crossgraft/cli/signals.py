"""SIGTERM and SIGHUP end a command as Ctrl-C does: in order, with what was finished kept.

Only the command line sets these handlers; a program that imports crossgraft keeps its own.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

STOPPING = ("SIGTERM", "SIGHUP")  # of job schedulers, containers and systemd; of a terminal that is closed


class StopSignals:
    """Turns signals that ask a process to end into the exception of Ctrl-C, and remembers which one came.

    Attributes:
        received: Number of the first signal; None: none came.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._terminals = [stream.fileno() for stream in (sys.__stdout__, sys.__stderr__) if stream and stream.isatty()]

    def install(self) -> None:
        """Set the handlers; a signal that is ignored (``nohup``) stays so."""
        if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
            return
        for name in STOPPING:
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, self._stop)

    def exit_code(self, code: int, *, interrupted: int) -> int:
        """``code``, but 128 + number of the signal, as shells say it, where the command was interrupted by one."""
        return code if self.received is None or code != interrupted else 128 + self.received

    def _stop(self, number: int, _: FrameType | None) -> None:
        if self.received is None:
            self.received = number
        if number == getattr(signal, "SIGHUP", None):
            self._forget_terminals()
        raise KeyboardInterrupt

    def _forget_terminals(self) -> None:
        """The terminal is gone: what is still said goes nowhere, instead of failing in the middle of the end."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for terminal in self._terminals:
            os.dup2(nowhere, terminal)
        os.close(nowhere)
