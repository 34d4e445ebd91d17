"""Partial-k: train the last blocks, or named parts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models.classifier import Classifier
from crossgraft.tune.methods._selection import fully_trained_modules, sort_parameters
from crossgraft.tune.protocols import Method, Selection

_DEFAULT_BLOCKS = 3
_BETWEEN_NAMES = "+"
_INDEX = re.compile(r"-?\d+")
_LISTED_BLOCKS = 30


@dataclass(frozen=True)
class Partial(Method):
    """Train the last k building blocks, what follows them (the final norm or convolution) and the head.

    Attributes:
        blocks: Number k of blocks from the end; 3 if neither this nor ``names`` is given.
        names: Instead of the last blocks exactly these parts, separated by ``+``: names or globs of modules and
            parameters with or without ``body.`` (``layer4.*``), and numbers of blocks from 0 (``-1``: the last).
    """

    name: ClassVar[str] = "partial"
    title: ClassVar[str] = "Partial fine-tuning"
    citation: ClassVar[str] = "Jia et al.: Visual Prompt Tuning, ECCV 2022 (arXiv 2203.12119), Partial-k"

    blocks: int | None = None
    names: str | int = ""

    def __post_init__(self) -> None:
        if self.blocks is not None and self.names != "":
            raise UsageError("Partial fine-tuning takes blocks or names, not both: names alone say what is trained.")
        if self.blocks is not None and self.blocks < 1:
            raise UsageError(f"Partial fine-tuning needs at least one block, asked for {self.blocks}; linear has none.")

    def select(self, classifier: Classifier) -> Selection:
        """The last blocks with what follows, or the named parts; always the head.

        Raises:
            UnknownNameError: A name fits no part; the message gives the nearest ones.
            UsageError: The network has fewer blocks; the message names them.
        """
        if self.names == "":
            return self._select_last(classifier, _DEFAULT_BLOCKS if self.blocks is None else self.blocks)
        parts = [part.strip() for part in str(self.names).split(_BETWEEN_NAMES)]
        chosen = {name for part in parts for name in _parameters_of(classifier, part)}
        return _selection(classifier, chosen.__contains__, trained=f"named by {self.names}", frozen="not named", and_behind=False)

    def _select_last(self, classifier: Classifier, number: int) -> Selection:
        if number > len(classifier.blocks):
            raise UsageError(
                f"{classifier.recipe.name} has {len(classifier.blocks)} blocks, asked for the last {number}. "
                f"{_list_blocks(classifier)} Ask for fewer, or use the method full."
            )
        first = len(classifier.blocks) - number + 1
        depths = classifier.depths()
        return _selection(
            classifier,
            lambda name: depths[name] >= first,
            trained=f"in or behind the last {number} of {len(classifier.blocks)} blocks",
            frozen=f"in front of the last {number} blocks",
            and_behind=True,
        )


def _selection(
    classifier: Classifier, is_trained: Callable[[str], bool], *, trained: str, frozen: str, and_behind: bool
) -> Selection:
    modules = fully_trained_modules(classifier, is_trained, and_behind=and_behind)
    return sort_parameters(classifier, is_trained, trained=trained, frozen=frozen, train_mode=modules)


def _parameters_of(classifier: Classifier, part: str) -> list[str]:
    """Trainable parameters of the body that ``part`` means: a number of a block, a name or a glob."""
    if _INDEX.fullmatch(part):
        part = _block(classifier, int(part))
    known = [f"body.{name}" for name, _ in classifier.body.named_parameters()]
    names = [name for name in known if _fits(name, part) or _fits(name, f"body.{part}")]
    if not names:
        parts = [f"body.{name}" for name, _ in classifier.body.named_modules() if name]
        raise UnknownNameError(f"part of {classifier.recipe.name}", part, {*parts, *known}, hint=_list_blocks(classifier))
    untrainable = classifier.untrainable
    trainable = [name for name in names if name not in untrainable]
    if not trainable:
        raise UsageError(f"{part} of {classifier.recipe.name} cannot be trained: {untrainable[names[0]]}.")
    return trainable


def _fits(parameter: str, pattern: str) -> bool:
    """Whether the parameter, or a module that contains it, has this name."""
    words = parameter.split(".")
    return any(fnmatchcase(".".join(words[:end]), pattern) for end in range(1, len(words) + 1))


def _block(classifier: Classifier, index: int) -> str:
    count = len(classifier.blocks)
    if not -count <= index < count:
        raise UsageError(f"{classifier.recipe.name} has no block {index}. {_list_blocks(classifier)}")
    return classifier.blocks[index]


def _list_blocks(classifier: Classifier) -> str:
    blocks = classifier.blocks
    if not blocks:
        return "It has no blocks."
    shown = blocks if len(blocks) <= _LISTED_BLOCKS else [*blocks[:3], "…", *blocks[-3:]]
    return f"Its blocks, 0 to {len(blocks) - 1}: {', '.join(shown)}."
