"""How heads are written: ``ncc,copa:learning_rate=0.005,weight_decay=0,logistic``, or objects."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, clone, is_classifier

from crossgraft.choice import choose, pieces, spell, written
from crossgraft.config import parse_yaml
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.fewshot.heads import HEADS, reads_images
from crossgraft.models import Backbone
from crossgraft.paths import read_whole
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


def refuse_unnamed(heads: Mapping[str, Any], class_names: Sequence[str]) -> None:
    """Refuse class weights that do not say which class they belong to.

    Args:
        heads: Name → head.
        class_names: Classes in the order of the data, all of which are in every task.

    Raises:
        UsageError: Weights are an array that has not a row for each class, or the order of the data is not that of the names as
            text, by which heads sort labels ("10" is before "9").
    """
    for name, head in heads.items():
        weights = getattr(head, "class_weights", None)
        if weights is None or isinstance(weights, Mapping | str | Path):
            continue
        if len(weights) != len(class_names) or list(class_names) != sorted(class_names):
            raise UsageError(
                f"class_weights of {name} is of type {type(weights).__name__}, which does not say which class a vector belongs "
                "to. Give label → vector, or a file with an array for each label."
            )


def class_weights_from_head(
    backbone: Backbone, source_classes: Mapping[Any, Sequence[int]]
) -> dict[Any, Float[np.ndarray, " num_features"]]:
    """For each class the mean of the rows of the pretrained head whose source classes name it, each of unit length.

    With ImageNet's head and the breeds of dogs, ``dog`` gets a vector without an image of a dog: for ``TipAdapterHead`` and
    ``MetaAdapterHead`` what the features of its name are with CLIP, and alone a classifier without any support set. Classes that
    the network was not pretrained to tell apart get nothing by it.

    Args:
        backbone: Backbone with a linear head.
        source_classes: Label → numbers of the source classes that name it, from 0 to Z − 1.

    Raises:
        UsageError: The backbone has no linear head, a label no number, or a number is not one of its classes or no whole number.

    Source: head rows as class weights in Tip-Adapter's equation, Zhang et al., ECCV 2022; the stand-in is not theirs.

    Example:
        >>> from crossgraft.models import ModelSpec, load_backbone
        >>> backbone = load_backbone(ModelSpec("r", "test_resnet", weights="random"), image_size=32)
        >>> weights = class_weights_from_head(backbone, {"cat": [3, 4], "dog": [7]})
        >>> {label: vector.shape for label, vector in weights.items()} == {"cat": (backbone.num_features,)} | {
        ...     "dog": (backbone.num_features,)
        ... }
        True
    """
    head = backbone.linear_head
    if head is None:
        raise UsageError(
            f"{backbone.name} has no linear head, so that there are no class weights to take. Give vectors of your own: "
            "class_weights=FILE."
        )
    rows = head.weight.detach().double().cpu().numpy()
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return {label: _mean(rows, label, numbers) for label, numbers in source_classes.items()}


def with_rows_of_pretrained_head(head: Any, backbone: Backbone) -> Any:
    """The head with its class weights, where they are a YAML file of source classes: rows of the head of ``backbone``.

    Raises:
        DataError: The file cannot be read, or does not say label: numbers.
        UsageError: As of ``class_weights_from_head``.
    """
    given = getattr(head, "class_weights", None)
    if not isinstance(given, str | Path) or Path(given).suffix.lower() not in (".yaml", ".yml"):
        return head
    copied: Any = clone(head)
    return copied.set_params(class_weights=class_weights_from_head(backbone, source_classes_of(Path(given))))


def source_classes_of(file: Path) -> dict[str, list[int]]:
    """Label → numbers of source classes, from YAML: ``cat: [281, 282]``, ``dog: 151-268`` (both ends included), ``ship: 510``.

    Raises:
        DataError: The file cannot be read, or a label has something else.
    """
    try:
        content = parse_yaml(read_whole(file).decode("utf-8"))
    except FileNotFoundError:
        raise DataError(f"There is no file of source classes at {file}. Give one: label: numbers, as cat: [281, 282].") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{file} cannot be read as YAML: {error}. It must say label: numbers, as cat: [281, 282].") from error
    if not isinstance(content, Mapping) or not content:
        raise DataError(f"{file} must say label: numbers of source classes, for example cat: [281, 282] or dog: 151-268.")
    of_labels = cast("Mapping[object, object]", content)
    return {str(label): _numbers_of(label, numbers, file) for label, numbers in of_labels.items()}


def _numbers_of(label: object, numbers: object, file: Path) -> list[int]:
    several = cast("list[object]", numbers) if isinstance(numbers, list) else [numbers]
    found: list[int] = []
    for each in several:
        ends = re.fullmatch(r"(\d+)(?:\s*-\s*(\d+))?", str(each).strip())
        if ends is None or (ends[2] is not None and int(ends[2]) < int(ends[1])):
            raise DataError(f"{file}: {label} has {each!r}, which is no number of a source class, and no range such as 151-268.")
        found += range(int(ends[1]), int(ends[2] or ends[1]) + 1)
    return found


def _mean(rows: np.ndarray, label: object, numbers: Sequence[int]) -> np.ndarray:
    chosen = np.asarray(numbers)
    if chosen.ndim != 1 or len(chosen) == 0:
        raise UsageError(f"The class {label} has no source class. Name at least one, or leave the class out.")
    if chosen.dtype.kind not in "iu":
        raise UsageError(
            f"The source classes of {label} are of type {chosen.dtype}, and must be whole numbers from 0 to {len(rows) - 1}."
        )
    wrong = chosen[(chosen < 0) | (chosen >= len(rows))]
    if len(wrong):
        raise UsageError(f"The class {label} names the source class {wrong[0]}; there are 0 to {len(rows) - 1}.")
    return rows[chosen].mean(axis=0).astype(np.float32)


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
