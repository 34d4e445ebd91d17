"""Sort parameters and modules for a method."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from crossgraft.errors import UsageError
from crossgraft.models.adapters import adapters_of
from crossgraft.models.classifier import Classifier
from crossgraft.tune.protocols import Selection

NEW_HEAD = "new head"


def sort_parameters(
    classifier: Classifier, is_trained: Callable[[str], bool], *, trained: str, frozen: str, train_mode: tuple[str, ...]
) -> Selection:
    """Every parameter, once: the head and what ``is_trained`` says is trained, what cannot be trained is frozen.

    Args:
        classifier: Nothing of it is changed.
        is_trained: Asked for each trainable parameter of the body.
        trained: Reason why those of the body are trained.
        frozen: Reason why the others are not.
        train_mode: ``train_mode`` of ``Selection``.
    """
    trained_names: dict[str, str] = {}
    frozen_names: dict[str, str] = {}
    untrainable = classifier.untrainable
    for name, _ in classifier.named_parameters():
        if name.startswith("head."):
            trained_names[name] = NEW_HEAD
        elif name in untrainable:
            frozen_names[name] = untrainable[name]
        elif is_trained(name):
            trained_names[name] = trained
        else:
            frozen_names[name] = frozen
    return Selection(trained_names, frozen_names, train_mode)


def adapters_and_head(classifier: Classifier, *, trained: str) -> Selection:
    """The parameters of adapters and the head, and nothing else.

    Args:
        classifier: Its adapters are in place.
        trained: Reason why those of the adapters are trained.

    Raises:
        UsageError: It has no adapters.
    """
    modules = tuple(adapters_of(classifier))
    if not modules:
        raise UsageError(f"{classifier.recipe.name} has no adapters yet. Call the method's add_adapters first.")
    return sort_parameters(
        classifier,
        classifier.adapter_parameters.__contains__,
        trained=trained,
        frozen="only adapters and head are trained",
        train_mode=(*modules, "head"),
    )


def fully_trained_modules(classifier: Classifier, is_trained: Callable[[str], bool], *, and_behind: bool) -> tuple[str, ...]:
    """The largest modules of which every parameter is trained or cannot be, and the head.

    Args:
        classifier: Nothing of it is changed.
        is_trained: Whether each parameter of the body is trained.
        and_behind: Also modules without parameters (a dropout) that are defined behind the first trained one.
    """
    untrainable = classifier.untrainable
    trained: list[str] = []

    def walk(module: nn.Module, path: str) -> None:
        names = [f"{path}.{name}" for name, _ in module.named_parameters()]
        trainable = [name for name in names if name not in untrainable]
        if not names:
            if and_behind and trained and not isinstance(module, nn.Identity):
                trained.append(path)
        elif trainable and all(map(is_trained, trainable)):
            trained.append(path)
        elif any(map(is_trained, trainable)):
            for name, child in module.named_children():
                walk(child, f"{path}.{name}")

    walk(classifier.body, "body")
    return (*trained, "head")
