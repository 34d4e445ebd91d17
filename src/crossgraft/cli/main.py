"""The command ``crossgraft``: lazy commands, exit codes, errors as one paragraph.

Nothing here or in a command file may import torch, timm or scikit-learn at the top: ``--help`` must be quick.
"""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from crossgraft.cli.output import complain, harmless_messages, show
from crossgraft.cli.signals import StopSignals
from crossgraft.compute import is_out_of_memory
from crossgraft.errors import CrossgraftError, OutOfMemoryError, UnknownNameError, UsageError
from crossgraft.paths import shortened, why_impossible
from crossgraft.version import __version__

EXIT_INTERNAL = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

INTERRUPTED = "Interrupted. What was finished is kept; the same command goes on from there."

COMMANDS = {
    "demo": "crossgraft.cli.demo",
    "check": "crossgraft.cli.check",
    "rank": "crossgraft.cli.rank",
    "tune": "crossgraft.cli.tune",
    "predict": "crossgraft.cli.predict",
    "export": "crossgraft.cli.export",
    "report": "crossgraft.cli.report",
    "list": "crossgraft.cli.list_plugins",
}


class LazyGroup(TyperGroup):
    """Imports the file of a command when the command is named."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The verbs, in the order of a first visit."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import one verb.

        Raises:
            UnknownNameError: With the nearest verbs.
        """
        if cmd_name not in COMMANDS:
            raise UnknownNameError("command", cmd_name, COMMANDS, hint="Try: crossgraft --help")
        command = get_command(importlib.import_module(COMMANDS[cmd_name]).app)
        command.name = cmd_name
        return command


app = typer.Typer(cls=LazyGroup, invoke_without_command=True, rich_markup_mode=None)


def _show_version(wanted: bool) -> None:
    if wanted:
        show(f"crossgraft {__version__}")
        raise typer.Exit


@app.callback()
def crossgraft(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Select, adapt and audit pretrained vision models for a small labelled image set.

    Example: crossgraft rank my_images/ --models mobilenetv2_100,resnet18

    Research use, not a medical device. Nothing is downloaded without --allow-download.

    Exit codes: 0 done, 1 internal error or a file that cannot be written, 2 wrong usage, 3 data or checkpoint, 4 a package or
    weights are missing, 6 some of several trainings failed, 128 + the number of the signal when interrupted.
    """
    if context.invoked_subcommand is None:
        show(context.get_help())


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with one of the codes that ``crossgraft --help`` lists."""
    replace_unknown_characters(sys.stdout, sys.stderr)
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    signals = StopSignals()
    signals.install()
    sys.exit(signals.exit_code(main(arguments), interrupted=EXIT_INTERRUPTED))


def replace_unknown_characters(*streams: object) -> None:
    """Let a stream that can not show a character (code pages of Windows, plain ASCII) show "?" instead of failing."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def main(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code; for tests and programs that must not exit."""
    with harmless_messages():
        return _outcome(arguments)


def _outcome(arguments: Sequence[str]) -> int:
    debug = "--debug" in arguments
    try:
        outcome: object = get_command(app).main(args=list(arguments), prog_name="crossgraft", standalone_mode=False)
    except CrossgraftError as error:
        complain(str(error), error=error if debug else None)
        return error.exit_code
    except typer.TyperException as error:
        message = " ".join(error.format_message().split()).replace("Value error, ", "")  # pydantic's word for it
        message += "" if message.endswith((".", "?", "!")) else "."
        complain(f"{message} Try: {_command_path(error)} --help", error=error if debug else None)
        return EXIT_USAGE
    except (KeyboardInterrupt, typer.Abort):
        complain(INTERRUPTED)
        return EXIT_INTERRUPTED
    except Exception as error:
        if (named := _named(error)) is not None:
            complain(str(named), error=error if debug else None)
            return named.exit_code
        reason = " ".join(str(error).split())
        complain(
            f"Internal error: {type(error).__name__}: {reason}. Run again with --debug and report it.",
            error=error if debug else None,
        )
        return EXIT_INTERNAL
    if outcome == EXIT_INTERRUPTED:  # Typer turns Ctrl-C into this exit code
        complain(INTERRUPTED)
    return outcome if isinstance(outcome, int) else 0


def _named(error: Exception) -> CrossgraftError | None:
    """What can happen anywhere, in words: no memory is left, or a path that was typed cannot be one."""
    if is_out_of_memory(error):
        return OutOfMemoryError(
            "Not enough memory. Close other programs, use fewer images (--limit), fewer --workers or a smaller --batch-size; "
            "what was finished is kept."
        )
    if isinstance(error, OSError) and (reason := why_impossible(error)) is not None:
        return UsageError(f"A path cannot be used: {reason}: {shortened(str(error.filename))}. Give another path.")
    return None


def _command_path(error: typer.TyperException) -> str:
    return getattr(getattr(error, "ctx", None), "command_path", "crossgraft")
