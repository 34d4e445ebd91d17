"""Labels as people write them, and the classes 0 … C−1 behind them, in the order people expect.

Names that people take for one differ only by case, white space, the form of letters or the spelling of a number.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crossgraft.data.cells import may_be_no_label, plain_number, without_leading_zeros
from crossgraft.errors import DataError, UsageError, nearest_names
from crossgraft.paths import shortened
from crossgraft.types import ClassIndices, Labels, Targets
from crossgraft.words.formatting import listed
from crossgraft.words.visible import storable


class LookAlikes(NamedTuple):
    """Two or more names that become one when what they differ by is taken away.

    Attributes:
        names: Names, in the order in which they were given.
        differ_by: Differences in words, for example ``case and white space``.
    """

    names: tuple[str, ...]
    differ_by: str

    def listed(self, counts: Mapping[str, int] | None = None) -> str:
        """The names in running text, in quotation marks where their difference cannot be seen otherwise.

        Args:
            counts: Number of images of each, to be said behind the name.
        """
        quoted = [name if self.differ_by == "case" else f"“{name}”" for name in self.names]
        if counts is None:
            return " and ".join(quoted)
        return " and ".join(f"{shown} ({counts[name]})" for shown, name in zip(quoted, self.names, strict=True))


def _without_spaces(name: str) -> str:
    """White space, and characters that are not drawn at all, such as a byte order mark."""
    return "".join(letter for letter in name if not letter.isspace() and unicodedata.category(letter) != "Cf")


def _of_one_form(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _without_hyphens(name: str) -> str:
    """All hyphens, dashes and underscores as one, and none between a letter and a number; ``1-12`` is not ``11-2``."""
    alike = re.sub(r"[_\u2010-\u2015\u2212]", "-", name)
    return re.sub(r"(?<=[^\W\d])-+(?=\d)", "", alike)


_DIFFERENCES: Mapping[str, Callable[[str], str]] = {
    "case": str.casefold,
    "white space": _without_spaces,
    "the Unicode form of their letters (NFC, NFD)": _of_one_form,
    "leading zeros": without_leading_zeros,
    "the spelling of a number": plain_number,
}
"""What names may differ by, and what takes it away."""
_ID_DIFFERENCES: Mapping[str, Callable[[str], str]] = {"hyphens": _without_hyphens, **_DIFFERENCES}


def look_alikes(names: Sequence[str], *, are_ids: bool = False) -> list[LookAlikes]:
    """Groups of names that look alike, in the order of their first names: BKL and bkl, “MEL” and “MEL ”.

    Args:
        names: Names, each once.
        are_ids: Whether ``P-3``, ``P_3`` and ``P3`` look alike, too.
    """
    differences = _ID_DIFFERENCES if are_ids else _DIFFERENCES
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[_without(differences, name)].append(name)
    return [LookAlikes(tuple(group), _difference(group, differences)) for group in alike.values() if len(group) > 1]


def _without(differences: Mapping[str, Callable[[str], str]], name: str) -> str:
    for take_away in differences.values():
        name = take_away(name)
    # Case may take letters apart (İ becomes i and a dot), which the form of the letters must not depend on.
    return _of_one_form(name) if _of_one_form in differences.values() else name


def _difference(group: Sequence[str], differences: Mapping[str, Callable[[str], str]]) -> str:
    """Each difference without which some of these names would still be two.

    Several may take the same away, as case and form do with the sign of the kelvin and a K; then the first one counts.
    """
    needed = [
        words
        for words in differences
        if _are_several(group, {name: take_away for name, take_away in differences.items() if name != words})
    ]
    alone = [words for words, take_away in differences.items() if not _are_several(group, {words: take_away})]
    return " and ".join(needed or alone[:1])


def _are_several(group: Sequence[str], differences: Mapping[str, Callable[[str], str]]) -> bool:
    return len({_without(differences, name) for name in group}) > 1


def whole_letters(text: str) -> str:
    """``text`` with every letter as one character where there is one (Unicode's form NFC); what is no UTF-8 is escaped."""
    return unicodedata.normalize("NFC", storable(text))


_DIGITS = re.compile(r"([0-9]+)")


def natural_key(text: str) -> tuple[list[tuple[int, int, str]], str]:
    """Sort key that counts: ``grade 2`` comes before ``grade 10``; case decides only between equals.

    >>> sorted(["10", "2", "b", "A"], key=natural_key)
    ['2', '10', 'A', 'b']
    """
    parts = [part for part in _DIGITS.split(text) if part]
    return [(0, int(part), "") if part[0] in "0123456789" else (1, 0, part.casefold()) for part in parts], text


class Classes(NamedTuple):
    """What is to be told apart.

    Attributes:
        names: Names of the C classes, or of the L labels.
        targets: Class of each row, or (n, L) of 0 and 1.
        notices: Notices to the user, one sentence each.
    """

    names: tuple[str, ...]
    targets: Targets
    notices: tuple[str, ...] = ()


def index_classes(labels: Labels, names: Sequence[str] | None = None) -> tuple[tuple[str, ...], ClassIndices]:
    """The class names (numbers in numeric, words in natural order) and each row's place among them.

    Args:
        labels: One label per row: whole numbers, words or booleans.
        names: Name of class number 0, 1, …, if the labels are such numbers.
    """
    values, inverse = np.unique(labels, return_inverse=True)
    if values.dtype.kind in "US":
        order = sorted(range(len(values)), key=lambda i: natural_key(str(values[i])))
    else:
        order = list(range(len(values)))
    position = np.empty(len(values), dtype=np.int64)
    position[order] = np.arange(len(values))
    shown = [str(values[i]) if names is None else names[int(values[i])] for i in order]
    return tuple(shown), position[inverse.ravel()]


def name_classes(labels: np.ndarray, label_names: Sequence[str] | None, wanted: str | Path | Sequence[str] | None) -> Classes:
    """Classes or labels in order, under the names that the user gave.

    Args:
        labels: (n,), or (n, L) of 0 and 1.
        label_names: Names that the source gives label number 0, 1, …, or column 0, 1, …; None: as they are.
        wanted: Names in order, or a text file with one per line. For labels that are whole numbers, name k belongs to label
            k. Words, and labels that have names, are put into this order; each must be in the list.

    Raises:
        DataError: A label has no name in the list, or is NaN.
    """
    if labels.dtype.kind == "f" and (missing := np.flatnonzero(np.isnan(labels).reshape(len(labels), -1).any(axis=1))).size:
        raise DataError(
            f"{len(missing)} of {len(labels)} labels are NaN, the first in row {missing[0] + 1}. Fill them, or leave these "
            "images out."
        )
    names = None if wanted is None else read_class_names(wanted)
    if labels.ndim == 2:
        classes = _name_columns(labels.astype(np.int64), label_names, names)
    elif names is None:
        classes = Classes(*index_classes(labels, label_names))
    elif _are_numbers(labels, names):
        classes = _name_numbers(labels.astype(np.int64), names)
    else:
        classes = _order_words(labels.astype(str), names)
    notices = (*classes.notices, *_notices_of_look_alikes(classes.names))
    notices += _notices_of_unknown(classes.names) if names is None else ()
    return classes._replace(notices=notices)


def read_class_names(wanted: str | Path | Sequence[str]) -> tuple[str, ...]:
    """Names in order, from a sequence or from a UTF-8 text file with one name per line.

    Raises:
        DataError: The file is missing or not UTF-8 text, a line between names is empty, or a name stands there twice.
        UsageError: No name was given.
    """
    if isinstance(wanted, str | Path):
        names, where = _lines_of(Path(wanted)), f"the class-name file {Path(wanted).name}"
    else:
        names, where = [str(name).strip() for name in wanted], "the list of class names"
    if not names:
        raise UsageError(f"There is no name in {where}. Give one name per line, in the order of the classes.")
    if "" in names:
        line_number = names.index("") + 1
        raise DataError(f"Line {line_number} of {where} is empty, so the names after it would move. Fill or remove it.")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"The name {twice[0]} stands {names.count(twice[0])} times in {where}. Names must differ.")
    return tuple(names)


