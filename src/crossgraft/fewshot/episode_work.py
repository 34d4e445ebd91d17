"""What episodes are drawn from, and what is done with each."""

from __future__ import annotations

import hashlib
import json
import pickle
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, cast

import numpy as np
from sklearn.base import clone

from crossgraft.choice import as_array, spell
from crossgraft.data import Dataset
from crossgraft.errors import CrossgraftError, UnknownNameError, located
from crossgraft.fewshot.class_weights import with_rows_of_pretrained_head
from crossgraft.fewshot.episodes import Episode, Sampler, refuse_small_classes
from crossgraft.fewshot.evaluate import episode_of
from crossgraft.fewshot.heads import reads_images
from crossgraft.fewshot.options import FewshotOptions
from crossgraft.fewshot.parts import EpisodeWork
from crossgraft.models import Backbone
from crossgraft.paths import is_file, read_whole
from crossgraft.version import __version__


def identity_of_head(head: Any) -> list[Any]:
    """Class and parameters; of arrays, and of files that parameters name, a digest; of functions what they compute.

    Args:
        head: A scikit-learn classifier, unfitted.
    """
    of_parameters = {name: _identity(value) for name, value in sorted(head.get_params(deep=False).items())}
    return [f"{type(head).__module__}.{type(head).__qualname__}", of_parameters]


def _identity(value: Any) -> Any:
    if isinstance(value, str | Path) and is_file(Path(value)):
        return [str(value), hashlib.sha256(read_whole(Path(value))).hexdigest()]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return [[str(name), _identity(part)] for name, part in cast("Mapping[Any, Any]", value).items()]
    if isinstance(value, list | tuple):
        return [_identity(part) for part in cast("Sequence[Any]", value)]
    if hasattr(value, "get_params"):
        return identity_of_head(value)
    if hasattr(value, "__array__"):
        array = as_array(value)
        if array.dtype != np.object_:
            return [array.dtype.str, list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]
    if isinstance(value, FunctionType):
        return _identity_of_function(value)
    try:
        return hashlib.sha256(pickle.dumps(value)).hexdigest()
    except Exception:  # objects raise many kinds
        return uuid.uuid4().hex  # nothing tells it from another, so that no earlier part is taken for its own


