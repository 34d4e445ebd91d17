"""SIGTERM and SIGHUP end a command as Ctrl-C does: in order, with what was finished kept.

Only the command line sets these handlers; a program that imports crossgraft keeps its own.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

from crossgraft.stopping import AskedToEnd, ask_to_end, asked_to_end

STOPPING = (
    "SIGTERM",
    "SIGHUP",
    "SIGINT",
)  # of job schedulers, containers and systemd; of a terminal that is closed; Ctrl-C


class StopSignals:
    """Turns signals that ask a process to end into the exception of Ctrl-C, and remembers which one came (see ``stopping``)."""

    def __init__(self) -> None:
        self._has_ended = False
        self._terminals = [stream.fileno() for stream in (sys.__stdout__, sys.__stderr__) if stream and stream.isatty()]

    def install(self) -> None:
        """Set the handlers; a signal that is ignored (``nohup``) stays so."""
        ask_to_end(None)
        if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
            return
        for name in STOPPING:
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, self._stop)

    def end(self) -> None:
        """The command has ended, and says so: what comes now changes nothing."""
        self._has_ended = True

    def exit_code(self, code: int) -> int:
        """128 + number of the signal, as shells say it, where one came while the command was at work; else ``code``."""
        received = asked_to_end()
        return code if received is None else 128 + received

    def _stop(self, number: int, _: FrameType | None) -> None:
        if number == getattr(signal, "SIGHUP", None):
            self._forget_terminals()
        if self._has_ended:
            return
        ask_to_end(number)
        raise AskedToEnd

    def _forget_terminals(self) -> None:
        """The terminal is gone: what is still said goes nowhere, instead of failing in the middle of the end."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for terminal in self._terminals:
            os.dup2(nowhere, terminal)
        os.close(nowhere)
