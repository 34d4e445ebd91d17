"""How to build a network again without its pretrained weights: what a saved fine-tuned model remembers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import cast

from torch import nn

from crossgraft.errors import UsageError
from crossgraft.models.random_weights import build_random
from crossgraft.models.sources.factory import build_from_factory, find_factory
from crossgraft.models.sources.libraries import library_of
from crossgraft.models.spec import is_factory_source
from crossgraft.types import Preprocessing


@dataclass(frozen=True)
class NetworkRecipe:
    """What builds a network: plain values only.

    Attributes:
        source: A timm architecture, ``torchvision:NAME`` or ``package.module:factory``.
        kwargs: Of the architecture or the factory.
    """

    source: str
    kwargs: Mapping[str, object]


def network_recipe(source: str, kwargs: Mapping[str, object]) -> NetworkRecipe | None:
    """A recipe without absolute paths (only the last part of such a text stays); None if JSON can not say it."""
    try:
        plain = json.loads(json.dumps(dict(kwargs)))
    except (TypeError, ValueError):
        return None
    return NetworkRecipe(source, cast("dict[str, object]", _without_folders(plain)))


def _without_folders(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _without_folders(item) for key, item in cast("dict[object, object]", value).items()}
    if isinstance(value, list):
        return [_without_folders(item) for item in cast("list[object]", value)]
    if isinstance(value, str):
        for path in (PurePosixPath(value), PureWindowsPath(value)):
            if path.is_absolute():
                return path.name
    return value


def build_network(
    recipe: NetworkRecipe, preprocessing: Preprocessing, *, seed: int = 0, folders: Sequence[Path] = ()
) -> nn.Module:
    """The network of ``recipe`` with random weights; no file of weights is read, nothing is downloaded.

    Args:
        recipe: From ``network_recipe``.
        preprocessing: Says the size of its images.
        seed: Of the weights.
        folders: Where the module of a factory may lie, besides what is installed.

    Raises:
        UnknownNameError: The architecture or the function is not known any more.
        UsageError: The module of a factory can not be imported, or the arguments do not fit.
    """
    if is_factory_source(recipe.source):
        factory = find_factory(recipe.source, folders)
        return build_random(
            lambda: build_from_factory(factory, recipe.source, recipe.kwargs, random=True), seed, source=recipe.source
        )
    library = library_of(recipe.source)
    library.check(recipe.source)
    module = build_random(lambda: library.build(recipe.source, recipe.kwargs), seed, source=recipe.source)
    try:
        library.accept_input_size(module, preprocessing, source=recipe.source, kwargs=recipe.kwargs)
    except UsageError as error:
        raise UsageError(
            f"{recipe.source} was fine-tuned on images of another size than it takes now: {error}"
        ) from error
    return module
