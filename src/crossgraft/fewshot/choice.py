"""How heads are written: ``ncc,copa:learning_rate=0.005,weight_decay=0,logistic``, or objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.base import BaseEstimator, is_classifier

from crossgraft.errors import UsageError
from crossgraft.fewshot.heads import HEADS, reads_images
from crossgraft.tune.choice import choose, pieces, spell

ALL = "all"


def choose_heads(heads: str | Sequence[Any]) -> dict[str, Any]:
    """Name → head, unfitted.

    A piece between commas that is an option (``weight_decay=0``) belongs to the head before it.

    Args:
        heads: Text, texts, or scikit-learn classifiers.

    Raises:
        UsageError: No head, the same one twice, or an object that is no classifier.
        UnknownNameError: No head or option has that name.
    """
    wanted = _pieces(heads) if isinstance(heads, str) else list(heads)
    found: dict[str, Any] = {}
    for each in wanted:
        head = choose(HEADS, each)
        if not isinstance(head, BaseEstimator) or not is_classifier(head):
            raise UsageError(f"A head must be a scikit-learn classifier, got {type(head).__name__}.")
        check = getattr(head, "check", None)
        if check is not None:
            check()
        name = spell(head) if type(head) in dict(HEADS).values() else type(head).__name__
        if name in found:
            raise UsageError(f"The head {name} is given twice. Name each once, or give them other options.")
        found[name] = head
    if not found:
        raise UsageError("No head was named. Use --heads ncc,copa,logistic, or all.")
    return found


def _pieces(text: str) -> list[str]:
    if text.strip() == ALL:
        # those on features, which take milliseconds; meta_adapter needs classes to learn from
        return [name for name, head in HEADS if name != "meta_adapter" and not reads_images(head)]
    return pieces(text)
