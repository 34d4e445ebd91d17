"""``run_study``: the same command for all models, data sets, settings and seeds of a file, each job once."""

from __future__ import annotations

import importlib.util
import math
import os
import shlex
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from crossgraft.bench.done import SoFar, read_done, tidy_frame
from crossgraft.bench.engine import EngineRequest
from crossgraft.bench.folder import begin, probe
from crossgraft.bench.forecast import expected_seconds, seconds_of_done, seconds_of_plans
from crossgraft.bench.job import JOBS, StudyJob
from crossgraft.bench.lease import Limits
from crossgraft.bench.options import StudyOptions
from crossgraft.bench.record import FailureRecord, StudyStateRecord
from crossgraft.bench.result import StudyResult
from crossgraft.bench.rounds import Rules, StoppedError, count_states, forget_failures, reason_of, states_of, work_off
from crossgraft.bench.study import Study, read_study
from crossgraft.compute import available_cores
from crossgraft.errors import RunDirectoryError, UsageError
from crossgraft.progress import Reporter
from crossgraft.running.command_line import display_value
from crossgraft.running.run_directory import new_run
from crossgraft.running.verb import Run, secondary, verb

if TYPE_CHECKING:
    import pandas as pd

MOST_FAILURES = 10
"""That ``--status`` names."""

SAMPLE = 20
"""Jobs whose folders are measured for the size of all."""


@verb("bench", StudyOptions)
def run_study(study: str | Path | Mapping[str, Any], options: StudyOptions, run: Run) -> StudyResult:
    """Do every job of a study that is not done yet, and show what all of them found.

    A job is one call of a verb, in a folder ``jobs/KEY`` whose name is the hash of everything that decides its numbers. It is
    done when its ``done.json`` is there; begun again, it returns at once, goes on from its checkpoint, or leaves while another
    process is at work. Several calls, on machines that share the folder, help each other. A job that fails by its own error, or
    whose process died three times, is failed, with its reason, and the others go on.

    Args:
        study: YAML file, or a mapping that says the same; the how-to on studies has all of its keys.
        {options}

    Returns:
        Means, paired differences and ranks; in ``out`` also ``report.html``, ``report.json`` and ``results.csv``, one row a
        number of every job (``results.parquet`` too where pyarrow is installed).

    Raises:
        UsageError: A key or a value is wrong, or ``out`` is missing.
        UnknownNameError: A key, a command, an option or an engine is not known.
        RunDirectoryError: ``out`` holds another study, cells of this one that meant something else, or jobs whose files changed.
        StorageError: Nothing can be written any more; the same call goes on.
        MissingError: An engine, or what it needs, is not there.

    Cost:
        That of its jobs; about 2 ms of CPU time a job beside that.
    """
    if options.out is None:
        raise UsageError("A study needs a folder for its jobs: give out=… (--out DIR).")
    out, parsed = Path(options.out), read_study(study, smoke=options.smoke, allow_code=options.allow_code)
    if options.plan or options.status:
        state = _state(parsed, out, options, run.reporter)
        return StudyResult(state=state, script=_script(study, out, options) if options.plan else None)
    command_line, rules, engine = run.said_again({}, out=out), _rules(options), _engine(options, parsed, out)
    for note in begin(out, parsed, overwrite=options.overwrite):
        run.reporter.say(note)
    probe(out)
    if options.retry_failed and (num := forget_failures(out, [job.key for job in parsed.jobs])):
        run.reporter.say(f"{num} jobs that failed are begun once more.")
    try:
        with engine as executor:
            below = SoFar(out.absolute(), parsed, lease_seconds=options.lease_seconds).lines
            work_off(out.absolute(), parsed.jobs, executor, rules, run.reporter, below=below)
    except StoppedError as error:
        run.reporter.warn(str(error))
    return _published(parsed, out, command_line, run.reporter)


def _published(study: Study, out: Path, command_line: str, reporter: Reporter) -> StudyResult:
    # a status, which may be asked for every minute, needs neither scipy nor a page
    from crossgraft.bench.summary import summarise
    from crossgraft.running.publishing import publish

    done = read_done(out, study)
    record, numbers = summarise(study, out, done), tidy_frame(done, list(study.factors))
    with _lock(out):
        directory = new_run(
            out, command="bench", command_line=command_line, config={"study": display_value(study.content)}, seed=0
        )
        directory.write_record("run.json", directory.record)
        page = publish(directory, record, reporter, tables={"results.csv": numbers})
        if importlib.util.find_spec("pyarrow") is not None:
            with secondary("results.parquet was not written", reporter):
                directory.write("results.parquet", _as_parquet(numbers))
    return StudyResult(record, out, page, numbers=numbers)


