"""How heads are written: ``ncc,copa:learning_rate=0.005,weight_decay=0,logistic``, or objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import Any

from sklearn.base import BaseEstimator, is_classifier

from crossgraft.choice import choose, pieces, spell, written
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.fewshot.heads import HEADS, reads_images
from crossgraft.report.source import without_absolute_paths


def names_without_folders(names: Iterable[str]) -> dict[str, str]:
    """Name → the name that pages and tables show: of an absolute path in it the last part; numbered where two become one.

    >>> names_without_folders(["ncc", "tip_adapter:class_weights=/home/jane/a.npz"])["tip_adapter:class_weights=/home/jane/a.npz"]
    'tip_adapter:class_weights=…/a.npz'
    """
    shown: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for name in names:
        short = without_absolute_paths(name)
        seen[short] += 1
        shown[name] = short if seen[short] == 1 else f"{short} ({seen[short]})"
    return shown


ALL = "all"
_OF_IMAGES = "trains inside the network, seconds per episode and not milliseconds; name it in --heads"
_OF_WEIGHTS = "is class weights alone; give it some: --prompts, or zero_shot:class_weights=FILE in --heads"
_OF_CLASSES = "learns on other classes first; name some in --base-classes"
_USUAL_BASELINE = "logistic"


def choose_heads(heads: str | Sequence[Any], *, base_classes: Sequence[str] = (), has_prompts: bool = False) -> dict[str, Any]:
    """Name → head, unfitted.

    A piece between commas that is an option (``weight_decay=0``) belongs to the head before it.

    Args:
        heads: Text, texts, or scikit-learn classifiers.
        base_classes: Classes that heads may learn on first; without them ``all`` has no head that does.
        has_prompts: Whether class weights come from text, so that none have to be given.

    Raises:
        UsageError: No head, the same one twice, or an object that is no classifier.
        UnknownNameError: No head or option has that name.
    """
    texts = _pieces(heads, base_classes=base_classes, has_prompts=has_prompts) if isinstance(heads, str) else heads
    wanted = [choose(HEADS, each) for each in texts]
    by_name: dict[str, Any] = {}
    for head in wanted:
        if not isinstance(head, BaseEstimator) or not is_classifier(head):
            raise UsageError(
                f"A head is a name such as copa:learning_rate=0.005 or a scikit-learn classifier, not {type(head).__name__}. "
                f"Heads: {', '.join(HEADS.names())}."
            )
        check = getattr(head, "check", None)
        if check is not None and not (has_prompts and _needs_class_weights(head)):
            check()
        name = _name_of(head, is_alone=sum(type(each) is type(head) for each in wanted) == 1)
        if name in by_name:
            raise UsageError(f"The head {name} is given twice. Name each once, or give them other options.")
        by_name[name] = head
    if not by_name:
        raise UsageError("No head was named. Use --heads ncc,copa,logistic, or all.")
    return by_name


def heads_left_out(heads: object, *, base_classes: Sequence[str] = (), has_prompts: bool = False) -> dict[str, str]:
    """Head → why it is none of those that ``all`` stands for; empty where heads were named one by one."""
    if not _is_all(heads):
        return {}
    taken = _pieces(str(heads), base_classes=base_classes, has_prompts=has_prompts)
    return {name: _why_left_out(head) for name, head in HEADS if name not in taken}


def _why_left_out(head: object) -> str:
    if reads_images(head):
        return _OF_IMAGES
    return _OF_WEIGHTS if _needs_class_weights(head) else _OF_CLASSES


def _needs_class_weights(head: object) -> bool:
    return bool(getattr(head, "needs_class_weights", False))


def name_of_baseline(heads: Mapping[str, Any], typed: str | None) -> str:
    """The head that others are compared with: the one that was typed, or logistic regression, or the first.

    Args:
        heads: Name → head.
        typed: As in ``choose_heads``, so that ``logistic:balanced=true`` and ``logistic:balanced=True`` are one; None: the usual.

    Raises:
        UnknownNameError: It is none of the heads.
    """
    if typed is None:
        of_logistic = (name for name, head in heads.items() if getattr(head, "name", "") == _USUAL_BASELINE)
        return _USUAL_BASELINE if _USUAL_BASELINE in heads else next(of_logistic, next(iter(heads)))
    if typed in heads:
        return typed
    try:
        spelled = spell(choose(HEADS, typed))
    except (UnknownNameError, UsageError):
        spelled = typed
    if spelled not in heads:
        raise UnknownNameError("baseline", typed, heads, hint="It must be one of the heads.")
    return spelled


def _name_of(head: Any, *, is_alone: bool) -> str:
    """As it is typed; of another classifier of scikit-learn its class, with the options that tell it from others of the class."""
    if type(head) in dict(HEADS).values():
        return spell(head)
    name = type(head).__name__
    if is_alone:
        return name
    usual = {option: each.default for option, each in signature(type(head)).parameters.items()}
    changed = {option: value for option, value in head.get_params(deep=False).items() if repr(value) != repr(usual[option])}
    options = ",".join(f"{option}={written(value)}" for option, value in changed.items())
    return f"{name}:{options}" if options else name


def _is_all(heads: object) -> bool:
    return isinstance(heads, str) and heads.strip() == ALL


def _pieces(text: str, *, base_classes: Sequence[str], has_prompts: bool) -> list[str]:
    """Heads one by one; all: those on features, which take milliseconds, that have what they learn on or start from."""
    if not _is_all(text):
        return pieces(text)
    on_features = [
        (name, head) for name, head in HEADS if not reads_images(head) and (has_prompts or not _needs_class_weights(head))
    ]
    return [name for name, head in on_features if base_classes or not hasattr(head, "meta_fit")]
