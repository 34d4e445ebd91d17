"""Take the pretraining out of a classifier: the same architecture with random weights."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from crossgraft.errors import UsageError
from crossgraft.models.classifier import Classifier, ClassifierRecipe
from crossgraft.models.random_weights import build_seeded
from crossgraft.models.recipe import build_network
from crossgraft.models.surgery import forget_caches, repeat_cut


def randomise(classifier: Classifier, seed: int, *, folders: Sequence[Path] = ()) -> None:
    """Replace the weights and statistics of the body by those of a new network; the head, random already, stays.

    The new network is built as its library or factory builds it; where that is not possible here, every layer draws its
    weights by its own ``reset_parameters``. Global random state stays as it was.

    Args:
        classifier: Changed in place; its device and type stay.
        seed: Of the weights, a stream of its own.
        folders: Where the module of a factory may lie, besides what is imported or installed.

    Raises:
        UsageError: A trainable tensor can not be drawn anew; the message names it. Nothing is changed then.
    """
    fresh = _build(classifier.recipe, seed, folders)
    state = (_reset(classifier, seed) if fresh is None else fresh).state_dict()
    for name, parameter in classifier.body.named_parameters():
        if name not in classifier.recipe.cut.untrainable and _is_unchanged(parameter, state[name]):
            raise _not_random(classifier, name)
    classifier.body.load_state_dict(state)
    forget_caches(classifier.body)


def _build(recipe: ClassifierRecipe, seed: int, folders: Sequence[Path]) -> nn.Module | None:
    """The network anew; None where nothing can build it, or a factory needs something that is not here."""
    if recipe.network is None:
        return None
    try:
        network = build_network(recipe.network, recipe.preprocessing, seed=seed, folders=folders, surely_random=True)
    except (UsageError, OSError):
        return None
    repeat_cut(network, recipe.cut)
    return network


def _reset(classifier: Classifier, seed: int) -> nn.Module:
    body = copy.deepcopy(classifier.body)
    for path, layer in body.named_modules():
        own = [f"{path}.{name}" if path else name for name, _ in layer.named_parameters(recurse=False)]
        trainable = [name for name in own if name not in classifier.recipe.cut.untrainable]
        if trainable and not callable(getattr(layer, "reset_parameters", None)):
            raise _not_random(classifier, trainable[0])

    def reset() -> nn.Module:
        for layer in body.modules():
            if callable(draw := getattr(layer, "reset_parameters", None)):
                draw()
        return body

    return build_seeded(reset, seed, "random weights", classifier.recipe.name)


def _is_unchanged(old: Tensor, new: Tensor) -> bool:
    new = new.to(old)
    return torch.equal(old, new) and bool((new != new.reshape(-1)[0]).any())


def _not_random(classifier: Classifier, name: str) -> UsageError:
    return UsageError(
        f"{classifier.recipe.name} can not be trained from scratch: nothing draws {name} at random. Give its layer a method "
        "reset_parameters, or the function that builds the network an argument pretrained, and load nothing when it is False."
    )
