"""One job of a study: a call of a public verb with plain arguments, in a folder that is named by what decides its numbers.

What it found is rows of one tidy table: metric, value, interval, and the words that say what it is about.
"""

from __future__ import annotations

import importlib
import io
import math
import os
import re
import signal
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from crossgraft.bench.files import FilePrints
from crossgraft.bench.lease import DONE, FAILED, Limits, claim
from crossgraft.errors import CrossgraftError, DeviceLostError, StorageError, UsageError
from crossgraft.progress import Reporter
from crossgraft.running.command_line import FOLDERS_LEFT_OUT, typed_command
from crossgraft.running.jobs import Job, Work, attempt
from crossgraft.running.unattended import unattended
from crossgraft.storage.atomic import this_process
from crossgraft.version import __version__

if TYPE_CHECKING:
    import pandas as pd


Ended = Literal["done", "failed", "busy"]
_Numbers = tuple[list[dict[str, Any]], dict[str, str]]
JOBS = "jobs"
"""Folder of the jobs in that of a study."""

_FOLDERS = re.compile(r"(?<![\w.:/\\])(?:[A-Za-z]:)?(?:[/\\][^/\\\s'\"<>|]+)+[/\\](?=[^/\\\s])")
"""The folders of an absolute path, without its last part."""


@dataclass(frozen=True)
class StudyJob:
    """One call, as it is sent to another process or machine.

    Attributes:
        key: Hash of everything that decides its numbers, and name of its folder.
        verb: ``package.module:function``.
        inputs: What the verb takes without a name.
        keywords: Its options that were given.
        num_threads: Threads of its process, which may change the last digits.
        named: What of all that is said may be the path of something that it reads.
        version: That of crossgraft which made the study.
    """

    key: str
    verb: str
    inputs: tuple[Any, ...]
    keywords: Mapping[str, Any]
    num_threads: int = 1
    named: tuple[str, ...] = ()
    version: str = __version__


def do_jobs(
    folder: Path, jobs: Sequence[StudyJob], *, place: str, driver: str | None, seconds: float, limits: Limits
) -> list[Ended] | CrossgraftError:
    """Do several jobs one after the other in this process, in ``place``, where their paths begin; see ``do_job``.

    Returns:
        How they ended; or the error for which none can go on, since not every engine brings back what is raised.
    """
    if str(Path.cwd()) != place and Path(place).is_dir():  # another machine may not have it, and need none where paths are whole
        os.chdir(place)
    try:
        return [do_job(folder, job, driver=driver, seconds=seconds, limits=limits) for job in jobs]
    except (StorageError, UsageError) as error:
        return error


def do_job(folder: Path, job: StudyJob, *, driver: str | None, seconds: float, limits: Limits) -> Ended:
    """Do a job, go on with it, or find that it is done or that somebody else is at work.

    Args:
        folder: The folder of the study.
        job: The job.
        driver: The process that asked for it.
        seconds: A process that shows no sign of life for so long is given up.
        limits: Limits of time and memory.

    Returns:
        How it ended; a failure stands in its folder with its reason, and is no error.

    Raises:
        StorageError: Nothing can be written: no fault of the job, which goes on when it is begun again.
        UsageError: Another version of crossgraft is installed here, or this process, which asked for the job, would be ended
            by a limit.
        KeyboardInterrupt: The process is to end.
    """
    if job.version != __version__:
        raise UsageError(
            f"The study was made by crossgraft {job.version}, and {__version__} is installed where its jobs are done. Install "
            "the same version there."
        )
    may_exit = driver != this_process()
    if not may_exit and limits != Limits():
        raise UsageError(
            "A limit of time or memory ends the process of a job, and this executor does jobs in the process that started it. "
            "Give one with processes of its own, or leave job_minutes and job_memory out."
        )
    own = folder / JOBS / job.key
    if (own / DONE).exists():
        return "done"
    if (own / FAILED).exists():
        return "failed"
    files = _looks(folder).of(job.named)
    lease = claim(own, driver=driver, seconds=seconds, files=files)
    if lease is None:
        return "busy"
    has_peak = may_exit and begin_peak()
    with _released_by_signal(lease.release), lease.kept(limits, may_exit=may_exit):
        try:
            outcome = attempt(Job(job.key, job, job.key), _Call(lease.run), keep_going=True)
        except StorageError as error:
            lease.release()
            raise StorageError(f"{error} Started again, the same command goes on.") from error
        except (KeyboardInterrupt, SystemExit, DeviceLostError):
            lease.release()
            raise
        if outcome.result is None:
            lease.fail(_FOLDERS.sub(FOLDERS_LEFT_OUT, outcome.reason))
            return "failed"
        numbers, primary = outcome.result
        cost = {"seconds": outcome.seconds, "peak_bytes": peak_bytes() if has_peak else None}
        lease.finish({**cost, "version": __version__, "files": files, "primary": primary, "numbers": numbers})
        return "done"


class _Call(Work[StudyJob, _Numbers]):
    """Does a job whose folder says that it is not done; whatever it raises is its fault, or a study would end by one plug-in.

    Args:
        out: Run folder.
    """

    faults = (Exception,)
    no_faults = (StorageError, DeviceLostError)

    def __init__(self, out: Path) -> None:
        self._out = out

    def do(self, job: Job[StudyJob]) -> _Numbers:
        """The numbers, and the words of the one that stands for them."""
        return call(job.spec, self._out)


