"""Adapters of a whole classifier: its recipe names them, and copies are made with and without them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from crossgraft.errors import UsageError
from crossgraft.models.adapters import AdapterRecipe, adapters_of, merge_adapters
from crossgraft.models.adapters.insertion import insert_adapter, make_adapter, take_out_adapter
from crossgraft.models.classifier import Classifier
from crossgraft.models.taps import modes_kept, watch
from crossgraft.seeding import torch_generator


def add_adapters(classifier: Classifier, recipes: Sequence[AdapterRecipe], *, seed: int) -> None:
    """Insert adapters with their first weights; ``classifier`` gives what it gave, and its recipe names them.

    Args:
        classifier: Classifier, changed in place.
        recipes: One per adapter.
        seed: Random seed of their weights, one stream each.

    Raises:
        UsageError: There is nothing to insert, a host has such an adapter already, or cannot have it.
    """
    if not recipes:
        raise UsageError(f"There is no layer of {classifier.recipe.name} to adapt.")
    adapters = [make_adapter(classifier, recipe) for recipe in recipes]
    for recipe, adapter in zip(recipes, adapters, strict=True):
        adapter.draw(torch_generator(seed, "adapter", recipe.kind, recipe.host))
        insert_adapter(classifier.get_submodule(recipe.host), adapter)
    classifier.recipe = replace(classifier.recipe, adapters=(*classifier.recipe.adapters, *recipes))
    classifier.eval()


@torch.no_grad()
def merged_copy(classifier: Classifier) -> Classifier:
    """A classifier without adapters that gives the same up to rounding: the pretrained architecture with other weights.

    Raises:
        UsageError: One of them cannot be merged.

    Cost: a second set of weights.
    """
    twin = copy.deepcopy(classifier)
    merge_adapters(twin)
    return _take_all_out(twin)  # hosts keep the weights that they have now


def base_model(classifier: Classifier) -> Classifier:
    """A classifier without adapters: the pretrained weights and the head as it is.

    Raises:
        UsageError: They are part of its weights now.

    Cost: a second set of weights.
    """
    if any(adapter.merged for _, adapter in adapters_of(classifier).values()):
        raise UsageError("The adapters are merged into the weights. Call unmerge_adapters first.")
    return _take_all_out(copy.deepcopy(classifier))


def _take_all_out(classifier: Classifier) -> Classifier:
    for name, (host, _) in adapters_of(classifier).items():
        take_out_adapter(host, name.rpartition(".")[2])
    classifier.recipe = replace(classifier.recipe, adapters=())
    return classifier


def called_modules(classifier: Classifier) -> set[str]:
    """Names of the modules that a forward pass calls; a layer whose weight is taken from outside is not among them.

    Cost: one forward pass of one image.
    """
    called: set[str] = set()
    with watch(dict(classifier.named_modules()), lambda name, _: called.add(name), of="input"):
        look(classifier)
    return called


@torch.no_grad()
def look(classifier: Classifier) -> Tensor:
    """The features (1, d) of one drawn image: one forward pass in eval mode; modes stay."""
    p, weight = classifier.preprocessing, classifier.head.weight
    image = torch.randn(1, p.channels, p.height_pixels, p.width_pixels, generator=torch_generator(0, "look"))
    with modes_kept(classifier):
        return classifier.eval().features(image.to(weight))
