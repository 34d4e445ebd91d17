"""The run directory of one call of a verb."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from crossgraft.config import CONSENTS
from crossgraft.running.command_line import display_value
from crossgraft.running.run_directory import RunDirectory, open_run


def open_command_run(
    command: str,
    *,
    command_line: str,
    data: str | Path,
    typed: Mapping[str, object],
    resolved: Mapping[str, object],
    out: str | Path | None,
    overwrite: bool,
    seed: int,
) -> AbstractContextManager[RunDirectory | None]:
    """Open ``out`` for a call of a verb; None inside the block when nothing is to be written.

    Args:
        command: Name of the verb, for example ``rank``.
        command_line: What gives the same run again.
        data: Where the data are; absolute paths are reduced to their last part.
        typed: Options that may change a number, as a command line gives them.
        resolved: What they were resolved to; replaces entries of ``typed`` in the configuration.
        out: Run directory, or None.
        overwrite: Remove an earlier run in ``out`` first.
        seed: Random seed.

    Raises:
        RunDirectoryError: ``out`` is in use or holds another run.
        StorageError: The folder cannot be written.
    """
    if out is None:
        return nullcontext()
    settings = {"data": data, **typed, **resolved}
    not_hashed = ("seed", *CONSENTS)  # what is allowed changes no number
    return open_run(
        Path(out),
        command=command,
        command_line=command_line,
        config={name: display_value(value) for name, value in settings.items() if name not in not_hashed},
        seed=seed,
        overwrite=overwrite,
    )
