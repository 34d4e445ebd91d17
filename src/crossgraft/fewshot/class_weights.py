"""Class weights from elsewhere: from prompts, as the text tower of the backbone reads them, or from its pretrained head."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Float32
from sklearn.base import clone

from crossgraft.config import parse_yaml
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.fewshot.record import PromptsRecord
from crossgraft.models import Backbone, TextTower
from crossgraft.models.sources.text_tower import unit_vectors
from crossgraft.paths import read_whole, shortened
from crossgraft.words.formatting import counted

PLACE = "{class}"
_KEYS = ("templates", "classes")
_EXAMPLE = "a histology image of {class}"
_FORM = "templates: a list of texts with {class}, in quotes; classes: label: text, or a list of texts"


@dataclass(frozen=True)
class ClassPrompts:
    """What is said of each class.

    Attributes:
        templates: Texts with ``{class}``.
        texts: Label → what stands for ``{class}``, several ways of saying it perhaps; None: the label.
    """

    templates: tuple[str, ...]
    texts: Mapping[str, tuple[str, ...]] | None = None

    def __post_init__(self) -> None:
        if not self.templates:
            raise UsageError(f"Prompts need a template, for example {_EXAMPLE!r}.")
        for template in self.templates:
            if PLACE not in template:
                raise UsageError(
                    f"The template {shortened(template)!r} has no {PLACE}. Write where the class goes, for example {_EXAMPLE!r}; "
                    "a file of templates ends in .yaml."
                )

    def texts_of(self, class_names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Label → what stands for ``{class}``.

        Raises:
            DataError: A class has no text.
        """
        if self.texts is None:
            found = {name: (name,) for name in class_names}
        else:
            found = {name: self.texts.get(name, ()) for name in class_names}
        without = [name for name, texts in found.items() if not texts or not all(text.strip() for text in texts)]
        if without:
            raise DataError(
                f"There is no text for {', '.join(without[:5])}{' …' if len(without) > 5 else ''}. Say what each class is "
                "called, under classes: of the YAML file of --prompts."
            )
        return found

    def describe(self) -> dict[str, object]:
        """As plain values, for the configuration of a run."""
        texts = None if self.texts is None else {label: list(texts) for label, texts in self.texts.items()}
        return {"templates": list(self.templates), "classes": texts}


def read_prompts(given: Any) -> ClassPrompts:
    """Prompts as a user gives them.

    Args:
        given: A template, several of them, a mapping with ``templates`` and perhaps ``classes``, or a YAML file that holds such a
            mapping.

    Raises:
        DataError: The file cannot be read, or holds something else.
        UsageError: A template has no ``{class}``.
        UnknownNameError: A key is not known.
    """
    if isinstance(given, ClassPrompts):
        return given
    if isinstance(given, Sequence) and not isinstance(given, str):
        several = cast("Sequence[Any]", given)
        if len(several) != 1:
            return ClassPrompts(tuple(_text(each, "templates") for each in several))
        (given,) = several
    if isinstance(given, Path) or (isinstance(given, str) and PLACE not in given and given.endswith((".yaml", ".yml"))):
        return _from_mapping(_read(Path(given)), Path(given).name)
    if isinstance(given, Mapping):
        return _from_mapping(cast("Mapping[object, object]", given), "prompts")
    return ClassPrompts((_text(given, "prompts"),))


