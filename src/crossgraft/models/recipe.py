"""How to build a network again without its pretrained weights: what a saved fine-tuned model remembers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from torch import nn

from crossgraft.models.random_weights import build_seeded
from crossgraft.models.sources.factory import build_from_factory, find_factory
from crossgraft.models.sources.libraries import library_of
from crossgraft.models.spec import is_factory_source, without_folders
from crossgraft.models.trusted_code import NOTHING, TrustedCode
from crossgraft.types import Preprocessing


@dataclass(frozen=True)
class NetworkRecipe:
    """What builds a network: plain values only.

    Attributes:
        source: A timm architecture, ``torchvision:NAME`` or ``package.module:factory``.
        kwargs: Arguments of the architecture or the factory.
    """

    source: str
    kwargs: Mapping[str, object]


def network_recipe(source: str, kwargs: Mapping[str, object]) -> NetworkRecipe | None:
    """A recipe without absolute paths (only the last part of such a text stays); None if JSON cannot say it."""
    try:
        plain = json.loads(json.dumps(dict(kwargs)))
    except (TypeError, ValueError):
        return None
    return NetworkRecipe(source, cast("dict[str, object]", without_folders(plain)))


def build_network(
    recipe: NetworkRecipe, preprocessing: Preprocessing, *, seed: int = 0, trusted: TrustedCode = NOTHING
) -> nn.Module:
    """The network of ``recipe`` without pretrained weights; nothing is downloaded.

    A recipe is data: architectures of timm and torchvision are built, and a function only if the user named it.

    Args:
        recipe: Recipe from ``network_recipe``.
        preprocessing: Says the size of its images.
        seed: Random seed of the weights.
        trusted: The code that the user named.

    Raises:
        UntrustedCodeError: The recipe names a function that nobody allowed.
        UnknownNameError: The architecture or the function is not known any more.
        UsageError: The module of a factory cannot be imported, or the arguments do not fit.
    """
    source, kwargs = recipe.source, recipe.kwargs

    def draw(build: Callable[[], nn.Module]) -> nn.Module:
        return build_seeded(build, seed, "random weights", source)

    if is_factory_source(source):
        factory = find_factory(source, trusted=trusted, folders=[Path.cwd()])
        return draw(lambda: build_from_factory(factory, source, kwargs, random=True))
    library = library_of(source)
    library.check(source)
    module = draw(lambda: library.build(source, kwargs))
    library.accept_input_size(module, preprocessing, source=source, kwargs=kwargs)
    return module
