"""Who is at work on a job: one process at a time, whatever engines say, and none that was stopped and wakes up too late.

The folder of a job holds

- ``lease-N``: the N-th attempt, with the process that makes it, touched while that lives; ``lease-N.released`` when it left
  in order.
- ``N``: the run folder of the N-th attempt. The next one renames it, so that what a process writes that lost its lease goes to a
  folder that is not there any more.
- ``done.json`` or ``failed.json``: how it ended. The first ``done.json`` stands.
"""

from __future__ import annotations

import json
import os
import platform
import re
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import psutil

from crossgraft.bench.files import Prints, have_changed
from crossgraft.errors import StorageError
from crossgraft.storage.atomic import describe_os_error, is_alive, temporary_beside, this_process, write_atomically

DONE, FAILED = "done.json", "failed.json"
MOST_DEATHS = 3
"""A job whose process died so often is failed: most often it has not enough memory, and the next process would die, too."""

LEFT_BY_LIMIT = 75
"""Exit code of a process that its own watch ends."""

_LEASE = re.compile(r"lease-(\d+)(\.released)?")
_PROCESS = re.compile(r"[0-9a-f]+(-[0-9a-f]+){2}")
_BEATS = 6
"""So many in the seconds after which a lease is given up."""

State = Literal["done", "failed", "running", "stopped", "missing"]


@dataclass(frozen=True)
class Limits:
    """What ends the process of a job.

    Attributes:
        seconds: Seconds of one attempt; None: as long as it takes.
        num_bytes: Memory of the process; None: all there is.
    """

    seconds: float | None = None
    num_bytes: int | None = None


@dataclass(eq=False)
class Lease:
    """One attempt at a job; made by ``claim``.

    Attributes:
        folder: The folder of the job.
        number: Number of the attempt, from 1.
        seconds: After so many without a sign of life it is given up.
    """

    folder: Path
    number: int
    seconds: float
    _end: threading.Event = field(default_factory=threading.Event)

    @property
    def run(self) -> Path:
        """The run folder of this attempt."""
        return self.folder / str(self.number)

    @property
    def file(self) -> Path:
        """What says that it is ours."""
        return self.folder / f"lease-{self.number}"

    @property
    def is_held(self) -> bool:
        """Whether no other process has taken over."""
        return max(_leases(self.folder), default=0) == self.number and self.file.exists()

    @contextmanager
    def kept(self, limits: Limits, *, may_exit: bool) -> Generator[None]:
        """Show signs of life inside, and end the process at a limit, or where another one has taken over.

        Args:
            limits: Limits of time and memory.
            may_exit: Whether the process is there for this job alone.
        """
        watch = threading.Thread(target=self._watch, args=(limits, may_exit), daemon=True, name="lease")
        watch.start()
        try:
            yield
        finally:
            self._end.set()
            watch.join()

    def _watch(self, limits: Limits, may_exit: bool) -> None:
        start, process = time.monotonic(), psutil.Process()
        pause = min(self.seconds / _BEATS, 1.0 if limits.num_bytes or limits.seconds else self.seconds)
        while not self._end.wait(pause):
            with suppress(OSError, StorageError):  # a file server may be away for a while
                self._look(process, time.monotonic() - start, limits, may_exit)

    def _look(self, process: psutil.Process, seconds: float, limits: Limits, may_exit: bool) -> None:
        """One sign of life, and whether to go on."""
        with suppress(OSError):
            os.utime(self.file)
        reason = ""
        if limits.seconds is not None and seconds > limits.seconds:
            reason = f"It took longer than the {limits.seconds / 60:g} minutes of --job-minutes."
        elif limits.num_bytes is not None and process.memory_info().rss > limits.num_bytes:
            reason = f"It took more than the {limits.num_bytes / 2**30:g} GiB of --job-memory."
        if reason and may_exit:
            self.fail(reason)
        if may_exit and (reason or not self.is_held):
            if not reason:
                self.release()  # being late is no death of the job
            os._exit(LEFT_BY_LIMIT)

    def release(self) -> None:
        """Leave in order: another process may go on at once, and nobody counts a death."""
        with suppress(OSError):
            self.file.rename(self.file.with_suffix(".released"))

    def finish(self, content: dict[str, Any]) -> bool:
        """Say that the job is done, unless somebody else has taken over or said so.

        Raises:
            StorageError: It cannot be written.
        """
        if not self.is_held:
            return False
        target = self.folder / DONE
        try:
            with temporary_beside(target) as temporary:
                with temporary.open("w", encoding="utf-8") as file:
                    json.dump({"run": str(self.number), **content}, file)
                    file.flush()
                    os.fsync(file.fileno())  # or a power cut leaves the name of a result without it
                os.link(temporary, target)
        except FileExistsError:
            return False
        except OSError as error:
            raise StorageError(f"Cannot write {target}: {describe_os_error(error)}.") from error
        return True

    def fail(self, reason: str) -> bool:
        """Say why the job has failed, unless somebody else has taken over.

        Raises:
            StorageError: It cannot be written.
        """
        if not self.is_held or (self.folder / DONE).exists():
            return False
        write_failure(self.folder, reason, attempt=self.number)
        return True


def write_failure(folder: Path, reason: str, *, attempt: int) -> None:
    """Say why the job of a folder has failed.

    Raises:
        StorageError: It cannot be written.
    """
    write_atomically(folder / FAILED, json.dumps({"reason": reason, "attempt": attempt}))


