"""What one cell says, in whichever column and source it stands: nothing, a number, or an id under one of its spellings."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple
from unicodedata import category, decimal

import numpy as np

_EMPTY = frozenset({"", "nan", "na", "n/a", "#n/a", "n.a.", "<na>", "null", "nat", "\\n"}) | {
    f"#{word}" for word in ("value!", "ref!", "div/0!", "num!", "name?", "null!")
}
"""What programs write where nothing is known: pandas, R, Excel (also where a formula failed), SQL."""
_SAYS_UNKNOWN = frozenset({
    "none", "unknown", "not known", "not available", "not recorded", "not reported", "not specified", "not provided",
    "not applicable", "unspecified", "undefined", "missing", "anonymous", "anonymized", "anonymised", "unk", "n/d",
    "n.d.", "tbd", "(blank)", ".", "..", "...", "…", "-", "--", "–", "—", "?", "??",
})  # fmt: skip
"""What people write there; a class or a category may be called so as well."""

_MINUS_ONE = ("-1", "-1.0")
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,000)+", re.ASCII)
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+", re.ASCII)
LARGEST_EXACT = 2.0**53
"""Beyond it a float is no longer the whole number that was written."""
_WHOLE = re.compile(r"(0*)(\d+?)([.,]0+)?", re.ASCII)


def is_empty(cell: object) -> bool:
    """Whether a program wrote that nothing is known: None, NaN, a blank, ``NA``, ``N/A``, ``null`` and the like.

    >>> [is_empty(cell) for cell in (None, float("nan"), " ", "NA", "#N/A", "unknown", 0)]
    [True, True, True, True, True, False, False]
    """
    return cell is None or cell != cell or _word(cell) in _EMPTY


def says_unknown(cell: object) -> bool:
    """Whether nothing is known, or somebody wrote so in a word: ``unknown``, ``none``, ``-``, ``?``.

    >>> [says_unknown(cell) for cell in ("NA", "Unknown", "?", "-", "P7", "0")]
    [True, True, True, True, False, False]
    """
    return is_empty(cell) or _word(cell) in _SAYS_UNKNOWN


def is_no_id(cell: object) -> bool:
    """Whether a cell of ids names nobody: as ``says_unknown``, or −1, which pandas and clusterings write for it.

    >>> [is_no_id(cell) for cell in ("NA", -1, "-1.0", 0, "P-1")]
    [True, True, True, False, False]
    """
    return says_unknown(cell) or _word(cell) in _MINUS_ONE


def may_be_no_label(label: object) -> bool:
    """Whether a label may say that it is not known: as ``says_unknown``, or −1; ``none`` is a grade.

    >>> [may_be_no_label(label) for label in ("unknown", -1, "none", 0)]
    [True, True, False, False]
    """
    return _word(label) in _MINUS_ONE or (says_unknown(label) and (label is None or _word(label) != "none"))


def number_in(cell: str) -> float | None:
    """The finite number that a cell is, with a point or a comma before its decimals; None for anything else.

    ``1,000`` may be one or a thousand, and is neither.

    >>> [number_in(cell) for cell in ("0.23", "0,23", "1e3", "1,000", "1_0", "P7", "nan")]
    [0.23, 0.23, 1000.0, None, None, None, None]
    """
    word = cell.strip()
    if not _NUMBER.fullmatch(word) or _THOUSANDS.fullmatch(word):
        return None
    number = float(word.replace(",", "."))
    return number if np.isfinite(number) else None


def attribute_values(cells: Sequence[str]) -> np.ndarray:
    """(n,) numbers (NaN where nothing is known) where all known cells are, text (empty where nothing is known) otherwise.

    >>> attribute_values(["31", "NA", "0,5"]).tolist(), attribute_values(["f", "NA", "unknown"]).tolist()
    ([31.0, nan, 0.5], ['f', '', 'unknown'])
    """
    numbers = [np.nan if says_unknown(cell) else number_in(cell) for cell in cells]
    only_words = all(map(says_unknown, cells)) and not all(map(is_empty, cells))
    if None in numbers or only_words:
        return np.asarray(["" if is_empty(cell) else cell for cell in cells])
    return np.asarray(numbers, dtype=np.float64)


class Spelled(NamedTuple):
    """Ids under one spelling each.

    Attributes:
        values: (n,) ids; unchanged where each had one spelling already.
        num_merged: Number of ids that had several spellings.
    """

    values: np.ndarray
    num_merged: int


def one_spelling(values: np.ndarray) -> Spelled:
    """Spellings of one whole number that are certain to be one id become one.

    ``3.0`` is ``3``: programs write it where a column has gaps. ``003`` is ``3`` where all ids with leading zeros have one
    length, which ``3`` does not exceed: a spreadsheet took the zeros off. Where their lengths differ, ``03`` and ``003`` may
    be two, and stay so (``look_alikes`` finds them).

    Args:
        values: (n,) ids; only text is changed.

    >>> one_spelling(np.asarray(["3", "3.0", "003", "P7"])).values.tolist()
    ['003', '003', '003', 'P7']
    >>> one_spelling(np.asarray(["3", "03", "003"])).values.tolist()
    ['3', '03', '003']
    """
    if values.dtype.kind != "U":
        return Spelled(values, 0)
    spellings = np.unique(values).tolist()
    parsed = {word: _WHOLE.fullmatch(word.strip()) for word in spellings}
    digits = {
        word: match[1] + match[2]
        for word, match in parsed.items()
        if match is not None and not _THOUSANDS.fullmatch(word.strip())
    }
    widths = {len(number) for number in digits.values() if number.startswith("0") and len(number) > 1}
    width = widths.pop() if len(widths) == 1 else 0
    by_id: defaultdict[str, list[str]] = defaultdict(list)
    for word in spellings:
        by_id[digits[word].zfill(width) if word in digits else word].append(word)
    spelled = {word: name for name, words in by_id.items() for word in words}
    merged = sum(len(words) > 1 for words in by_id.values())
    if not merged and not any("." in word or "," in word for word in digits):
        return Spelled(values, 0)
    return Spelled(np.asarray([spelled[word] for word in values.tolist()]), merged)


def plain_number(name: str) -> str:
    """A name that is one number as it is written without sign, exponent, thousands and needless zeros; others as they are.

    >>> [plain_number(name) for name in ("+3", "3.", "1e2", "1,000", "٣", "3,50", "P+3")]
    ['3', '3', '100', '1000', '3', '3.5', 'P+3']
    """
    digits = "".join(letter if (digit := decimal(letter, None)) is None else str(digit) for letter in name.strip())
    number = number_in(digits.replace(",", "") if _GROUPED.fullmatch(digits) else digits)
    if number is None or abs(number) > LARGEST_EXACT:
        return digits if digits.isdecimal() else name
    return repr(number).removesuffix(".0")


def without_leading_zeros(name: str) -> str:
    """``name`` with every whole number in it as short as it can be written, for a comparison.

    >>> without_leading_zeros("P003 b00 1.05")
    'P3 b0 1.05'
    """
    return re.sub(r"(?<![\d.,])0+(?=\d)", "", name)


def _word(cell: object) -> str:
    """In lower case, without what is not seen around it: blanks, a byte order mark."""
    text = str(cell)
    drawn = [index for index, letter in enumerate(text) if not letter.isspace() and category(letter) != "Cf"]
    return text[drawn[0] : drawn[-1] + 1].casefold() if drawn else ""
