"""Every error that crossgraft raises on purpose. A message says what happened, where, and what to do.

Each class carries the exit code of the command line, so that Python and the shell see the same outcome.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from contextlib import suppress


class CrossgraftError(Exception):
    """Base of all named errors; ``exit_code`` is what the command line returns."""

    exit_code = 1


class UsageError(CrossgraftError, ValueError):
    """An argument, a name or a configuration key is wrong."""

    exit_code = 2


class UnknownNameError(UsageError, KeyError):
    """A name is not registered; the message lists the nearest ones.

    Args:
        kind: Kind of the named thing.
        name: Name as given.
        known: All names there are.
        hint: Said after the nearest names.
        meant: The name that is surely meant, instead of the nearest of ``known``.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str = "", meant: str | None = None) -> None:
        known = sorted(known)
        near = nearest_names(name, known) if meant is None else [meant]
        if near:
            advice = "Did you mean " + " or ".join(near) + "?"
        elif not known:
            advice = ""
        elif len(known) <= 20:
            advice = "Known: " + ", ".join(known) + "."
        else:
            advice = f"{len(known)} names are known."
        self.message = " ".join(part for part in (f"Unknown {kind}: {name}.", advice, hint) if part)
        super().__init__(self.message)

    def __str__(self) -> str:  # KeyError would print the repr of its argument
        return self.message


class UntrustedCodeError(UsageError):
    """A file names a Python function that nobody allowed to run."""


class RunDirectoryError(UsageError):
    """The run directory is in use, or holds a run with another configuration."""


class OtherRunError(RunDirectoryError):
    """The run directory holds a run with another configuration, or files that are no run."""


class DataError(CrossgraftError, ValueError):
    """The user's data are wrong: missing, unreadable, badly shaped or unsound."""

    exit_code = 3


class OtherImagesError(DataError):
    """A saved split is one of other images."""


class UnreadableImageError(DataError):
    """One image cannot be decoded; ``where`` names the file or the row."""

    def __init__(self, where: str, reason: str) -> None:
        self.where = where
        self.reason = reason
        super().__init__(
            f"Cannot read the image {where}: {reason}. Repair or remove it, or pass --skip-unreadable to go on without it."
        )


class StorageError(CrossgraftError, OSError):
    """A file could not be written (disk full, no permission); nothing half-written is left behind."""

    exit_code = 1

    def __str__(self) -> str:  # OSError would format its arguments as errno and text
        return str(self.args[0])


class OutOfMemoryError(CrossgraftError, MemoryError):
    """Not even one image at a time fits into memory."""


class DeviceLostError(CrossgraftError, RuntimeError):
    """An accelerator failed in mid-run; what was finished is kept."""


class ExportError(CrossgraftError, RuntimeError):
    """A model cannot be exported, gives other outputs once it was loaded again, or cannot be sent to the hub."""


class ContractError(CrossgraftError, AssertionError):
    """A plug-in breaks a promise of its slot; the message says which, and with which numbers.

    It is an ``AssertionError``, so that pytest counts it as a failed test.
    """


class DivergedError(CrossgraftError, ArithmeticError):
    """A loss, a gradient or a weight is no longer a finite number; the message says in which step and what to try."""


class MissingError(CrossgraftError):
    """Something that can be installed or downloaded is not here."""

    exit_code = 4


class MissingExtraError(MissingError, ImportError):
    """An optional package is not installed; the message names the extra."""


class MissingWeightsError(MissingError, FileNotFoundError):
    """Weights are not on this machine; the message says which file to put where."""

    def __str__(self) -> str:  # OSError would format its arguments as errno and text
        return str(self.args[0])


class WeightsMismatchError(CrossgraftError, ValueError):
    """A checkpoint does not fit the architecture: missing, unexpected or mis-shaped keys, all listed."""

    exit_code = 3


class NotApplicable(CrossgraftError):  # noqa: N818 - an answer, not a failure
    """A method has no meaning for this input; ``reason`` is shown instead of a number."""

    exit_code = 3

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class CrossgraftWarning(UserWarning):
    """A result is defined but needs care; it is shown beside the number."""


def located(error: CrossgraftError, place: str) -> CrossgraftError:
    """The error with where it happened before its message: of its own class, or of the nearest one that a text alone makes."""
    text = f"{place}: {error}"
    *kinds, plain = (kind for kind in type(error).__mro__ if issubclass(kind, CrossgraftError))
    for kind in kinds:
        with suppress(TypeError):  # its constructor takes something else
            return kind(text)
    return plain(text)


def nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """The at most three registered names closest to ``name`` in spelling, best first; one word of a name may be meant, too.

    >>> nearest_names("lineer", ["leep", "linear_probe", "logme"])
    ['linear_probe', 'leep']
    >>> nearest_names("tini", ["Tiny", "tiny"])
    ['tiny', 'Tiny']
    """
    matcher = difflib.SequenceMatcher(b=name.casefold())
    closeness: dict[str, float] = {}
    for candidate in known:
        whole = _closeness(matcher, candidate.casefold(), _CLOSE)
        words = _WORD_ENDS.split(candidate.casefold())
        word = max(_closeness(matcher, word, _CLOSE_WORD) for word in words) if len(words) > 1 else 0
        closeness[candidate] = max(whole, _WORD_COUNTS * word)
    as_written = difflib.SequenceMatcher(b=name)
    ranks = {
        candidate: (-value, -_closeness(as_written, candidate, 0), len(candidate), candidate)
        for candidate, value in closeness.items()
        if value > 0
    }
    return sorted(ranks, key=lambda candidate: ranks[candidate])[:3]


_CLOSE = 0.6
_CLOSE_WORD = 0.75
_WORD_COUNTS = 0.95
_WORD_ENDS = re.compile(r"[\s_.:/-]+")


def _closeness(matcher: difflib.SequenceMatcher[str], text: str, least: float) -> float:
    """Share of equal characters, 0 below ``least``; the quick bounds spare most of the work."""
    matcher.set_seq1(text)
    if matcher.real_quick_ratio() < least or matcher.quick_ratio() < least:
        return 0
    return ratio if (ratio := matcher.ratio()) >= least else 0
