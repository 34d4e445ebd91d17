"""The pages of ``--help`` and ``--help-all``: plain text that fits the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, get_origin

from crossgraft.options._option import Option
from crossgraft.options.command import Command, Input, typed_as
from crossgraft.words.text_table import sentence_width

_INDENT = "  "
_WIDEST = 26
"""Columns of names and flags; a longer one has a line of its own."""
_LEAST_TEXT = 24
"""Columns that sentences get beside names; where there are fewer, they stand below them."""
_FEW = 12
"""So many options are shown at once."""
_MARKS = {str: "TEXT", Path: "PATH", int: "N", float: "X"}

HELP_FLAGS = {
    "--help, -h": "Show the options that most people need, and exit.",
    "--help-all": "Show all options, with what they mean and their defaults, and exit.",
}
EXIT_CODES = {
    "0": "done",
    "1": "internal error, or a file could not be written",
    "2": "wrong usage: a flag, a name, a configuration, a run directory",
    "3": "a problem in the data or in a checkpoint",
    "4": "a package or a file of weights is missing",
    "5": "a condition of audit --fail-on holds, or nothing could be assessed",
    "6": "some trainings of several failed, the others are done",
    "128 + signal": "interrupted: 129 by a terminal that was closed, 130 by Ctrl-C, 143 by SIGTERM",
}

Rows = Sequence[tuple[str, str]]


def main_page(commands: Iterable[tuple[str, Command]]) -> str:
    """What ``crossgraft --help`` shows."""
    flags = {"--version": "Show the version and exit.", "--help, -h": "Show this page and exit."}
    return _page(
        "Usage: crossgraft COMMAND …",
        _paragraph("Select, adapt and audit pretrained vision models for a small labelled image set."),
        _paragraph("Example: crossgraft rank my_images/ --models mobilenetv2_100,resnet18"),
        _paragraph("Research use, not a medical device. Nothing is downloaded without --allow-download."),
        _section("Commands", [(name, command.summary) for name, command in commands]),
        _section("Options", list(flags.items())),
        _section("Exit codes", list(EXIT_CODES.items())),
        _paragraph("crossgraft COMMAND --help shows the options of a command.", indent=""),
    )


def command_page(command: Command, *, everything: bool) -> str:
    """What ``--help`` of one command shows.

    Args:
        command: Command to describe.
        everything: All options with their sentences, instead of those that most people need.
    """
    groups = _by_group(command)
    if everything or len(command.flags) <= _FEW:
        options = [_section(group, _rows(command, members)) for group, members in groups.items()]
    else:
        common = [option for option in command.flags.values() if option.about.is_common or command.is_required(option)]
        others = {group: [option for option in members if option not in common] for group, members in groups.items()}
        names = [(f"{group}:", ", ".join("/".join(_names(option)) for option in rest)) for group, rest in others.items() if rest]
        options = [_section("Common options", _rows(command, common)), _section("More options, described by --help-all", names)]
    return _page(
        " ".join(["Usage: crossgraft", command.name, *map(_usage, command.inputs), "[OPTIONS]"]),
        _paragraph(command.summary),
        _paragraph(f"Example: crossgraft {command.example}"),
        _paragraph(command.notes),
        _section("Arguments", [(input_.metavar, input_.help) for input_ in command.inputs]),
        *options,
        _section("Help", list(HELP_FLAGS.items())),
    )


def _by_group(command: Command) -> dict[str, list[Option]]:
    groups: dict[str, list[Option]] = {}
    for option in command.flags.values():
        groups.setdefault(option.group, []).append(option)
    return groups


def _rows(command: Command, options: Iterable[Option]) -> Rows:
    return [(_flag(option), _sentence(option, is_required=command.is_required(option))) for option in options]


def _names(option: Option) -> list[str]:
    return [option.flag] if option.off_flag is None else [option.flag, option.off_flag]


def _flag(option: Option) -> str:
    kind = typed_as(option)
    if kind is bool:
        return " / ".join(_names(option))
    mark = "NAME" if get_origin(kind) is Literal else _MARKS[kind]
    return f"{option.flag} {mark}{' …' if option.about.repeats else ''}"


def _sentence(option: Option, *, is_required: bool) -> str:
    """What it is, its default and its least value."""
    about, default = option.about, option.default
    shown = option.flag if default is True else str(default)
    conditions = {
        "required": is_required,
        f"default: {about.default_text or shown}": about.default_text is not None
        or not (option.is_required or default is None or default is False or default == ()),
        f"at least {about.least}": about.least is not None,
    }
    facts = "; ".join(fact for fact, holds in conditions.items() if holds)
    return f"{about.help} [{facts}]" if facts else about.help


def _usage(input_: Input) -> str:
    word = f"{input_.metavar} …" if input_.repeats else input_.metavar
    return word if input_.is_required else f"[{word}]"


def _page(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _paragraph(text: str, *, indent: str = _INDENT) -> str:
    return _filled(text, first=indent, rest=indent) if text else ""


def _section(title: str, rows: Rows) -> str:
    """A heading, and below it a name with its sentence per row."""
    if not rows:
        return ""
    column = min(_WIDEST, max(len(name) for name, _ in rows)) + 2 * len(_INDENT)
    if sentence_width() - column < _LEAST_TEXT:
        column = 3 * len(_INDENT)
    lines: list[str] = []
    for name, text in rows:
        first = f"{_INDENT}{name}".ljust(column)
        if len(first) > column:
            lines, first = [*lines, first], ""
        lines.append(_filled(text, first=first or " " * column, rest=" " * column))
    return "\n".join([f"{title}:", *lines])


def _filled(text: str, *, first: str, rest: str) -> str:
    return textwrap.fill(
        text, sentence_width(), initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
