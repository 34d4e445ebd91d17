"""What is warned of by code that others may have written, for a record as well."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def heard_warnings(said: list[str]) -> Generator[None]:
    """Add to ``said`` what is warned of inside, each text once; afterwards it is warned of as it would have been.

    Args:
        said: Texts of all ``UserWarning``; those for developers are left out.
    """
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            yield
    finally:
        for warning in {(str(each.message), each.category): each for each in caught}.values():
            if issubclass(warning.category, UserWarning):
                said.append(str(warning.message))
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