def _read(file: Path) -> Mapping[object, object]:
    try:
        content = parse_yaml(read_whole(file).decode("utf-8"))
    except FileNotFoundError:
        raise DataError(
            f"There is no file of prompts at {file}. Give a template with {PLACE}, or a YAML file: {_FORM}."
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(f"{file} cannot be read as YAML: {error}. It must say {_FORM}.") from error
    if not isinstance(content, Mapping):
        raise DataError(f"{file} must say {_FORM}.")
    return cast("Mapping[object, object]", content)


def _from_mapping(said: Mapping[object, object], where: str) -> ClassPrompts:
    for key in said:
        if key not in _KEYS:
            raise UnknownNameError(f"key in {where}", str(key), _KEYS)
    classes = said.get("classes")
    if classes is not None and not isinstance(classes, Mapping):
        raise DataError(f"classes in {where} must be label: text, found {type(classes).__name__}.")
    texts = None
    if classes is not None:
        of_labels = cast("Mapping[object, object]", classes)
        texts = {str(label): _texts(value, f"{label} in {where}") for label, value in of_labels.items()}
    return ClassPrompts(_texts(said.get("templates") or [], f"templates in {where}"), texts)


def _texts(value: object, where: str) -> tuple[str, ...]:
    several = cast("Sequence[object]", value) if isinstance(value, list | tuple) else [value]
    return tuple(_text(each, where) for each in several)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise DataError(f"{where} must be text, found {shortened(repr(value))}. Put it in quotes.")
    return value


@dataclass(frozen=True, eq=False)
class Prompted:
    """Class weights from text, and images in the same space.

    Attributes:
        tower: Text tower.
        weights: Label → (d,) of unit length.
        record: What is known of them.
    """

    tower: TextTower
    weights: Mapping[str, Float32[np.ndarray, " width"]]
    record: PromptsRecord

    @property
    def note(self) -> str:
        """What heads see, in a sentence."""
        return (
            f"Class weights are features of {counted(len(self.record.templates), 'template')} for "
            f"{counted(len(self.weights), 'class', 'classes')}, by the text tower of {self.tower.name} "
            f"({self.tower.architecture}); heads see images in its space of {self.record.num_features} numbers."
        )

    def given_to(self, head: Any) -> Any:
        """The head with these class weights, where it takes some and has none."""
        if not hasattr(head, "class_weights") or head.class_weights is not None:
            return head
        copied: Any = clone(head)
        return copied.set_params(class_weights=dict(self.weights))


def encode_prompts(tower: TextTower, prompts: ClassPrompts, class_names: Sequence[str]) -> Prompted:
    """Class weights as CLIP makes them: u(mean of u(prompt)) over all templates and texts of a class.

    Args:
        tower: Text tower of the backbone.
        prompts: Templates and texts.
        class_names: Labels.

    Raises:
        DataError: A class has no text, or two classes have the same.
        UsageError: A prompt is too long for the text tower.

    Cost: one forward pass of the text tower for each prompt.

    Source: Radford, Kim, Hallacy and others, Learning Transferable Visual Models From Natural Language Supervision, ICML 2021,
    section 3.1.4; the mean of unit vectors, of unit length again, as in the authors' code.
    """
    texts = prompts.texts_of(class_names)
    of_classes = {
        name: [template.replace(PLACE, text) for text in texts[name] for template in prompts.templates] for name in class_names
    }
    _refuse_same(tower, of_classes)
    every = [prompt for of_class in of_classes.values() for prompt in of_class]
    vectors = iter(unit_vectors(tower.encode(every).astype(np.float64)))
    weights = {
        name: unit_vectors(np.mean([next(vectors) for _ in of_class], axis=0, keepdims=True))[0].astype(np.float32)
        for name, of_class in of_classes.items()
    }
    record = PromptsRecord(
        templates=list(prompts.templates),
        texts={name: list(each) for name, each in texts.items()},
        text_tower=tower.architecture,
        num_parameters=tower.num_parameters,
        num_features=len(next(iter(weights.values()))),
        weights_fingerprint=tower.weights_fingerprint,
        tokens_fingerprint=tower.tokens_fingerprint(every),
        logit_scale=tower.logit_scale,
        logit_bias=tower.logit_bias,
    )
    return Prompted(tower, weights, record)


def class_weights_from_prompts(
    tower: TextTower, texts: Mapping[str, str | Sequence[str]] | Sequence[str], templates: str | Sequence[str]
) -> dict[str, Float32[np.ndarray, " width"]]:
    """For each class the direction of its prompts, of unit length: ``class_weights`` of Tip-Adapter, Meta-Adapter and zero-shot.

    They go with images in the same space: ``tower.project(features, backbone)``.

    Args:
        tower: As of ``crossgraft.models.load_text_tower``.
        texts: Label → what the class is called, one or several texts; or labels that are such texts.
        templates: Texts with ``{class}``; several are averaged as CLIP does.

    Raises:
        DataError, UsageError: As of ``encode_prompts``.
    """
    said: dict[object, object] = {"templates": [templates] if isinstance(templates, str) else list(templates)}
    if isinstance(texts, Mapping):
        said["classes"] = {label: each if isinstance(each, str) else list(each) for label, each in texts.items()}
    prompted = encode_prompts(tower, _from_mapping(said, "prompts"), [str(label) for label in texts])
    return dict(prompted.weights)


def _refuse_same(tower: TextTower, of_classes: Mapping[str, Sequence[str]]) -> None:
    """Two classes whose prompts are the same to the text tower would have the same weights."""
    seen: dict[tuple[tuple[int, ...], ...], str] = {}  # tokens of all prompts of a class → its name
    for name, prompts in of_classes.items():
        tokens = tuple(tower.tokens_of(prompt) for prompt in prompts)
        other = seen.setdefault(tokens, name)
        if other != name:
            raise DataError(
                f"{other} and {name} are the same text to {tower.name}: {shortened(of_classes[other][0])!r} and "
                f"{shortened(prompts[0])!r} have the same tokens. Give each class a text of its own that the tokenizer knows, "
                "under classes: of the YAML file of --prompts."
            )


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
    rows = unit_vectors(head.weight.detach().double().cpu().numpy())
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
