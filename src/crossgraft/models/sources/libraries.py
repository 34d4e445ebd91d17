"""The libraries whose architectures a zoo can name."""

from __future__ import annotations

from crossgraft.models.sources.library import LibraryName, ModelLibrary
from crossgraft.models.sources.timm_models import TimmLibrary
from crossgraft.models.sources.torchvision_models import TorchvisionLibrary
from crossgraft.models.spec import library_name

LIBRARIES: dict[LibraryName, ModelLibrary] = {"timm": TimmLibrary(), "torchvision": TorchvisionLibrary()}


def library_of(source: str) -> ModelLibrary:
    """The library that ``source`` speaks of: ``torchvision:NAME``, and timm for a bare name."""
    return LIBRARIES[library_name(source)]
