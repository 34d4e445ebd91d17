"""What a program may give as data in place of a name: a table or a list of files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard, cast

if TYPE_CHECKING:
    import pandas as pd


def given_kind(data: object) -> str | None:
    """``DataFrame``, ``files`` for a sequence of paths, or None for anything else."""
    if _is_frame(data):
        return "DataFrame"
    is_list = isinstance(data, Sequence) and not isinstance(data, str | bytes) and len(cast("Sequence[object]", data))
    if is_list and all(isinstance(each, str | os.PathLike) for each in cast("Sequence[object]", data)):
        return "files"
    return None


def _is_frame(data: object) -> TypeGuard[pd.DataFrame]:
    pandas = sys.modules.get("pandas")  # who has a DataFrame has imported it
    return pandas is not None and isinstance(data, pandas.DataFrame)