def _as_parquet(numbers: pd.DataFrame) -> bytes:
    """A column of Parquet has one type, where words and numbers may say what a number is about."""
    text = {name: "string" for name in numbers.columns if numbers[name].dtype == object}
    return numbers.astype(text).to_parquet(index=False)


@contextmanager
def _lock(out: Path) -> Generator[None]:
    """Two calls that end at the same time write one after the other."""
    try:
        with FileLock(out / ".lock", timeout=60):
            yield
    except Timeout as error:
        raise RunDirectoryError(
            f"Another crossgraft bench has been writing the page of {out} for a minute. Try again."
        ) from error


def _rules(options: StudyOptions) -> Rules:
    minutes, memory, waiting = options.job_minutes, options.job_memory, options.wait_minutes
    above_zero = {"job_minutes": minutes, "job_memory": memory, "lease_seconds": options.lease_seconds, "wait_minutes": waiting}
    for name, value in above_zero.items():
        if value is not None and not 0 < value < math.inf:
            raise UsageError(f"{name} must be above 0, not {value:g}.")
    return Rules(
        lease_seconds=options.lease_seconds,
        limits=Limits(
            seconds=None if minutes is None else 60 * minutes, num_bytes=None if memory is None else int(memory * 2**30)
        ),
        jobs_per_task=options.jobs_per_task,
        wait_seconds=None if waiting is None else 60 * waiting,
    )


def _engine(options: StudyOptions, study: Study, out: Path) -> AbstractContextManager[Executor]:
    if options.executor is not None:
        return nullcontext(options.executor)
    from crossgraft.bench.engines import ENGINES

    request = EngineRequest(options.workers, study.jobs[0].num_threads, out.absolute(), options.address, _parameters(options))
    return ENGINES.get(options.engine).open(request)


def _parameters(options: StudyOptions) -> dict[str, str]:
    items = [options.engine_option] if isinstance(options.engine_option, str) else options.engine_option
    for item in items:
        if "=" not in item:
            raise UsageError(f"--engine-option is NAME=VALUE, for example partition=gpu, not {item}.")
    return dict(item.split("=", 1) for item in items)


def _state(study: Study, out: Path, options: StudyOptions, reporter: Reporter) -> StudyStateRecord:
    states = states_of(out, [job.key for job in study.jobs], seconds=options.lease_seconds)
    counts = count_states(states)
    done = [job for job in study.jobs if states[job.key] == "done"]
    failures = [
        FailureRecord(job=job.key, levels=dict(cell), reason=reason_of(out, job.key))
        for cell, job in zip(study.cells, study.jobs, strict=True)
        if states[job.key] == "failed"
    ]
    workers = options.workers or max(1, available_cores() // study.jobs[0].num_threads)
    left = [place for place, job in enumerate(study.jobs) if states[job.key] not in ("done", "failed")]
    known = seconds_of_done(study, out, done)
    if not known and options.plan:
        known = seconds_of_plans(study, left, reporter)
    seconds = float(expected_seconds(study, known)[left].mean()) if known and left else None
    return StudyStateRecord(
        title=study.title,
        num_jobs=len(study.jobs),
        num_done=len(done),
        num_failed=len(failures),
        num_running=counts.get("running", 0),
        num_stopped=counts.get("stopped", 0),
        num_missing=counts.get("missing", 0),
        seconds_per_job=seconds,
        seconds_left=None if seconds is None else seconds * len(left) / min(workers, len(left)),
        num_bytes_per_job=_num_bytes_per_job(out, done),
        workers=workers,
        failures=failures[:MOST_FAILURES],
    )


def _num_bytes_per_job(out: Path, done: Sequence[StudyJob]) -> int | None:
    sizes = [
        sum(os.lstat(Path(folder, name)).st_size for folder, _, names in os.walk(out / JOBS / job.key) for name in names)
        for job in _sample(done)
    ]
    return sum(sizes) // len(sizes) if sizes else None


def _sample(done: Sequence[StudyJob]) -> list[StudyJob]:
    """Jobs from all over the study."""
    return list(islice(done, 0, None, max(1, len(done) // SAMPLE)))


def _script(study: object, out: Path, options: StudyOptions) -> str | None:
    """For schedulers that no engine knows: copies of the same command, which share the jobs among themselves."""
    if isinstance(study, Mapping):
        return None
    named = options.allow_code if isinstance(options.allow_code, list | tuple) else [options.allow_code]
    code = [word for each in named if isinstance(each, str | Path) for word in ("--code", str(each))]
    smoke = ["--smoke"] if options.smoke else []
    line = shlex.join(["crossgraft", "bench", str(study), "--out", str(out), *smoke, *code, "--workers", "1", "--quiet"])
    return "\n".join(
        [
            "On any cluster with a shared folder, start as many copies of this as you like; each takes jobs that no other has:",
            f"  cd {shlex.quote(str(Path.cwd()))} && {line}",
        ]
    )
