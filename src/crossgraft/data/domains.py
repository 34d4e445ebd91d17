"""Domains: where images come from, such as hospitals, scanners or writers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from crossgraft.data.cells import is_empty
from crossgraft.data.class_names import natural_key
from crossgraft.data.rows import ImageRows
from crossgraft.data.selection import column_of
from crossgraft.errors import DataError
from crossgraft.words.formatting import counted

_NAMED_ROWS = 5


@dataclass(frozen=True, eq=False)
class Domains:
    """The domain of each row.

    Attributes:
        column: Column that says it.
        names: Names of the domains, in natural order.
        index: (n,) place of each row's domain in ``names``.
    """

    column: str
    names: tuple[str, ...]
    index: Int64[np.ndarray, " num_images"]

    @property
    def of_rows(self) -> np.ndarray:
        """(n,) name of each row's domain."""
        return np.asarray(self.names)[self.index]


def read_domains(rows: ImageRows, column: str) -> Domains:
    """The domains that a column names.

    Raises:
        UnknownNameError: There is no such column.
        DataError: A value is missing, or all are the same.
    """
    values = column_of(rows, column, flag="--domains")
    empty = np.flatnonzero([is_empty(value) for value in values.tolist()])
    if empty.size:
        names = ", ".join(rows.image_name(int(row)) for row in empty[:_NAMED_ROWS])
        more = " …" if empty.size > _NAMED_ROWS else ""
        raise DataError(
            f"The column {column} of {rows.name} does not say where {counted(int(empty.size), 'image')} of {len(rows)} come from "
            f"({names}{more}). Fill it in, or leave these images out."
        )
    texts = values.astype(str)
    names = sorted(set(texts.tolist()), key=natural_key)
    if len(names) < 2:
        raise DataError(
            f"All {len(rows)} images of {rows.name} come from {column} {names[0]}: --domains needs two domains at least. "
            "Give images of another one, or leave out --domains."
        )
    place = {name: number for number, name in enumerate(names)}
    return Domains(column, tuple(names), np.array([place[text] for text in texts.tolist()], dtype=np.int64))
