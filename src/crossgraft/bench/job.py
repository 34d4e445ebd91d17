"""One job of a study: a call of a public verb with plain arguments, in a folder that is named by what decides its numbers."""

from __future__ import annotations

import importlib
import io
import os
import re
import signal
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from crossgraft.bench.lease import DONE, FAILED, Limits, claim
from crossgraft.bench.numbers import numbers_of
from crossgraft.bench.options import StudyOptions
from crossgraft.config import CONSENTS, config_hash
from crossgraft.errors import CrossgraftError, DeviceLostError, StorageError, UnknownNameError, UsageError
from crossgraft.options._option import Options, given, options_of
from crossgraft.options._values import checked, refuse_alone
from crossgraft.options.command import COMMANDS, Command, Input
from crossgraft.options.running import Output
from crossgraft.progress import Reporter
from crossgraft.running.command_line import FOLDERS_LEFT_OUT, display_value, typed_command
from crossgraft.running.jobs import Job, Work, attempt
from crossgraft.storage.atomic import this_process
from crossgraft.types import AllowedCode
from crossgraft.version import __version__

Ended = Literal["done", "failed", "busy"]
JOBS = "jobs"
"""Folder of the jobs in that of a study."""

_OF_THE_STUDY = ("out", "overwrite", "reporter", "plan")
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
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
        version: That of crossgraft which made the study.
    """

    key: str
    verb: str
    inputs: tuple[Any, ...]
    keywords: Mapping[str, Any]
    num_threads: int = 1
    version: str = __version__


@dataclass
class _Asked:
    """What is said of one job, as the action of its command sees it, and the call that this comes to."""

    command: Command
    inputs: Mapping[str, Any]
    typed: Mapping[str, Any]
    config: None = None
    call: tuple[str, type[Options], tuple[Any, ...], Mapping[str, Any]] | None = None

    def asked(self, kind: type[Options]) -> dict[str, Any]:
        """Options of a verb."""
        return {name: value for name, value in self.typed.items() if name in options_of(kind)}

    def values(self, kind: type[Options]) -> dict[str, Any]:
        """The same."""
        return self.asked(kind)

    def say_first(self, what: str) -> None:
        """A job says nothing."""

    def do(self, verb: str, kind: type[Options], *inputs: Any, asked: Mapping[str, Any] | None = None, **_: Any) -> int:
        """Remember the call."""
        self.call = (verb, kind, inputs, self.asked(kind) if asked is None else asked)
        return 0


def make_job(command_name: str, values: Mapping[str, Any], *, num_threads: int = 1, allow_code: AllowedCode = None) -> StudyJob:
    """The job that a command with these inputs and options is.

    Args:
        command_name: Name of the command.
        values: Inputs and options by their names in a configuration file.
        num_threads: Threads of the process that does it.
        allow_code: Code that the person named, which no study can.

    Raises:
        UsageError: The command makes no run folder, an input names a function, something is missing, or a value is none of its
            option.
        UnknownNameError: There is no such command, or a name is none of its inputs and options.
    """
    command = COMMANDS.get(command_name)
    if not issubclass(command.options[0], Output):
        raise _no_run_folder(command_name)
    if issubclass(command.options[0], StudyOptions):
        raise UsageError("A study cannot consist of studies. Write the command of their jobs.")
    named = [each.name for each in command.inputs]
    inputs: dict[str, Any] = {}
    typed = {name: value for name, value in values.items() if name not in named}
    for name in typed:
        if name in CONSENTS:
            raise UsageError(f"{name} is set, which a file cannot allow.")
        if name not in command.flags and name not in _OF_THE_STUDY:
            raise UnknownNameError("option", name, [*named, *command.flags], hint=f"See crossgraft {command_name} --help.")
    for name in _OF_THE_STUDY:
        if name in typed:
            raise UsageError(f"{name} cannot be set for a job: the study decides it.")
    for name, value in values.items():
        if not _is_plain(value):
            raise UsageError(
                f"{name} is a {type(value).__name__}. A job may run on another machine, so a study has numbers, texts and lists."
            )
    for each in command.inputs:
        if each.is_required and values.get(each.name) is None:
            raise UsageError(f"crossgraft {command_name} needs {each.name}: {each.help}")
        inputs[each.name] = _input(each, values.get(each.name))
    if allow_code is not None and "allow_code" in command.flags:
        typed["allow_code"] = allow_code
    asked = _Asked(command, inputs, typed)
    command.run(asked)
    if asked.call is None or not issubclass(asked.call[1], Output):
        raise _no_run_folder(command_name)
    verb, kind, given_inputs, keywords = asked.call
    if "workers" in options_of(kind):  # by default all cores, which the jobs beside it have
        keywords = {"workers": num_threads, **keywords}
    for name, option in options_of(kind).items():
        if option.is_required and name not in keywords:
            raise UsageError(f"crossgraft {command_name} needs {name}: {option.about.help}")
    options = checked(kind, keywords)
    refuse_alone(options)
    known = options_of(kind)
    deciding = {
        name: getattr(options, name) for name in sorted(given(options)) if known[name].about.decides and name not in CONSENTS
    }
    key = config_hash({"verb": verb, "inputs": list(given_inputs), "threads": num_threads, **deciding})
    return StudyJob(key, verb, given_inputs, dict(keywords), num_threads)


def _input(each: Input, value: Any) -> Any:
    """An input as its command takes it: one text, or a list of them."""
    several: list[Any] = list(value) if isinstance(value, list | tuple) and each.repeats else [value]
    for text in several:
        if text is not None and not isinstance(text, str | Path):
            what = "is a text, or a list of them" if each.repeats else "is a text"
            raise UsageError(f"{each.name} {what}, not {display_value(text)!r}. A number is written in quotes.")
        if isinstance(text, str) and (function := _function_in(text)) is not None:
            raise UsageError(
                f"{each.name} names the function {function}, which would run. Name it in a zoo file, and type --code."
            )
    if value is None or not each.repeats:
        return value
    return [each.type(text) for text in several]


def _function_in(text: str) -> str | None:
    """The part of an input, with commas, that would be taken for a function that builds a network: ``package.module:name``."""
    for part in map(str.strip, text.split(",")):
        library, _, _ = part.partition(":")
        if _FUNCTION.fullmatch(part) and library not in ("torchvision", "hf") and not library.endswith((".yaml", ".yml")):
            return part
    return None


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, cast("Sequence[object]", value)))
    if isinstance(value, Mapping):
        return all(map(_is_plain, cast("Mapping[object, object]", value).values()))
    return value is None or isinstance(value, str | int | float | Path)


def _no_run_folder(command: str) -> UsageError:
    return UsageError(f"crossgraft {command} makes no run folder, so a study cannot consist of it.")


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
    lease = claim(own, driver=driver, seconds=seconds)
    if lease is None:
        return "busy"
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
        lease.finish({"seconds": outcome.seconds, "version": __version__, "numbers": outcome.result})
        return "done"


class _Call(Work[StudyJob, list[dict[str, Any]]]):
    """Does a job whose folder says that it is not done; whatever it raises is its fault, or a study would end by one plug-in.

    Args:
        out: Run folder.
    """

    faults = (Exception,)
    no_faults = (StorageError, DeviceLostError)

    def __init__(self, out: Path) -> None:
        self._out = out

    def do(self, job: Job[StudyJob]) -> list[dict[str, Any]]:
        """The numbers."""
        return call(job.spec, self._out)


def call(job: StudyJob, out: Path) -> list[dict[str, Any]]:
    """The numbers of the result."""
    # warnings of a job stand on its own page; so many at once would hide how the study goes
    with typed_command():
        result = prepared(job)(out=out, reporter=Reporter(quiet=True, stream=io.StringIO()))
    return numbers_of(result.to_frame())


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