@lru_cache(maxsize=4)
def _looks(folder: Path) -> FilePrints:
    """What this process has seen of the files of a study."""
    return FilePrints(folder)


def call(job: StudyJob, out: Path) -> _Numbers:
    """The numbers of the result, and the words of the one that stands for it."""
    # warnings of a job stand in its own folder; so many at once would hide how the study goes
    with typed_command(), unattended():
        result = prepared(job)(out=out, reporter=Reporter(quiet=True, stream=io.StringIO()))
    return with_primary(numbers_of(result.to_frame()), result.primary)


def prepared(job: StudyJob) -> partial[Any]:
    """The verb with what the study says; a function is not allowed to run by being named there."""
    module, _, name = job.verb.partition(":")
    return partial(getattr(importlib.import_module(module), name), *job.inputs, **_without_consent(job.keywords))


def _without_consent(keywords: Mapping[str, Any]) -> Mapping[str, Any]:
    if not {"model", "models"} & {*keywords}:
        return keywords
    from crossgraft.models.zoo import without_consent

    return without_consent(keywords)


@contextmanager
def _released_by_signal(release: Callable[[], None]) -> Generator[None]:
    """A scheduler that takes a machine back says so with SIGTERM: leave in order, so that no death is counted."""

    def leave(*_: object) -> None:
        release()
        os._exit(128 + signal.SIGTERM)

    try:
        before = signal.signal(signal.SIGTERM, leave)
    except ValueError:  # not in the main thread: whoever gave the thread ends it
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


_FORGET, _STATUS, _PEAK = Path("/proc/self/clear_refs"), Path("/proc/self/status"), "VmHWM:"
_OF_PEAKS = "5"
"""What makes the kernel count from now on."""


def begin_peak() -> bool:
    """Forget the peak until now; whether that is possible here."""
    with suppress(OSError):
        _FORGET.write_text(_OF_PEAKS)
        return True
    return False


def peak_bytes() -> int | None:
    """Resident memory at its peak since then, all that the process keeps from earlier jobs included; None: not known."""
    with suppress(OSError, ValueError, IndexError, StopIteration):
        line = next(line for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines() if line.startswith(_PEAK))
        return 1024 * int(line.split()[1])
    return None


NAMED = ("metric", "value", "low", "high")


def numbers_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """One row for each number of the table that a result shows.

    A table with the columns ``metric`` (or ``score``) and ``value`` has one number in each row. Of any other table each numeric
    column is a metric, with ``NAME_low`` and ``NAME_high`` (or ``NAME low`` and ``NAME high``) as its interval. All other columns
    say what the number is about.

    >>> import pandas as pd
    >>> numbers_of(pd.DataFrame({"model": ["a"], "logme": [0.5], "logme_low": [0.4], "logme_high": [0.7]}))
    [{'metric': 'logme', 'value': 0.5, 'low': 0.4, 'high': 0.7, 'model': 'a'}]
    """
    rows: list[dict[str, Any]] = frame.to_dict("records")
    for metric in ("metric", "score"):
        if {metric, "value"} <= {*frame.columns}:
            return [_row(str(row[metric]), row, "value", "low", "high", _words(row, numbers=True)) for row in rows]
    numeric = [str(name) for name in frame.select_dtypes("number").columns]
    gap = {name: " " if f"{name} low" in numeric else "_" for name in numeric}
    ends = {f"{name}{gap[name]}{end}" for name in numeric for end in ("low", "high")}
    metrics = [name for name in numeric if name not in ends]
    return [
        _row(name, row, name, f"{name}{gap[name]}low", f"{name}{gap[name]}high", _words(row)) for row in rows for name in metrics
    ]


def with_primary(rows: Sequence[Mapping[str, Any]], primary: Mapping[str, object]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The rows with the number that stands for the result, and the metric and words by which it is found among them.

    Args:
        rows: Rows from ``numbers_of``.
        primary: As ``Result.primary`` says it; one that is in no row gets one, the first.

    >>> with_primary([{"metric": "place", "value": 1.0}], {"metric": "auc", "value": 0.9, "split": "test"})[1]
    {'metric': 'auc', 'split': 'test'}
    """
    words = {name: str(word) for name, word in primary.items() if name not in ("value", "low", "high")}
    found = list(map(dict[str, Any], rows))
    if words and not any(is_named_by(words, row) for row in found):
        ends = {name: _number(primary.get(name)) for name in ("value", "low", "high")}
        found.insert(0, {"metric": words["metric"], **ends, **{name: primary[name] for name in words if name != "metric"}})
    return found, words


def is_named_by(words: Mapping[str, str], row: Mapping[str, Any]) -> bool:
    """Whether a row is what these words say it is about."""
    return all(str(row.get(name)) == word for name, word in words.items())


def _row(metric: str, row: dict[str, Any], value: str, low: str, high: str, words: dict[str, Any]) -> dict[str, Any]:
    return {"metric": metric, "value": _number(row[value]), "low": _number(row.get(low)), "high": _number(row.get(high)), **words}


def _number(value: Any) -> float | None:
    """A finite number; None where there is none."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _words(row: dict[str, Any], *, numbers: bool = False) -> dict[str, Any]:
    """Texts, and where numbers are no metrics of their own those, too: shots, whether a point was picked."""
    kinds = (str, bool, int, float) if numbers else (str, bool)
    return {
        str(name): value
        for name, value in row.items()
        if isinstance(value, kinds) and str(name) not in NAMED and not (isinstance(value, float) and not math.isfinite(value))
    }
