"""What a finished run can do without: pictures, pages, stores. Where it fails, that is a warning, and the result stays."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from crossgraft.errors import CrossgraftError
from crossgraft.progress import Reporter
from crossgraft.storage.atomic import describe_os_error

AGAIN = "Run the same command again, without --overwrite, to make up for it."


@contextmanager
def secondary(missing: str, reporter: Reporter, *, advice: str = AGAIN) -> Generator[None]:
    """Turn what goes wrong inside into a warning; for what is written when the result is on the disk already.

    Args:
        missing: What is not there then, as a sentence without its end: ``The page was not written``.
        reporter: Reporter that gets the warning.
        advice: What to do, after the advice of the error itself.
    """
    try:
        yield
    except CrossgraftError as error:
        reporter.warn(f"{missing}: {error} {advice}")
    except OSError as error:
        reporter.warn(f"{missing}: {describe_os_error(error)}. {advice}")
