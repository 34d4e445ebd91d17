"""The words that people use for the parts of a data set, and which rows to use."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.errors import DataError
from crossgraft.words.formatting import counted, joined

_SPLIT_WORDS = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "test": "test",
    "testing": "test",
}


def is_split_name(word: str) -> bool:
    """Whether this is one of the usual words for a split, in upper or lower case."""
    return word.strip().casefold() in _SPLIT_WORDS


def canonical_split(word: str) -> str:
    """``Training`` → ``train``, ``valid`` → ``val``, ``testing`` → ``test``; other words as they are."""
    return _SPLIT_WORDS.get(word.strip().casefold(), word.strip())


def notices_of_other_splits(splits: Sequence[str]) -> tuple[str, ...]:
    """A notice where rows are in splits that no command trains on or measures on by itself.

    Args:
        splits: Canonical split of each row.

    >>> notices_of_other_splits(["train", "eval", "train", "eval"])[0].partition(":")[0]
    '2 images are in the split eval, which is none of train, val and test'
    """
    others = [split for split in splits if split not in _SPLIT_WORDS.values()]
    if not others:
        return ()
    names = sorted(set(others))
    verb = "is" if len(others) == 1 else "are"
    which = f"split {names[0]}, which is" if len(names) == 1 else f"splits {joined(names)}, which are"
    return (
        f"{counted(len(others), 'image')} {verb} in the {which} none of train, val and test: not used where "
        "one of these is. Rename the split if they are meant.",
    )


def refuse_missing_split(wanted: str, available: Sequence[str], where: str) -> None:
    """Raise if no split is called ``wanted``.

    Raises:
        DataError: Naming the splits that there are.
    """
    if wanted not in available:
        listed = ", ".join(sorted(set(available))) or "none"
        hint = f" Rename the one to use to {wanted}." if available else ""
        raise DataError(f"{where} has no rows of the split {wanted}. Its splits: {listed}.{hint}")
