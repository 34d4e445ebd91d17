"""Everything that a command writes to the terminal passes here or through ``Reporter``, and steers no terminal."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import traceback
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TextIO

from crossgraft.errors import CrossgraftWarning
from crossgraft.words.visible import visible


def show(text: str) -> None:
    """A text of our own layout on stdout; its line breaks stay, those of names were escaped as they were put in."""
    _print(visible(text, keep="\n"))


def is_terminal() -> bool:
    """Whether stdout is a terminal; a program that was started without one (``>&-``) has None there."""
    return sys.stdout is not None and sys.stdout.isatty()


def print_json(document: str) -> None:
    """One JSON document on stdout; what the stream or a person cannot see is escaped, so that the document stays whole."""
    document = visible(document, keep="\n", escape=_json_escape)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        document.encode(encoding)
    except UnicodeEncodeError:
        document = re.sub(r"[^\x00-\x7f]", lambda match: _json_escape(match[0]), document)
    _print(document)


def _print(text: str) -> None:
    """On stdout; what nobody reads any more (``crossgraft … | head -1``) is dropped, because the work itself is done."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        drop(sys.stdout)


def drop(stream: TextIO) -> None:
    """From now on, what is written goes nowhere; otherwise Python would complain at its end about what is left."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def drop_unread(*streams: TextIO | None) -> None:
    """``drop`` the streams whose readers are gone."""
    for stream in streams:
        if stream is None:
            continue
        try:
            stream.flush()
        except BrokenPipeError:
            drop(stream)


def _json_escape(character: str) -> str:
    # The standard library takes DEL for a character that can be seen.
    return json.dumps(character)[1:-1] if character != "\x7f" else "\\u007f"


def complain(message: str, *, error: BaseException | None = None) -> None:
    """An error as one paragraph on stderr, after the traceback of ``error`` if that was asked for."""
    traced = "" if error is None else "".join(map(_part_of_traceback, traceback.format_exception(error)))
    try:
        print(f"{traced}Error: {visible(message)}", file=sys.stderr, flush=True)
    except BrokenPipeError:
        drop(sys.stderr)


@contextmanager
def harmless_messages() -> Generator[None]:
    """While a command runs, warnings and log records of libraries, which may quote headers of files, are escaped too."""
    format_warning, make_record = warnings.formatwarning, logging.getLogRecordFactory()

    def visible_warning(message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any) -> str:
        if issubclass(category, CrossgraftWarning):  # where in our code it is raised helps nobody
            return visible(f"Warning: {message}") + "\n"
        return visible(format_warning(message, category, *args, **kwargs), keep="\n")

    def visible_record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make_record(*args, **kwargs)
        message = record.getMessage  # composed when a handler asks for it
        record.getMessage = lambda: visible(message(), keep="\n")
        return record

    warnings.formatwarning = visible_warning
    logging.setLogRecordFactory(visible_record)
    try:
        yield
    finally:
        warnings.formatwarning = format_warning
        logging.setLogRecordFactory(make_record)


def _part_of_traceback(text: str) -> str:
    """A frame keeps its lines, and so does the message of a library; one of ours is a paragraph that quotes names."""
    if text.startswith("crossgraft.errors."):
        return visible(text.removesuffix("\n")) + "\n"
    return visible(text, keep="\n")
