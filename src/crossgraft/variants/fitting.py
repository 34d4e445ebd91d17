"""Options of all variants that mean something to some of them only: who gets them, and who is trained without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from crossgraft.errors import UsageError
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.protocols.regularizer import keeps_reference
from crossgraft.variants.variant import Variant
from crossgraft.words.formatting import joined


class _Fitting(NamedTuple):
    """One such option, which the others do not get.

    Attributes:
        name: Its name.
        is_given: Whether it has a value that does not mean something to everybody.
        fits: Whether that means something to a variant.
        reason: Reason why it means nothing to one of the others, after its name.
        advice: What to do where it fits none.
    """

    name: str
    is_given: Callable[[object], bool]
    fits: Callable[[Variant], bool]
    reason: str
    advice: str


def _has_keeper(variant: Variant) -> bool:
    return any(keeps_reference(each) and getattr(each, "pulls", True) for each in variant.plugins[1:])


_FITTING = (
    _Fitting(
        "keep",
        lambda value: value is not None,
        _has_keeper,
        "has no regulariser that compares with the start",
        "Add one, for example --compare full,linear,repsim",
    ),
    _Fitting(
        "batch_norm",
        lambda value: value in ("frozen", "adapt"),
        lambda variant: not variant.starts_from_scratch,
        "starts from random weights, which have no statistics that are worth keeping",
        "Add one that starts from the pretrained network, for example full",
    ),
)


def without_meaning(options: TuneOptions, variant: Variant) -> dict[str, None]:
    """Options of all variants that mean nothing to this one, to be left open; what it says itself counts."""
    return {
        each.name: None
        for each in _FITTING
        if each.name not in variant.settings and each.is_given(getattr(options, each.name)) and not each.fits(variant)
    }


def left_out(options: TuneOptions, variants: Sequence[Variant]) -> list[str]:
    """One sentence for each option that some variants are trained without.

    Raises:
        UsageError: All of them are, but for those that say it themselves.
    """
    said: list[str] = []
    for each in _FITTING:
        asking = [variant for variant in variants if each.name not in variant.settings]
        others = [variant for variant in asking if each.name in without_meaning(options, variant)]
        if not others:
            continue
        typed = f"--{each.name.replace('_', '-')} {getattr(options, each.name)}"
        if len(others) == len(asking):
            raise UsageError(
                f"{typed} means nothing to any variant of --compare that it is given for: {_names(others)} {each.reason}. "
                f"{each.advice}, or leave {typed} out."
            )
        own = joined([variant.name for variant in asking if variant not in others])
        said.append(f"{typed} is for {own}. Trained without it: {_names(others)} {each.reason}.")
    return said


def _names(variants: Sequence[Variant]) -> str:
    """The names, and the beginning of what is said of each."""
    first, *more = [variant.name for variant in variants]
    return f"{joined([first, *more])}, each of which" if more else f"{first}, which"
