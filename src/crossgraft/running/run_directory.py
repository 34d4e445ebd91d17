"""One folder holds one run: configuration, records, report.

The same command again resumes: finished pieces are read back. Another configuration, or other data, in the same folder
is refused unless ``overwrite``; so is a second process while the first is at work. An earlier run leaves when the one that
replaces it has its result, and is as it was if that fails; the same command goes on from what was finished.
"""

from __future__ import annotations

import importlib.metadata
import platform
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

from filelock import FileLock, Timeout
from pydantic import ValidationError

from crossgraft.compute import available_cores
from crossgraft.config import config_hash
from crossgraft.errors import DataError, OtherRunError, RunDirectoryError, StorageError
from crossgraft.paths import shortened
from crossgraft.progress import Reporter
from crossgraft.records.base import Record, RunRecord, StageRecord
from crossgraft.running.replaced_run import done_record, is_replaced, let_go, put_back, replace_run, set_one_aside, settle
from crossgraft.running.written_files import (
    BEFORE,
    RUN_FILE,
    UNFINISHED,
    WRITTEN,
    is_of_a_beginning,
    is_without_result,
    no_run,
    refuse_files_of_others,
    refuse_strange_folder,
    refuse_unrecognised,
    written_files,
)
from crossgraft.stopping import ending_if_asked
from crossgraft.storage.atomic import remove_leftovers, write_atomically
from crossgraft.version import __version__
from crossgraft.words.formatting import short_fingerprint

R = TypeVar("R", bound=Record)

RECORDED_PACKAGES = ("torch", "torchvision", "timm", "numpy", "scipy", "scikit-learn", "pillow")