def _lines_of(path: Path) -> list[str]:
    try:
        text = whole_letters(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(
            f"Cannot read the class-name file {shortened(str(path))}: {error.strerror}. Give a text file with one name per line; "
            "Python takes a list of names, too."
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(f"The class-name file {path.name} is not UTF-8 text (byte {error.start}). Save it so.") from error
    return [line.strip() for line in text.rstrip().split("\n")] if text.strip() else []


def _are_numbers(labels: np.ndarray, names: Sequence[str]) -> bool:
    """Whether the labels are places in the list. Words such as '0' and '12' are, unless the list itself holds them."""
    if labels.dtype.kind in "iub":
        return True
    words = set(labels.astype(str).tolist())
    return not words & set(names) and all(word.isascii() and word.isdecimal() for word in words)


def _name_numbers(labels: np.ndarray, names: Sequence[str]) -> Classes:
    if labels.min() < 0 or labels.max() >= len(names):
        raise DataError(
            f"The labels go from {labels.min()} to {labels.max()}, but {len(names)} class names are given, for the labels 0 "
            f"to {len(names) - 1} (--class-names). Give a name for every label, one per line, label 0 first."
        )
    shown, targets = index_classes(labels, names)
    return Classes(shown, targets, _unused(names, shown))


def _order_words(labels: np.ndarray, names: Sequence[str]) -> Classes:
    _refuse_unlisted(np.unique(labels).tolist(), names)
    present = set(labels.tolist())
    shown = tuple(name for name in names if name in present)
    class_index = {name: index for index, name in enumerate(shown)}
    targets = np.asarray([class_index[label] for label in labels.tolist()], dtype=np.int64)
    return Classes(shown, targets, _unused(names, shown))


def _name_columns(labels: np.ndarray, known_names: Sequence[str] | None, names: Sequence[str] | None) -> Classes:
    """Columns of labels in the wanted order; a name without a column becomes a label that no image has."""
    num_labels = labels.shape[1]
    if names is None:
        shown = tuple(known_names) if known_names is not None else tuple(f"label {number}" for number in range(num_labels))
        return Classes(shown, labels, _one_sided(labels, shown))
    if known_names is None:
        if len(names) != num_labels:
            raise DataError(
                f"There are {num_labels} columns of labels, but {len(names)} class names (--class-names). Give one per column."
            )
        return Classes(tuple(names), labels, _one_sided(labels, names))
    _refuse_unlisted(known_names, names)
    column = {name: labels[:, index] for index, name in enumerate(known_names)}
    ordered = np.column_stack([column.get(name, np.zeros(len(labels), dtype=np.int64)) for name in names])
    return Classes(tuple(names), ordered, _one_sided(ordered, names))


def _refuse_unlisted(known_names: Sequence[str], names: Sequence[str]) -> None:
    unlisted = [name for name in known_names if name not in names]
    if unlisted:
        near = nearest_names(unlisted[0], names)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        more = f", and {len(unlisted) - 1} more labels are not" if len(unlisted) > 1 else ""
        raise DataError(
            f"The label {unlisted[0]} is not among the {len(names)} class names (--class-names){more}.{hint} Add it to the "
            "list, or correct the label."
        )


def _unused(names: Sequence[str], used: Sequence[str]) -> tuple[str, ...]:
    unused = [name for name in names if name not in used]
    return (f"No image of the {_listed('class', 'classes', unused)} in the rows used.",) if unused else ()


def _one_sided(targets: np.ndarray, names: Sequence[str]) -> tuple[str, ...]:
    """Labels that no image has, or every image; they cannot be scored."""
    counts = targets.sum(axis=0)
    nobody = [name for name, count in zip(names, counts, strict=True) if count == 0]
    everybody = [name for name, count in zip(names, counts, strict=True) if count == len(targets)]
    notices = [f"No image has the {_listed('label', 'labels', nobody)} in the rows used."] if nobody else []
    notices += [f"Every image has the {_listed('label', 'labels', everybody)} in the rows used."] if everybody else []
    return tuple(notices)


def _notices_of_look_alikes(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        f"The classes {alike.listed()} differ only by {alike.differ_by} and are kept apart. If they are one class, correct the "
        "labels."
        for alike in look_alikes(names)
    )


def _notices_of_unknown(names: Sequence[str]) -> tuple[str, ...]:
    """Classes whose name may say that there is none; ``-`` beside ``+`` is a result."""
    doubtful = [name for name in names if may_be_no_label(name) and not (name == "-" and "+" in names)]
    return tuple(
        f"The class {name} may mean that the label is not known. If so, leave these images out (--uncertain leave-out)."
        for name in doubtful
    )


def _listed(one: str, several: str, names: Sequence[str]) -> str:
    return f"{one if len(names) == 1 else several} {listed(names)}"
