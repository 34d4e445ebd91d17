"""A guard inside the process: what data must never be able to start is recorded and stopped, wherever it is called from.

Audit hooks cannot be taken away again, so one is installed for the whole process and looks only while a guard is held.
"""

import os
import sys
from contextlib import contextmanager
from pathlib import Path

_STARTS_CODE = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "subprocess.Popen", "pickle.find_class")
_GOES_OUT = [
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.gethostbyaddr",
    "socket.sendto",
    "socket.sendmsg",
    "urllib.Request",
    "http.client.connect",
    "ftplib.connect",
    "smtplib.connect",
]
_TAKES_ONE_PATH = ("os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod", "shutil.rmtree")
_TAKES_TWO_PATHS = ("os.rename", "os.link", "os.symlink", "shutil.move")
_CHANGES_FILES = {**dict.fromkeys(_TAKES_ONE_PATH, 1), **dict.fromkeys(_TAKES_TWO_PATHS, 2)}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Forbidden(BaseException):
    """Not an ``Exception``: no handler of the program may swallow it."""


class Guard:
    """What was tried.

    Attributes:
        places: Folders that may be written into.
        forbidden: Names of audit events that are stopped.
        tried: What was stopped, in words.
    """

    def __init__(self, places, forbidden) -> None:
        self.places = [Path(place).resolve() for place in places]
        self.forbidden = frozenset(forbidden)
        self.tried: list[str] = []

    def see(self, event, arguments):
        if event in self.forbidden:
            self._stop(f"{event}{arguments!r}")
        if event == "open":
            path, mode, flags = arguments
            writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool((flags or 0) & _WRITING)
            if writes and not isinstance(path, int):
                self._check(event, path)
        elif event in _CHANGES_FILES:
            for path in arguments[: _CHANGES_FILES[event]]:
                self._check(event, path)

    def _check(self, event, path):
        if path is None or isinstance(path, int):
            return
        place = Path(os.path.realpath(os.fsdecode(path)))
        if not any(place.is_relative_to(allowed) for allowed in self.places):
            self._stop(f"{event}({str(path)!r})")

    def _stop(self, what):
        self.tried.append(what)
        raise Forbidden(what)


_guards: list[Guard] = []
_is_installed = False


def _hook(event, arguments):
    if _guards and (event in _CHANGES_FILES or event == "open" or event in _guards[-1].forbidden):
        guard = _guards.pop()  # what the guard itself does is not looked at
        try:
            guard.see(event, arguments)
        finally:
            _guards.append(guard)


@contextmanager
def guarded(*places, forbidden=(*_STARTS_CODE, *_GOES_OUT)):
    """Inside the block no process is started, no pickle names a callable, nobody goes out, and only ``places`` are written.

    Raises:
        AssertionError: Something was tried, even if the program went on from there.
    """
    global _is_installed
    if not _is_installed:
        sys.addaudithook(_hook)
        _is_installed = True
    guard = Guard([*places, "/dev"], forbidden)
    keeps_no_bytecode = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # a module's first import is no writing of the program
    _guards.append(guard)
    try:
        yield guard
    finally:
        _guards.pop()
        sys.dont_write_bytecode = keeps_no_bytecode
        assert guard.tried == [], guard.tried