class RunDirectory:
    """An open run; made by ``open_run``.

    Attributes:
        path: The folder.
        record: What ``run.json`` says.
        resumed: Whether it continues an earlier attempt.
    """

    def __init__(self, path: Path, record: RunRecord, *, earlier: RunRecord | None) -> None:
        self.path = path
        self.record = record
        self.resumed = earlier is not None
        self._earlier_machine = earlier.machine if earlier is not None else {}
        self._earlier_versions = _versions_in(earlier) if earlier is not None else {}
        self._earlier_weights = dict(earlier.weights_fingerprints) if earlier is not None else {}

    def write(self, name: str, content: str | bytes) -> Path:
        """Write one file of the run, whole or not at all, and remember that it is ours."""
        self._list(name)
        return write_atomically(self.path / name, content)

    def own(self, *names: str) -> None:
        """Say what the run writes by other means than ``write``; what is there of a run that this one replaces goes aside.

        Args:
            *names: Files, and folders with a ``/`` at the end.

        Raises:
            StorageError: Something cannot be moved.
        """
        if not self.resumed:
            for name in names:
                set_one_aside(self.path, name)
        self._list(*names)

    def _list(self, *names: str) -> None:
        known = written_files(self.path)
        if new := [name for name in dict.fromkeys(names) if name not in known]:
            write_atomically(self.path / WRITTEN, "\n".join([*known, *new]) + "\n")

    def write_record(self, name: str, record: Record) -> Path:
        """Write a record as JSON.

        Raises:
            TypeError: The next run would take a report for a file of somebody else: an error of the plug-in.
        """
        content = record.model_dump_json(indent=1)
        refuse_unrecognised(name, content)
        return self.write(name, content)

    def read_record(self, name: str, kind: type[R]) -> R | None:
        """Read a record that an earlier attempt finished; None if it is not there or belongs to another version."""
        path = self.path / name
        if not path.is_file():
            return None
        try:
            return kind.model_validate_json(path.read_bytes())
        except ValidationError:
            return None

    def update(self, **changes: object) -> None:
        """Change fields of ``run.json``."""
        record = self.record.model_copy(update=changes)
        self.write_record("run.json", record)
        self.record = record

    def describe_data(self, fingerprint: str) -> None:
        """Store the fingerprint of the data.

        Raises:
            RunDirectoryError: A resumed run was started on other data.
        """
        before = self.record.data_fingerprint
        if before is not None and before != fingerprint:
            raise RunDirectoryError(
                f"The data changed since the run in {self.path} was started. Use --overwrite to start it anew, or another --out."
            )
        self.update(data_fingerprint=fingerprint)

    def describe_weights(self, reporter: Reporter, fingerprints: Mapping[str, str]) -> None:
        """Store the fingerprints of weights, which every intermediate result knows, so that none of others is taken over.

        Called as soon as weights are loaded, so that an attempt that is stopped knows them, too.

        Args:
            reporter: Warned, once a model, if an earlier attempt of this run was computed with other weights under its name.
            fingerprints: By the name of the model.
        """
        before = {name: self._earlier_weights.pop(name, now) for name, now in fingerprints.items()}
        was = [
            f"{name} {short_fingerprint(old)}, now {short_fingerprint(fingerprints[name])}"
            for name, old in before.items()
            if old != fingerprints[name]
        ]
        if was:
            reporter.warn(
                f"Weights have changed since the run in {self.path.name}: {'; '.join(was)}. What they decide is computed anew. "
                "To go on with the earlier ones put their file back, or name their revision (hf-hub:ORG/NAME@REVISION) with "
                "another --out."
            )
        others = {name: it for name, it in self.record.weights_fingerprints.items() if name not in fingerprints}
        self.update(weights_fingerprints={**fingerprints, **others})

    def describe_machine(self, reporter: Reporter, **facts: object) -> None:
        """Record what is not meant to change a number but may change its last digit: threads, device.

        Args:
            reporter: Warned if an earlier attempt of this run was computed with others, or with other versions of packages.
            facts: By name.
        """
        now = {name: str(fact) for name, fact in facts.items()}
        conditions = _differing(self._earlier_machine, now)
        versions = _differing(self._earlier_versions, _versions_in(self.record))
        if conditions or versions:
            same = [*(["--workers, --device and --devices"] if conditions else []), *(["versions"] if versions else [])]
            is_other = self._earlier_versions.get("crossgraft", __version__) != __version__
            anew = " Another crossgraft may also compute otherwise: --overwrite starts the run anew." if is_other else ""
            reporter.warn(
                f"The run in {self.path} was started under other conditions: {'; '.join([*conditions, *versions])}. They change "
                "rounding, so its numbers may differ from those of a run that was not stopped: in the last digits, and by more "
                f"the longer it still trains. For the same bits use the {' and the '.join(same)} that it was started with.{anew}"
            )
        self.update(machine={**self.record.machine, **now})

    def finish(self) -> None:
        """Mark the run as done; called before the report is written, so that the page shows the final state."""
        self.update(state="done", finished_at=_now())

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """Measure the seconds of a part of the run and keep them in ``run.json``."""
        start = time.perf_counter()
        with ending_if_asked():
            yield
        stage = StageRecord(name=name, seconds=time.perf_counter() - start)
        self.update(stages=[*(s for s in self.record.stages if s.name != name), stage])