def _identity_of_function(function: FunctionType) -> list[Any]:
    """What it computes, and with which values: functions of one place have one name, lambdas of a line for example."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    held = [
        _identity_of_code(value.__code__) if isinstance(value, FunctionType) else _identity(value)  # it may hold itself
        for value in (function.__defaults__, function.__kwdefaults__, *cells)
    ]
    return [function.__module__, function.__qualname__, _identity_of_code(function.__code__), held]


def _identity_of_code(code: CodeType) -> list[Any]:
    constants = [_identity_of_code(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), constants]


@dataclass(frozen=True, eq=False)
class Chosen:
    """What the options name, looked up before any image is opened.

    Attributes:
        heads: Name → head; names are shown on pages, and hold no folder of this machine.
        written: The same names with whole paths.
    """

    heads: Mapping[str, Any]
    written: list[str]
    sampler: Sampler
    baseline: str


@dataclass(frozen=True, eq=False)
class Drawn:
    """What episodes are drawn from.

    Attributes:
        labels: (n,) class of each row.
        is_base: (n,) whether heads learn on its class beforehand; episodes are drawn from the others.
        groups: Patients of the rows of the others, or None.
        superclasses: Superclasses of these rows, or None.
    """

    labels: np.ndarray
    is_base: np.ndarray
    groups: np.ndarray | None
    superclasses: np.ndarray | None

    def first_episode(self, sampler: Sampler, seed: int) -> Episode:
        """The episode of number 0.

        Raises:
            DataError: There are too few classes, images or patients for one, or a class has too few for any.
        """
        labels = self.labels[~self.is_base]
        refuse_small_classes(labels, sampler, groups=self.groups, superclasses=self.superclasses)
        return episode_of(labels, sampler, seed, 0, groups=self.groups, superclasses=self.superclasses)


def draw_from(dataset: Dataset, options: FewshotOptions) -> Drawn:
    """Rows of the classes that episodes are drawn from, and those of the classes that heads learn on.

    Raises:
        UnknownNameError: There is no such class, or no such column.
    """
    labels = np.array(dataset.class_names)[dataset.targets]
    base = base_classes_of(options)
    for name in base:
        if name not in dataset.class_names:
            raise UnknownNameError("class", name, dataset.class_names)
    is_base = np.isin(labels, base)
    groups = None if dataset.groups is None else dataset.groups[~is_base]
    superclasses = _superclasses(dataset, options.superclass_column)
    return Drawn(labels, is_base, groups, None if superclasses is None else superclasses[~is_base])


def base_classes_of(options: FewshotOptions) -> list[str]:
    """Names of classes; a text has several between commas."""
    given = options.base_classes
    if given is None or isinstance(given, str):
        return [name.strip() for name in given.split(",")] if given else []
    return [str(name) for name in given]


def episode_work(
    dataset: Dataset,
    drawn: Drawn,
    features: np.ndarray,
    backbone: Backbone,
    chosen: Chosen,
    options: FewshotOptions,
    *,
    repeat: int = 0,
) -> EpisodeWork:
    """What is done with each episode of one repeat, by heads that have learned on the base classes."""
    labels, is_base, superclasses = drawn.labels, drawn.is_base, _superclasses(dataset, options.superclass_column)
    unfitted = {name: _reseeded(head, repeat) for name, head in chosen.heads.items()}
    heads = {name: _ready(head, backbone, features[is_base], labels[is_base]) for name, head in unfitted.items()}
    seed = options.seed + repeat
    facts = [
        __version__,
        dataset.fingerprint,
        dataset.class_names,
        hashlib.sha256(labels.tobytes()).hexdigest(),
        _identity_of_groups(drawn.groups),
        None if superclasses is None else hashlib.sha256("\n".join(map(str, superclasses)).encode()).hexdigest(),
        backbone.weights_fingerprint,
        backbone.preprocessing.describe(),
        [(name, identity_of_head(head)) for name, head in unfitted.items()],
        base_classes_of(options),
        spell(chosen.sampler),
        seed,
        *(["gaps"] if options.gaps else []),
    ]
    key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:20]
    return EpisodeWork(
        features[~is_base],
        labels[~is_base],
        heads,
        chosen.sampler,
        seed,
        drawn.groups,
        drawn.superclasses,
        key,
        "episodes" if repeat == 0 else f"episodes/seed-{seed}",
        options.gaps,
    )


def _reseeded(head: Any, repeat: int) -> Any:
    """The head with the random numbers of this repeat, where it has a seed: its own in the first, the next one in the next."""
    if repeat == 0 or "seed" not in head.get_params(deep=False):
        return head
    copied: Any = clone(head)
    return copied.set_params(seed=int(head.seed) + repeat)


def _identity_of_groups(groups: np.ndarray | None) -> str | None:
    """Which rows are of one patient, whatever patients are called."""
    if groups is None:
        return None
    return hashlib.sha256(np.unique(groups, return_inverse=True)[1].tobytes()).hexdigest()


def _superclasses(dataset: Dataset, column: str | None) -> np.ndarray | None:
    """The column of the superclass of each row; None where none was asked for.

    Raises:
        UnknownNameError: There is no such column.
    """
    if column is None:
        return None
    if column not in dataset.attributes:
        raise UnknownNameError("column of superclasses", column, dataset.attributes)
    return dataset.attributes[column]


def learns_on_base_classes(head: Any) -> bool:
    """Whether it has something to learn there, and has not learned it yet."""
    return hasattr(head, "meta_fit") and head.adapter_weights is None


def _ready(head: Any, backbone: Backbone, features: np.ndarray, labels: np.ndarray) -> Any:
    """The head with what it needs besides a support set: the backbone, or classes to learn on."""
    if reads_images(head):
        copied: Any = clone(head)
        return copied.set_params(backbone=backbone)
    head = with_rows_of_pretrained_head(head, backbone)
    if not len(labels) or not learns_on_base_classes(head):
        return head
    learner: Any = clone(head)  # the caller's own stays as it is
    weights = getattr(head, "class_weights", None)
    if weights is None:
        return learner.meta_fit(features, labels)
    try:
        return learner.meta_fit(features, labels, class_weights=weights)
    except CrossgraftError as error:
        raise located(error, f"Head {head.name} on the base classes") from error
