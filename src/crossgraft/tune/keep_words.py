"""Similarity that was to be kept, in words."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.tune.keeping_record import BatchNormRecord, KeepRecord
from crossgraft.words.formatting import NumberFormat

_NUMBERS = NumberFormat(decimals=3)
_LARGE = 100  # factors from here on are shown as whole numbers


def compared_in_words(*, adapted: bool) -> str:
    """The similarity, and where it is not that to the network as it came, to what.

    >>> compared_in_words(adapted=True)
    'debiased CKA to the adapted network'
    """
    return f"debiased CKA{' to the adapted network' if adapted else ''}"


def kept_in_words(keep: KeepRecord, batch_norm: BatchNormRecord | None = None) -> str:
    """What was asked for, what was found, and what it took; with ``batch_norm`` it is said where training started.

    >>> kept_in_words(KeepRecord(target=0.8, found=[0.79], factors=[3.25], tolerance=0.03))
    'debiased CKA of 0.8 on val asked for, 0.790 found; terms that keep features × 3.2'
    """
    reached = "not defined" if not (known := _known(keep)) else f"{_range([_NUMBERS(each) for each in known])} found"
    factor = _range([factor_in_words(each) for each in sorted(keep.factors)])
    compared = compared_in_words(adapted=_starts_adapted(batch_norm))
    return f"{compared} of {keep.target:g} on val asked for, {reached}; terms that keep features × {factor}"


def factor_in_words(factor: float) -> str:
    """A factor with two digits that count.

    >>> [factor_in_words(factor) for factor in (0.0001, 1.0, 13.323, 4567.8)]
    ['0.0001', '1', '13', '4568']
    """
    return f"{factor:.2g}" if factor < _LARGE else f"{factor:.0f}"


def missed_in_words(keep: KeepRecord, batch_norm: BatchNormRecord | None = None) -> str:
    """What was reached instead, and what to do.

    Args:
        keep: The similarity that was to be kept, which is not the one that was found.
        batch_norm: What BatchNorm did; frozen statistics are advised only where they moved, and it is said where training
            started.
    """
    missed = [value for value in _known(keep) if abs(value - keep.target) > keep.tolerance]
    num_undefined = keep.found.count(None)
    said: list[str] = []
    if missed:
        several = f"{len(missed)} of {len(keep.found)} models that were kept have"
        models = "the model that was kept has" if len(keep.found) == 1 else several
        reached = _range([_NUMBERS(value) for value in missed])
        compared = compared_in_words(adapted=_starts_adapted(batch_norm))
        said.append(f"--keep {keep.target:g} was not reached: {models} a {compared} of {reached} on val.")
    if num_undefined:
        models = "" if len(keep.found) == 1 else f" for {num_undefined} of {len(keep.found)} models"
        reason = "there are too few images, or features have collapsed"
        said.append(f"--keep {keep.target:g}: the similarity on val is not defined{models}; {reason}.")
    if any(value < keep.target for value in missed):
        moves = batch_norm is not None and bool(batch_norm.num_layers) and batch_norm.effective_mode != "frozen"
        frozen = ", or --batch-norm frozen" if moves else ""
        said.append(f"Where less was kept, give more epochs or a lower --learning-rate{frozen}.")
    if any(value > keep.target for value in missed):
        said.append("Where more was kept, give more epochs or a higher --learning-rate.")
    return " ".join(said)


def _starts_adapted(batch_norm: BatchNormRecord | None) -> bool:
    return batch_norm is not None and batch_norm.mode == "adapt"


def _known(keep: KeepRecord) -> list[float]:
    return sorted(value for value in keep.found if value is not None)


def _range(ascending: Sequence[str]) -> str:
    """Texts of the smallest and the largest, or of the only one."""
    first, last = ascending[0], ascending[-1]
    return first if first == last else f"{first} to {last}"
