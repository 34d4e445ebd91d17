"""The command ``crossgraft``: lazy commands, exit codes, errors as one paragraph.

Nothing here or in a command file may import torch, timm or scikit-learn at the top: ``--help`` must be quick.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Sequence

import click
import typer
from typer.core import TyperGroup
from typer.main import get_command

from crossgraft.errors import CrossgraftError
from crossgraft.version import __version__

EXIT_INTERNAL = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

COMMANDS = {
    "demo": "crossgraft.cli.demo",
    "rank": "crossgraft.cli.rank",
    "report": "crossgraft.cli.report",
    "list": "crossgraft.cli.list_plugins",
}


class LazyGroup(TyperGroup):
    """Imports the file of a command when the command is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs, in the order of a first visit."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one verb."""
        if cmd_name not in COMMANDS:
            return None
        command = get_command(importlib.import_module(COMMANDS[cmd_name]).app)
        command.name = cmd_name
        return command


app = typer.Typer(cls=LazyGroup, add_completion=True, no_args_is_help=True, rich_markup_mode=None)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"crossgraft {__version__}")
        raise typer.Exit


@app.callback()
def crossgraft(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Select, adapt and audit pretrained vision models for a small labelled image set.

    Example: crossgraft rank my_images/ --models mobilenetv2_100,resnet18

    Research use, not a medical device. Nothing is downloaded without --allow-download.
    """


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 ok, 1 internal, 2 usage, 3 data, 4 missing extra or weights, 130 interrupted."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(_run(arguments))


def _run(arguments: list[str]) -> int:
    debug = "--debug" in arguments
    try:
        outcome: object = get_command(app).main(args=arguments, prog_name="crossgraft", standalone_mode=False)
    except CrossgraftError as error:
        _complain(str(error), debug=debug)
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show(file=sys.stderr)
        return EXIT_USAGE
    except click.ClickException as error:
        _complain(_usage_message(error), debug=debug)
        return EXIT_USAGE
    except (KeyboardInterrupt, click.Abort):
        _complain("Interrupted. What was finished is kept; the same command goes on from there.", debug=False)
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last net: a bug must not end in a page of traceback
        _complain(f"Internal error: {type(error).__name__}: {error}. Run again with --debug and report it.", debug=debug)
        return EXIT_INTERNAL
    return outcome if isinstance(outcome, int) else 0


def _complain(message: str, *, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    typer.echo(f"Error: {message}", err=True)


def _usage_message(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if isinstance(context, click.Context) else "crossgraft"
    return f"{error.format_message()} Try: {path} --help"
