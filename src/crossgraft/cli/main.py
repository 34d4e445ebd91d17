"""The command ``crossgraft``: exit codes, and errors as one paragraph.

Nothing here or in a file of ``cli`` may import numpy, torch, timm or scikit-learn at the top: ``--help`` must be quick.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import MutableMapping, Sequence
from types import FrameType
from typing import TextIO

from crossgraft.cli.call import Call
from crossgraft.cli.help_pages import command_page, main_page
from crossgraft.cli.output import complain, drop_unread, harmless_messages, show
from crossgraft.errors import CrossgraftError, OutOfMemoryError, UnknownNameError, UsageError
from crossgraft.options.command import COMMANDS
from crossgraft.paths import ALLOW_OR_ANOTHER, shortened, why_impossible
from crossgraft.running.plugin_errors import naming_plugins
from crossgraft.stopping import AskedToEnd, ask_to_end, asked_to_end, ending_if_asked
from crossgraft.version import __version__

# SIGTERM and SIGHUP end a command as Ctrl-C does: in order, with what was finished kept.
#
# Only the command line sets these handlers; a program that imports crossgraft keeps its own.

STOPPING = ("SIGTERM", "SIGHUP", "SIGINT")  # of job schedulers, containers and systemd; of a terminal that is closed; Ctrl-C


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
        if sys.unraisablehook is sys.__unraisablehook__:
            sys.unraisablehook = tell_of_what_is_lost

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


def tell_of_what_is_lost(lost: sys.UnraisableHookArgs) -> None:
    """As Python does, but for a signal that came in a destructor or in compiled code that cannot raise: it is remembered."""
    if not isinstance(lost.exc_value, AskedToEnd):
        sys.__unraisablehook__(lost)


EXIT_INTERNAL = 1
EXIT_INTERRUPTED = 130

INTERRUPTED = "Interrupted. What was finished is kept; the same command goes on from there."

_HELP = ("--help", "-h")
_HELP_ALL = "--help-all"


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with one of the codes that ``crossgraft --help`` lists."""
    replace_unknown_characters(sys.stdout, sys.stderr)
    let_threads_sleep(os.environ)
    atexit.register(end_quickly)
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    signals = StopSignals()
    try:
        signals.install()
        code = main(arguments)
        signals.end()
    except KeyboardInterrupt:  # another signal, while the first one was being said; or one at the very end
        signals.end()
        code = EXIT_INTERRUPTED
    code = signals.exit_code(code)
    drop_unread(sys.stdout, sys.stderr)
    sys.exit(code)


def end_quickly() -> None:
    """Keep Python from looking through all of torch for cycles when it ends, which takes 1.5 CPU seconds.

    Triton, which comes with torch for CUDA, counts what was not taken apart then, and prints dozens of lines about it.
    """
    gc.freeze()
    if "triton" in sys.modules and sys.stderr is not None:  # None: a program without a terminal
        silence_from_here(sys.stderr)


def silence_from_here(stream: TextIO) -> None:
    """Let nothing be seen that is written to the file below a stream, by whatever library; one without a file stays."""
    with contextlib.suppress(OSError, ValueError):  # closed, or in memory
        stream.flush()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def replace_unknown_characters(*streams: object) -> None:
    """Let a stream that cannot show a character (code pages of Windows, plain ASCII) show "?" instead of failing."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def let_threads_sleep(environment: MutableMapping[str, str]) -> None:
    """Let threads that wait for each other leave the core, unless the user has said how they wait.

    By default those of OpenMP go round in circles for milliseconds after each layer. Where another program wants the core,
    the thread that they wait for has to wait for them, and a step takes many times as long, now and then. It has to be said
    before torch is imported, and changes no number.
    """
    if not any(name in environment for name in _HOW_THREADS_WAIT):
        environment["OMP_WAIT_POLICY"] = "passive"


_HOW_THREADS_WAIT = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def main(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code; for tests and programs that must not exit."""
    with harmless_messages():
        code = _outcome(arguments)
        if asked_to_end() is not None and code != EXIT_INTERRUPTED:  # whatever became of the exception of its handler
            complain(INTERRUPTED)
            return EXIT_INTERRUPTED
        return code


def _outcome(arguments: Sequence[str]) -> int:
    debug = "--debug" in arguments
    try:
        with ending_if_asked(), naming_plugins():
            return _run(arguments)
    except CrossgraftError as error:
        complain(str(error), error=error if debug else None)
        return error.exit_code
    except KeyboardInterrupt:
        complain(INTERRUPTED)
        return EXIT_INTERRUPTED
    except Exception as error:
        if (named := _named(error)) is not None:
            complain(str(named), error=error if debug else None)
            return named.exit_code
        reason = " ".join(str(error).split())
        notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
        complain(
            f"Internal error: {type(error).__name__}: {reason}.{notes} Run again with --debug and report it.",
            error=error if debug else None,
        )
        return EXIT_INTERNAL


def _run(arguments: Sequence[str]) -> int:
    """Show a page, or do what a command says."""
    name, words = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    flags = words[: words.index("--")] if "--" in words else words
    if name in (*_HELP, _HELP_ALL):
        show(main_page(COMMANDS))
    elif name == "--version":
        show(f"crossgraft {__version__}")
    elif name not in COMMANDS:
        raise UnknownNameError("command", name, COMMANDS.names(), hint="Try: crossgraft --help")
    elif _HELP_ALL in flags or any(flag in flags for flag in _HELP):
        show(command_page(COMMANDS.get(name), everything=_HELP_ALL in flags))
    else:
        from crossgraft.cli.call import parse

        command = COMMANDS.get(name)
        typed = parse(command, words)
        inputs = {input_.name: typed.pop(input_.name, None) for input_ in command.inputs}
        return Call(inputs, typed).do(command)
    return 0


def _named(error: Exception) -> CrossgraftError | None:
    """What can happen anywhere, in words: no memory is left, a path that was typed cannot be one, or nobody may read it."""
    from crossgraft.compute import is_out_of_memory

    if is_out_of_memory(error):
        return OutOfMemoryError(
            "Not enough memory. Close other programs, use fewer images (--limit), fewer --workers or a smaller --batch-size; "
            "what was finished is kept."
        )
    if isinstance(error, OSError) and (reason := why_impossible(error)) is not None:
        return UsageError(f"A path cannot be used: {reason}: {shortened(str(error.filename))}. Give another path.")
    if isinstance(error, PermissionError) and error.filename is not None:
        return UsageError(f"Permission denied: {shortened(str(error.filename))}. {ALLOW_OR_ANOTHER}")
    return None
