"""The libraries whose networks can be named, each by its word: ``torchvision:resnet18``; timm's need none.

Other packages add libraries through the entry-point group ``crossgraft.model_libraries``, under that word.
"""

from __future__ import annotations

from crossgraft.models.sources.hub_models import HubLibrary
from crossgraft.models.sources.library import ModelLibrary
from crossgraft.models.sources.local_folder import LocalFolderLibrary
from crossgraft.models.sources.open_clip_models import OpenClipLibrary
from crossgraft.models.sources.timm_models import TimmLibrary
from crossgraft.models.sources.torchvision_models import TorchvisionLibrary
from crossgraft.models.sources.transformers_models import TransformersLibrary
from crossgraft.models.sources.wheel_weights import PackageIndexLibrary
from crossgraft.models.spec import LIBRARIES_GROUP, library_name
from crossgraft.registry import Registry

LIBRARIES: Registry[ModelLibrary] = Registry("model library", group=LIBRARIES_GROUP, plugin_type=ModelLibrary)  # pyright: ignore[reportAbstractUsage]
"""Every library that is installed."""
for _library in (
    TimmLibrary(),
    TorchvisionLibrary(),
    HubLibrary(),
    LocalFolderLibrary(),
    PackageIndexLibrary(),
    TransformersLibrary(),
    OpenClipLibrary(),
):
    LIBRARIES.add(_library.name, _library)


def library_of(source: str) -> ModelLibrary:
    """The library that ``source`` speaks of: ``torchvision:NAME``, and timm for a bare name."""
    return LIBRARIES.get(library_name(source))
