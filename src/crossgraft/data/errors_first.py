"""Which of two mistakes is said: one in the data before one in the models."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from crossgraft.data import Dataset
from crossgraft.data.listing import list_rows, make_request
from crossgraft.errors import CrossgraftError, UntrustedCodeError
from crossgraft.options._option import Options, narrowed
from crossgraft.options.data import SourceOptions
from crossgraft.progress import Reporter


@contextmanager
def data_errors_first(data: str | Path | Dataset, options: Options) -> Generator[None]:
    """Where the body fails, list the rows of ``data``, so that a wrong path or column is what the user hears of first.

    Names of models are looked up before the data, which costs less; but who mistyped both must correct the data anyway, and
    nothing is listed twice where nothing is wrong. No image is decoded, and nothing is fetched.

    Args:
        data: As in ``open_dataset``, or an open data set.
        options: Options with those of ``SourceOptions``.

    Raises:
        CrossgraftError: That of the data, else that of the body.
    """
    try:
        yield
    except UntrustedCodeError:
        raise  # what may run is decided before anything is read
    except CrossgraftError as error:
        source = narrowed(SourceOptions, options)
        if not isinstance(data, Dataset) and not source.allow_download:  # with it listing could fetch the data
            try:
                list_rows(data, make_request(source, use_split=None), Reporter(quiet=True))
            except CrossgraftError as wrong:
                raise wrong from error
        raise