def claim(folder: Path, *, driver: str | None, seconds: float, files: Prints | None = None) -> Lease | None:
    """Begin an attempt at a job, or go on with the last one where its process is gone.

    Args:
        folder: The folder of the job.
        driver: The process that asked for it, if it is on this machine; what dies with it is no death of the job.
        seconds: A lease without a sign of life for so long is given up.
        files: What the job reads; where an earlier attempt read something else, this one begins anew.

    Returns:
        None where another process is at work, or has just ended the job.

    Raises:
        StorageError: The folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        leases = _leases(folder)
        last = max(leases, default=0)
        if last and not leases[last] and not _is_given_up(folder, last, seconds):
            return None
        lease = Lease(folder, last + 1, seconds)
        try:
            descriptor = os.open(lease.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:  # another one was faster
            return None
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            facts = {"process": this_process(), "machine": platform.node(), "driver": driver, "seconds": seconds}
            json.dump({**facts, "files": files or {}}, file)
        if (folder / DONE).exists() or (folder / FAILED).exists():  # it ended while we looked
            lease.release()
            return None
        _take_over(lease, files or {})
    except OSError as error:
        raise StorageError(f"Cannot write into {folder}: {describe_os_error(error)}.") from error
    return lease


def num_deaths(folder: Path) -> int:
    """Attempts whose process ended without a word while the one that had asked for it lived on."""
    of_job = [_content(folder, number) for number, released in _leases(folder).items() if not released]
    dead = [each for each in of_job if each and is_alive(str(each["process"])) is not True]
    return sum(each["driver"] is None or is_alive(str(each["driver"])) is True for each in dead)


def last_sign_of_life(folder: Path) -> str:
    """Where and when the last attempt that died showed one, as a part of a sentence; empty where nobody knows."""
    died = max((number for number, released in _leases(folder).items() if not released), default=0)
    with suppress(OSError):
        seconds = (folder / f"lease-{died}").stat().st_mtime
        when = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
        machine = (_content(folder, died) or {}).get("machine")
        return f"last at {when}{f' on {machine}' if machine not in (None, platform.node()) else ''}"
    return ""


def end_of(folder: str) -> Literal["done", "failed"] | None:
    """How a job ended; None where it has not. Thousands are asked every second, so that paths stay text: 4 µs."""
    if os.access(f"{folder}/{DONE}", os.F_OK):
        return "done"
    return "failed" if os.access(f"{folder}/{FAILED}", os.F_OK) else None


def state_of(place: str | Path, *, seconds: float) -> State:
    """What is known of a job by its folder; costs a look at one file where it is done."""
    if (ended := end_of(str(place))) is not None:
        return ended
    folder = Path(place)
    leases = _leases(folder)
    last = max(leases, default=0)
    if not last:
        return "missing"
    content = _content(folder, last)
    if leases[last] or (content is not None and is_alive(str(content["process"])) is False):
        return "stopped"
    with suppress(OSError):
        return (
            "stopped"
            if abs(time.time() - (folder / f"lease-{last}").stat().st_mtime) > _patience(content, seconds)
            else "running"
        )
    return "stopped"


def _leases(folder: Path) -> dict[int, bool]:
    """Number of each attempt → whether its process left in order."""
    with suppress(FileNotFoundError):
        names = [_LEASE.fullmatch(entry.name) for entry in os.scandir(folder)]
        return {int(name[1]): name[2] is not None for name in names if name is not None}
    return {}


def _content(folder: Path, number: int) -> dict[str, Any] | None:
    """What a lease says; None while it is being written, or where that was never finished."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        content = json.loads((folder / f"lease-{number}").read_text(encoding="utf-8"))
        named = [content["process"], *([] if content["driver"] is None else [content["driver"]])]
        if all(map(_PROCESS.fullmatch, named)):
            return content
    return None


def _is_given_up(folder: Path, number: int, seconds: float) -> bool:
    """Whether no sign of life comes any more, by the clock of the file system, and while somebody looks where clocks may jump."""
    content, file = _content(folder, number), folder / f"lease-{number}"
    seconds = _patience(content, seconds)
    if content is not None and is_alive(str(content["process"])) is False:
        return True
    try:
        before = file.stat().st_mtime_ns
        if abs(_file_system_now(folder) - before) <= seconds * 1e9:
            return False
        time.sleep(2 * seconds / _BEATS)
        return file.stat().st_mtime_ns == before
    except FileNotFoundError:  # released meanwhile, which the next round sees
        return False


def _patience(content: dict[str, Any] | None, seconds: float) -> float:
    """Who holds a lease may have been told to show signs of life less often than who looks expects them."""
    return max(seconds, float((content or {}).get("seconds", 0)))


def _file_system_now(folder: Path) -> int:
    with temporary_beside(folder / "now") as probe:
        probe.touch()
        return probe.stat().st_mtime_ns


def _take_over(lease: Lease, files: Prints) -> None:
    """Rename the run folder of the last attempt, away from the process that made it: to go on in it, or to leave it aside."""
    earlier = [int(entry.name) for entry in os.scandir(lease.folder) if entry.name.isdecimal()]
    if earlier:
        last = max(earlier)
        before = _files_of(lease.folder, last)
        if before is None or not have_changed(before, files):
            (lease.folder / str(last)).rename(lease.run)
            (lease.run / ".lock").unlink(missing_ok=True)  # which a process that was stopped still has
        else:
            (lease.folder / str(last)).rename(lease.folder / f"{last}-other-files")


def _files_of(folder: Path, number: int) -> Prints | None:
    """What an attempt read; None where that is not known."""
    for name in (f"lease-{number}", f"lease-{number}.released"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            return json.loads((folder / name).read_text(encoding="utf-8"))["files"]
    return None