@contextmanager
def open_run(
    path: Path, *, command: str, command_line: str, config: Mapping[str, object], seed: int, overwrite: bool = False
) -> Generator[RunDirectory]:
    """Open a run directory, lock it, and leave ``run.json`` in a true state however the block ends.

    Args:
        path: Made if it is not there.
        command: Verb, for example ``rank``.
        command_line: What to type to get the same run.
        config: Everything meant to change the numbers; permissions in it are left out.
        seed: Random seed of the run.
        overwrite: Replace an earlier run in ``path``, which leaves when this one is done.

    Raises:
        RunDirectoryError: Another process is at work in ``path``, ``path`` holds another configuration, or it holds
            files that are no run.
        DataError: A folder in ``path`` is a symbolic link.
        StorageError: The folder cannot be written.
    """
    refuse_strange_folder(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        (lock := FileLock(path / ".lock", timeout=0)).acquire()
    except Timeout as error:
        raise RunDirectoryError(
            f"Another crossgraft command is at work in {path}. Wait for it, or choose another --out."
        ) from error
    except NotImplementedError as error:  # some network file systems
        raise StorageError(f"The file system of {path} has no locks. Choose an --out on another one.") from error
    except OSError as error:
        where, reason = shortened(str(path)), error.strerror or error
        raise StorageError(f"Cannot write into {where}: {reason}. Choose another --out.") from error
    try:
        remove_leftovers(path, locked=True, recursive=True)
        settle(path)
        refuse_files_of_others(path)
        before = done_record(path)
        try:
            run = _enter(path, command=command, command_line=command_line, config=config, seed=seed, overwrite=overwrite)
        except BaseException:
            put_back(path)
            raise
        try:
            run.write_record(RUN_FILE, run.record)
            with ending_if_asked():
                yield run
            if run.record.state != "done":
                run.finish()
            let_go(path, BEFORE, UNFINISHED)
        except BaseException as error:
            _leave(run, "interrupted" if isinstance(error, KeyboardInterrupt) else "failed", before=before)
            raise
    finally:
        lock.release()


def _leave(run: RunDirectory, state: Literal["interrupted", "failed"], *, before: bytes | None) -> None:
    """What is done stays done, ``before`` too, whatever happens after it; a full disk must not hide why the run ends."""
    path = run.path
    if run.record.state == "done":
        let_go(path, BEFORE, UNFINISHED)
        return
    with suppress(StorageError):
        if not is_replaced(path):
            run.update(state=state) if before is None else run.write(RUN_FILE, before)
            return
        run.update(state=state)
        # An attempt that went on from another and failed again would fail for ever.
        is_useless = is_without_result(path, run.record) or (state == "failed" and run.resumed)
        put_back(path)
        if is_useless:
            let_go(path, UNFINISHED)


def _enter(
    path: Path, *, command: str, command_line: str, config: Mapping[str, object], seed: int, overwrite: bool
) -> RunDirectory:
    digest = config_hash({"command": command, "seed": seed, **config})
    holds_run = (path / RUN_FILE).is_file()
    earlier = _read_run(path) if holds_run and not overwrite else None
    if holds_run and earlier is not None and is_without_result(path, earlier):
        let_go(path, RUN_FILE, WRITTEN)
        earlier = None
    elif holds_run and overwrite:
        earlier = replace_run(path, digest)
    elif earlier is None and not all(is_of_a_beginning(entry.name) for entry in path.iterdir()):
        raise no_run(path)
    if earlier is not None and earlier.config_hash != digest:
        changed = _differences(earlier.config, config) if earlier.command == command else []
        if changed or (earlier.command, earlier.seed) != (command, seed):
            differences = ", ".join(changed) or f"command {earlier.command}, seed {earlier.seed}"
            advice = "Use --overwrite to replace it, or another --out to keep both."
            raise OtherRunError(f"{path} holds a run with another configuration (different: {differences}). {advice}")
    return new_run(path, command=command, command_line=command_line, config=config, seed=seed, earlier=earlier)


def new_run(
    path: Path, *, command: str, command_line: str, config: Mapping[str, object], seed: int, earlier: RunRecord | None = None
) -> RunDirectory:
    """A run in a folder that the caller keeps others out of; arguments as of ``open_run``, and the attempt it goes on from."""
    record = RunRecord(
        command=command,
        command_line=command_line,
        crossgraft_version=__version__,
        config=dict(config),
        config_hash=config_hash({"command": command, "seed": seed, **config}),
        seed=seed,
        versions={"python": platform.python_version()} | {name: _version_of(name) for name in RECORDED_PACKAGES},
        machine={"system": platform.system(), "processor": platform.machine(), "cores": str(available_cores())},
        data_fingerprint=earlier.data_fingerprint if earlier else None,
        started_at=_now(),
        stages=earlier.stages if earlier else [],
    )
    return RunDirectory(path, record, earlier=earlier)


def _versions_in(record: RunRecord) -> dict[str, str]:
    return {"crossgraft": record.crossgraft_version, **record.versions}


def _differing(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [f"{name} {before[name]}, now {fact}" for name, fact in now.items() if before.get(name, fact) != fact]


@cache
def _version_of(package: str) -> str:
    """Read once a process: a job of a study would spend a third of its own time on it."""
    return importlib.metadata.version(package)


def _read_run(path: Path) -> RunRecord:
    file = path / "run.json"
    try:
        return RunRecord.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise DataError(
            f"{file} is not a record of this version of crossgraft. Use --overwrite to replace that run, or another --out."
        ) from error


def _differences(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """Options that decide otherwise; one that came later than the run and is not used decides nothing."""
    later = {key for key, value in now.items() if key not in before and value in (None, False)}
    named = sorted({*before, *now} - later)
    return [key for key in named if config_hash({"": before.get(key)}) != config_hash({"": now.get(key)})]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
