"""Rounds: submit what is missing, take what comes back, look at the folders, submit what is missing again, until nothing is."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from crossgraft.bench.job import JOBS, StudyJob, do_jobs
from crossgraft.bench.lease import (
    FAILED,
    MOST_DEATHS,
    Limits,
    State,
    end_of,
    last_sign_of_life,
    num_deaths,
    state_of,
    write_failure,
)
from crossgraft.errors import CrossgraftError, StorageError
from crossgraft.progress import Reporter, Stage
from crossgraft.running.jobs import error_in_one_line
from crossgraft.storage.atomic import this_process

LOOK_SECONDS = 1.0
"""Between two looks at the folders while nothing comes back."""

IDLE_ROUNDS = MOST_DEATHS + 1
"""An engine that comes back so often without having ended any job does not work; the last job of a study may die before."""


@dataclass(frozen=True)
class Rules:
    """How jobs are submitted.

    Attributes:
        lease_seconds: A process that shows no sign of life for so long is given up.
        limits: What ends the process of a job.
        jobs_per_task: Jobs that one call of the engine does one after the other.
        wait_seconds: How long to wait for an engine that begins nothing; None: for ever.
    """

    lease_seconds: float = 60.0
    limits: Limits = field(default_factory=Limits)
    jobs_per_task: int = 1
    wait_seconds: float | None = None


class StoppedError(CrossgraftError):
    """An engine ended no job any more; what is done is kept, and the same command goes on."""

    exit_code = 6


def work_off(
    folder: Path,
    jobs: Sequence[StudyJob],
    executor: Executor,
    rules: Rules,
    reporter: Reporter,
    *,
    below: Callable[[], Sequence[str]] | None = None,
) -> None:
    """Have all jobs done or failed.

    Args:
        folder: The folder of the study.
        jobs: All of them.
        executor: Where they run.
        rules: How they are submitted.
        reporter: Receiver of progress.
        below: Gives lines about what is done so far, for a terminal.

    Raises:
        StorageError: Nothing can be written any more.
        UsageError: Workers have another version of crossgraft.
        StoppedError: The engine came back without having ended a job, or began none.
    """
    by_key = {job.key: job for job in jobs}
    open_keys = set(unfinished(folder, by_key))
    if not open_keys:
        return
    title = "Jobs" if len(open_keys) == len(by_key) else f"Jobs left of {len(by_key)}"
    with reporter.stage(title, total=len(open_keys), unit="jobs", below=below) as stage:
        idle = 0
        lost: dict[str, str] = {}
        while open_keys:
            before = len(open_keys)
            missing = _to_submit(folder, [by_key[key] for key in by_key if key in open_keys], rules, lost)
            said, is_busy = _round(folder, missing, executor, rules, open_keys, stage, lost) if missing else ("", True)
            if is_busy and not said and len(open_keys) == before:  # others are at work on all that is left
                time.sleep(LOOK_SECONDS)
                _take(folder, open_keys, stage)
                continue
            idle = 0 if len(open_keys) < before else idle + 1
            if said and open_keys:
                reporter.say(f"{len(open_keys)} jobs are submitted again: {said}.")
            if idle >= IDLE_ROUNDS:
                raise StoppedError(
                    f"The engine came back {IDLE_ROUNDS} times without having ended a job{f' ({said})' if said else ''}. "
                    "What is done is kept; the same command goes on."
                )


def unfinished(folder: Path, keys: Iterable[str]) -> list[str]:
    """Jobs that are neither done nor failed."""
    root = f"{folder}/{JOBS}"
    return [key for key in keys if end_of(f"{root}/{key}") is None]


def states_of(folder: Path, keys: Iterable[str], *, seconds: float = 60.0) -> dict[str, State]:
    """What is known of each job by its folder."""
    with suppress(FileNotFoundError):
        begun = {entry.name for entry in os.scandir(folder / JOBS)}
        of_key = ((key, f"{folder}/{JOBS}/{key}") for key in keys)
        return {key: state_of(own, seconds=seconds) if key in begun else "missing" for key, own in of_key}
    return dict.fromkeys(keys, "missing")


def count_states(states: dict[str, State]) -> dict[State, int]:
    """How many jobs are in each state."""
    return dict(Counter(states.values()))


def reason_of(folder: Path, key: str) -> str:
    """Why a job has failed."""
    try:
        return str(json.loads((folder / JOBS / key / FAILED).read_text(encoding="utf-8"))["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        return "its failed.json cannot be read"


def forget_failures(folder: Path, keys: Iterable[str]) -> int:
    """Let jobs that failed be begun again; how many there were.

    Raises:
        StorageError: A file cannot be removed.
    """
    num_forgotten = 0
    for key in keys:
        own = folder / JOBS / key
        if (own / FAILED).exists():
            try:
                for lease in own.glob("lease-*"):  # deaths are counted anew
                    if not lease.name.endswith(".released"):
                        lease.rename(f"{lease}.released")
                (own / FAILED).unlink()
            except OSError as error:
                raise StorageError(f"Cannot remove {own / FAILED}: {error.strerror}.") from error
            num_forgotten += 1
    return num_forgotten


def _to_submit(folder: Path, jobs: Sequence[StudyJob], rules: Rules, lost: Mapping[str, str]) -> list[StudyJob]:
    """Those that nobody is at work on; what died too often is failed, with what is known of that, the word of the engine too."""
    missing: list[StudyJob] = []
    for job in jobs:
        own = folder / JOBS / job.key
        if state_of(own, seconds=rules.lease_seconds) == "running":
            continue
        if (deaths := num_deaths(own)) >= MOST_DEATHS:
            known = ", ".join(filter(None, [last_sign_of_life(own), f"engine: {lost[job.key]}" if job.key in lost else ""]))
            reason = (
                f"Its process died {deaths} times without a word ({known}). A process with too little memory dies so, and a "
                "machine that fails takes its own with it. Give it more, or less to do, and type --retry-failed."
            )
            write_failure(own, reason, attempt=deaths)
        missing.append(job)
    return missing


def _round(
    folder: Path,
    jobs: Sequence[StudyJob],
    executor: Executor,
    rules: Rules,
    open_keys: set[str],
    stage: Stage,
    lost: dict[str, str],
) -> tuple[str, bool]:
    """Submit jobs and wait until all have ended, or the engine has given them back; ``lost`` gets its word on each that it lost.

    Returns:
        What the engine said of those that it lost, and whether other processes are at work on some.
    """
    told: dict[str, Any] = {
        "place": str(Path.cwd()),
        "driver": this_process(),
        "seconds": rules.lease_seconds,
        "limits": rules.limits,
    }
    tasks = [list(jobs[first : first + rules.jobs_per_task]) for first in range(0, len(jobs), rules.jobs_per_task)]
    try:
        running: dict[Future[Any], list[StudyJob]] = {executor.submit(do_jobs, folder, task, **told): task for task in tasks}
    except RuntimeError as error:  # a pool that is broken takes nothing
        return _shortened(error), False
    given_back: SimpleQueue[Future[Any]] = SimpleQueue()
    for future in running:
        future.add_done_callback(given_back.put)
    said, is_busy, last_look, last_change = "", False, time.monotonic(), time.monotonic()
    while running and open_keys:  # others may do what this engine has not begun
        ended = _next(given_back)
        num_open = len(open_keys)
        for future in ended:
            ended_as = _heard(future)
            said = ended_as if isinstance(ended_as, str) else said
            is_busy = is_busy or "busy" in ended_as
            keys = {job.key for job in running.pop(future)}
            lost |= dict.fromkeys(keys, ended_as) if isinstance(ended_as, str) else {}
            _take(folder, open_keys, stage, of=keys)
        now = time.monotonic()
        if now - last_look >= LOOK_SECONDS:  # others may be at work, too
            _take(folder, open_keys, stage)
            last_look = time.monotonic()
        if ended or len(open_keys) < num_open:
            last_change = now
        waited = rules.wait_seconds is not None and now - last_change > rules.wait_seconds
        if waited and "running" not in states_of(folder, open_keys, seconds=rules.lease_seconds).values():
            for future in running:
                future.cancel()
            raise StoppedError(
                f"The engine has begun no job for {rules.wait_seconds:g} seconds (--wait-minutes). What is done is kept; the "
                "same command goes on."
            )
    for future in running:
        future.cancel()
    return said, is_busy


def _next(given_back: SimpleQueue[Future[Any]]) -> list[Future[Any]]:
    """What comes back until the next look; ``concurrent.futures.wait`` would look at all futures each time."""
    ended: list[Future[Any]] = []
    try:
        ended.append(given_back.get(timeout=LOOK_SECONDS))
        while True:
            ended.append(given_back.get_nowait())
    except Empty:
        return ended


def _heard(future: Future[Any]) -> str | list[str]:
    """How jobs ended, or what an engine says of those that it lost; what they raised is raised."""
    try:
        result = future.result()
    except (Exception, CancelledError) as error:  # engines raise many kinds for what they have lost
        return _shortened(error)
    if isinstance(result, CrossgraftError):
        raise result
    return result


def _shortened(error: BaseException) -> str:
    text = error_in_one_line(error)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _take(folder: Path, open_keys: set[str], stage: Stage, *, of: set[str] | None = None) -> None:
    """Look which jobs have ended: some of them, or all."""
    looked_at = open_keys if of is None else open_keys & of
    ended = looked_at - set(unfinished(folder, looked_at))
    open_keys -= ended
    if ended:
        stage.advance(len(ended))
