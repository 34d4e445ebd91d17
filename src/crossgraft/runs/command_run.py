"""The run directory of one public function that was called with these arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, cast

from crossgraft.config import CONSENTS
from crossgraft.runs.command_line import command_line, display_value
from crossgraft.runs.run_directory import RunDirectory, open_run


def open_command_run(
    function: Callable[..., Any],
    command: str,
    *,
    data: str | Path,
    call: Mapping[str, object],
    resolved: Mapping[str, object],
    out: str | Path | None,
    overwrite: bool,
    before: Sequence[str] = (),
) -> AbstractContextManager[RunDirectory | None]:
    """Open ``out`` for a call of ``function``; None inside the block when nothing is to be written.

    Args:
        function: The public function, whose defaults say what was given.
        command: Its verb, for example ``rank``.
        data: Where the data are; absolute paths are reduced to their last part.
        call: Its arguments as they were given, with ``seed``.
        resolved: What they were resolved to; replaces entries of ``call`` in the configuration.
        out: Run directory, or None.
        overwrite: Remove an earlier run in ``out`` first.
        before: What stands in front of ``data`` on the command line; not part of the configuration.

    Raises:
        RunDirectoryError: ``out`` is in use or holds another run.
        StorageError: The folder can not be written.
    """
    if out is None:
        return nullcontext()
    settings = {"data": data, **call, **resolved}
    not_hashed = ("seed", *CONSENTS)  # what is allowed changes no number
    return open_run(
        Path(out),
        command=command,
        command_line=command_line(command, data, call, function, out=out, before=before),
        config={name: display_value(value) for name, value in settings.items() if name not in not_hashed},
        seed=cast(int, call["seed"]),
        overwrite=overwrite,
    )
