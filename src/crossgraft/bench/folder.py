"""The folder of a study: whether it may be used, and what it was made for."""

from __future__ import annotations

import itertools
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from crossgraft.bench.files import FilePrints, Prints, path_hash
from crossgraft.bench.job import JOBS
from crossgraft.bench.lease import DONE
from crossgraft.bench.study import Study
from crossgraft.config import config_hash
from crossgraft.errors import OtherRunError, RunDirectoryError, StorageError
from crossgraft.paths import is_file, is_folder
from crossgraft.running.command_line import display_value
from crossgraft.running.written_files import is_of_a_beginning, no_run
from crossgraft.storage.atomic import describe_os_error, write_atomically
from crossgraft.words.formatting import counted

STUDY = "study.json"
"""What each cell of the study is."""


def begin(folder: Path, study: Study, *, overwrite: bool) -> list[str]:
    """Make the folder, or go on in it, and write down what the cells are.

    Args:
        folder: Folder of the study.
        study: The study.
        overwrite: Whether cells may mean something else than before; jobs that are done are done again where their files changed.

    Returns:
        What a person should know of it, in sentences.

    Raises:
        OtherRunError: The folder holds another study, or files of somebody else.
        RunDirectoryError: A cell meant something else when it was done, its paths led from another folder, or files that it
            read have changed.
        StorageError: The folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = {entry.name for entry in folder.iterdir()}
    except OSError as error:
        raise StorageError(f"Cannot write into {folder}: {describe_os_error(error)}. Choose another --out.") from error
    notes: list[str] = []
    cells = _cells(study)
    content: dict[str, Any] = {"name": study.name, "command": study.command, "cells": cells, "place": _place(study)}
    if STUDY in names:
        before = _read(folder / STUDY)
        if before.get("name") != study.name:
            raise OtherRunError(f"{folder} holds the study {before.get('name')}. Choose another --out.")
        if content["place"] is not None and before.get("place") not in (None, content["place"]):
            raise RunDirectoryError(
                f"The study in {folder} was begun in another folder, from which its relative paths lead elsewhere. Start it "
                "there, or choose another --out."
            )
        if not overwrite:
            _refuse_changed(folder, before, content)
        notes = _about_files(folder, study, overwrite=overwrite)
        content["cells"] = {**before["cells"], **cells}
        if content == before:
            return notes
    elif not all(map(is_of_a_beginning, names)) and not any(folder.glob(f"{JOBS}/*/lease-*")):
        raise no_run(folder)
    write_atomically(folder / STUDY, json.dumps(content))
    return notes


def _about_files(folder: Path, study: Study, *, overwrite: bool) -> list[str]:
    """Refuse jobs that are done whose files are others now, or lay these jobs aside; each path is looked at once."""
    looks = FilePrints(folder)
    stamps: dict[str, str | None] = {}
    changed: dict[str, list[str]] = {}
    gone: dict[str, int] = {}
    num_unknown = 0
    for job in study.jobs:
        before = _files_of(folder / JOBS / job.key) if job.named else {}
        for name in job.named:
            if name not in stamps:
                stamps[name] = looks.stamp(name)
            stamp, was = stamps[name], (before or {}).get(path_hash(name))
            if before is None:
                num_unknown += stamp is not None
                break
            if was is not None and stamp is None:
                gone[name] = gone.get(name, 0) + 1
            elif was is not None and stamp is not None and was["stamp"] != stamp and was["content"] != looks.content(name, stamp):
                changed.setdefault(name, []).append(job.key)
    if changed and not overwrite:
        said = ", ".join(f"{name} ({counted(len(keys), 'job')})" for name, keys in changed.items())
        raise RunDirectoryError(
            f"Files that jobs in {folder} read have changed since they were done: {said}. Choose another --out to keep both, or "
            "--overwrite to do these jobs again here; their old folders stay."
        )
    aside = {key for keys in changed.values() for key in keys}
    for key in aside:
        _lay_aside(folder / JOBS / key)
    notes = [f"Laid aside, as they were done with other files: {counted(len(aside), 'job')}."] if aside else []
    notes += [
        f"{name}, which {counted(number, 'job')} read, is not here, so that nobody looked whether it has changed."
        for name, number in gone.items()
    ]
    if num_unknown:
        notes.append(f"What {counted(num_unknown, 'job')} read was not noted, so that nobody looked whether it has changed.")
    return notes


def _files_of(own: Path) -> Prints | None:
    """What a job that is done read; nothing where it is not done, None where that was not noted."""
    try:
        return json.loads((own / DONE).read_text(encoding="utf-8")).get("files")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError):  # damaged, which whoever reads its numbers says
        return {}


def _lay_aside(own: Path) -> None:
    number = next(number for number in itertools.count(1) if not own.with_name(f"{own.name}-before-{number}").exists())
    try:
        own.rename(own.with_name(f"{own.name}-before-{number}"))
    except OSError as error:
        raise StorageError(f"Cannot rename {own}: {describe_os_error(error)}.") from error


def _place(study: Study) -> str | None:
    """A hash of the folder that relative paths of the jobs lead from; None where they have none."""
    values = {value for job in study.jobs for value in (*job.inputs, *job.keywords.values()) if isinstance(value, str)}
    if not any((is_file(Path(value)) or is_folder(Path(value))) and not Path(value).is_absolute() for value in values):
        return None
    return config_hash({"place": str(Path.cwd())})


def _cells(study: Study) -> dict[str, Any]:
    """Name of each cell → key of its job and what is said of it."""
    return {
        ", ".join(f"{factor} {level}" for factor, level in cell.items()): {
            "job": job.key,
            "said": cast("Any", display_value({**job.keywords, "inputs": list(job.inputs), "threads": job.num_threads})),
        }
        for cell, job in zip(study.cells, study.jobs, strict=True)
    }


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if not all(isinstance(cell["job"], str) and isinstance(cell["said"], dict) for cell in content["cells"].values()):
            raise ValueError("its cells are none")
        return content
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunDirectoryError(f"{file} is damaged. Remove it: jobs that are done are found by their folders.") from error


def _refuse_changed(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """A cell that was begun as something else would be counted with what its new meaning gives."""
    for name, cell in now["cells"].items():
        earlier = before["cells"].get(name)
        if earlier is None or earlier["job"] == cell["job"] or not (folder / JOBS / earlier["job"]).exists():
            continue
        said, was = cell["said"], earlier["said"]
        changed = [
            f"{key} was {was.get(key, 'not set')}, now {said.get(key, 'not set')}"
            for key in sorted({*said, *was})
            if said.get(key) != was.get(key)
        ]
        raise RunDirectoryError(
            f"The study changed since jobs were done in {folder}: {'; '.join(changed) or 'its command'} (cell {name}). Choose "
            "another --out to keep both, or --overwrite to do these cells again here; their old folders stay."
        )


def probe(folder: Path) -> None:
    """Look whether the file system can say which of two copies was first: by links that are made once, and by renaming.

    Raises:
        StorageError: It cannot.
    """
    one, other = folder / f".probe-{os.getpid()}", folder / f".probe-{os.getpid()}-link"
    try:
        one.write_text("", encoding="utf-8")
        other.unlink(missing_ok=True)
        os.link(one, other)
        with suppress(FileExistsError):
            os.link(one, other)
            raise StorageError(f"The file system of {folder} makes a link twice. Choose an --out on another one.")
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(
            f"The file system of {folder} cannot make links ({describe_os_error(error)}), by which jobs are kept apart. Choose "
            "an --out on another one."
        ) from error
    finally:
        for file in (one, other):
            with suppress(OSError):
                file.unlink(missing_ok=True)
