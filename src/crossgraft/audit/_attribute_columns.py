"""Columns of texts or numbers as attributes that an image has or does not have."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Shaped

from crossgraft.errors import DataError, UnknownNameError, UsageError

Column = Shaped[np.ndarray, " num_images"]
_Numbers = Float64[np.ndarray, " num_known"]
_Chosen = Bool[np.ndarray, " num_known"]
_NAMES_SHOWN = 10
_CUT = re.compile(r"([<>]?)\s*(\S+)")


class BinaryAttribute(NamedTuple):
    """A column as yes or no.

    Attributes:
        flags: (n,) whether the attribute is present; False where it is not known.
        known: (n,) whether the column says anything.
        in_words: What is present: ``sex F``, ``age above 55``.
    """

    flags: np.ndarray
    known: np.ndarray
    in_words: str

    @property
    def num_missing(self) -> int:
        """Images without a value, which are left out."""
        return int((~self.known).sum())


def binary_attribute(
    values: Column, present: str | float | None = None, *, name: str, missing: Collection[str] = ()
) -> BinaryAttribute:
    """A column of texts or numbers as an attribute that images have or do not have.

    Two values: the one that is named, or else the last in order. More texts: the one that is named against all others. More
    numbers: those above the cut that is named, or else above the median; where nothing lies above it, the largest number alone.

    Args:
        values: (n,) texts, numbers or truth values; None, NaN and blanks are missing.
        present: Value that counts as present; of numbers the cut, as ``55`` or ``>55``, or ``<55``; of codes ``=3``.
        name: Name of the column.
        missing: Further values that say nothing, such as ``unknown``.

    Raises:
        DataError: All known values are equal, or all lie on one side of the cut.
        UsageError: There are more than two texts and none is named, or the cut is no number.
        UnknownNameError: No image has the named value; the message gives the nearest ones.
    """
    texts = [_text(value, missing) for value in np.asarray(values).tolist()]
    known = np.array([text is not None for text in texts], dtype=bool)
    found = [text for text in texts if text is not None]
    numbers = _numbers(found)
    if numbers is not None:
        found = [_as_text(number) for number in numbers.tolist()]
    names = sorted(set(found))
    if len(names) < 2:
        has = f"one value ({names[0]})" if names else "no value"
        raise DataError(
            f"The column {name} has {has}, and is missing for {int((~known).sum())} of {len(known)} images; an attribute needs "
            "two values."
        )
    wanted = None if present is None else str(present).strip()
    start = (wanted or " ")[:1]
    if numbers is None or start == "=" or (len(names) == 2 and start not in "<>"):
        chosen, words = _named(found, numbers, names, wanted, name)
    else:
        chosen, words = _cut(numbers, wanted, name)
    flags = np.zeros(len(known), dtype=bool)
    flags[known] = chosen
    return BinaryAttribute(flags, known, words)


def _named(
    texts: Sequence[str], numbers: _Numbers | None, names: Sequence[str], wanted: str | None, name: str
) -> tuple[_Chosen, str]:
    """The images of one value, and what it is in words."""
    if wanted is None and len(names) > 2:
        shown = ", ".join(names[:_NAMES_SHOWN]) + (" …" if len(names) > _NAMES_SHOWN else "")
        raise UsageError(
            f"The column {name} has {len(names)} values ({shown}). Name the one that counts as present, which is set against "
            "all others, or those that mean a missing value."
        )
    if wanted is None:
        wanted = names[-1] if numbers is None else _as_text(float(numbers.max()))
    elif numbers is not None:
        wanted = wanted.removeprefix("=").strip()
        wanted = wanted if (number := _number(wanted)) is None else _as_text(number)
    if wanted not in names:
        raise UnknownNameError(f"value of the column {name}", wanted, names)
    return np.array([text == wanted for text in texts], dtype=bool), f"{name} {wanted}"


def _cut(numbers: _Numbers, wanted: str | None, name: str) -> tuple[_Chosen, str]:
    """The images on one side of a number, and which side in words."""
    if wanted is None:
        cut = float(np.quantile(numbers, 0.5, method="inverted_cdf"))
        if cut == numbers.max():  # nothing lies above it
            cut = float(numbers[numbers < cut].max())
        return numbers > cut, f"{name} above {cut:.10g}"
    matched = _CUT.fullmatch(wanted)
    number = None if matched is None else _number(matched[2])
    if matched is None or number is None:
        raise UsageError(f"The column {name} holds numbers, and {wanted} is no cut of them. Write for example: >55.")
    below = matched[1] == "<"
    words = f"{name} {'below' if below else 'above'} {number:.10g}"
    chosen = numbers < number if below else numbers > number
    if chosen.all() or not chosen.any():
        raise DataError(
            f"{'Every' if chosen.all() else 'No'} image has {words}: values lie between {numbers.min():.10g} and "
            f"{numbers.max():.10g}. Choose another cut."
        )
    return chosen, words


def _text(value: object, missing: Collection[str]) -> str | None:
    """The value as text, whole numbers without a point; None where it is missing."""
    if value is None or value != value:
        return None
    text = _as_text(value) if isinstance(value, float) else str(value).strip()
    return None if not text or text.casefold() == "nan" or text in missing else text


def _as_text(number: float) -> str:
    return str(int(number)) if number.is_integer() else str(number)


def _number(text: str) -> float | None:
    """The number that this text is; None for what is no finite one."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _numbers(texts: Sequence[str]) -> _Numbers | None:
    """All values as numbers; None if one is not."""
    found = [_number(text) for text in texts]
    return None if None in found else np.array(found, dtype=np.float64)
