"""From a spec to a backbone that is ready to look at images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from torch import nn

from crossgraft.compute import resolve_device
from crossgraft.models.backbone import Backbone
from crossgraft.models.preprocessing import resolve_preprocessing
from crossgraft.models.random_weights import build_random, build_seeded
from crossgraft.models.resolve import resolve_spec
from crossgraft.models.sources.factory import build_from_factory, factory_config, find_factory
from crossgraft.models.sources.local_checkpoint import infer_num_classes, load_weights, read_state_dict
from crossgraft.models.sources.pretrained_files import require_pretrained
from crossgraft.models.sources.timm_models import (
    accept_input_size,
    build_architecture,
    build_pretrained,
    pretrained_config,
)
from crossgraft.models.spec import PRETRAINED, RANDOM, ModelSpec, family_of
from crossgraft.models.zoo import read_zoo
from crossgraft.progress import Reporter
from crossgraft.types import ResizePolicy


def load_backbone(
    spec: ModelSpec | str,
    *,
    seed: int = 0,
    device: str = "cpu",
    weights_dir: str | Path | None = None,
    allow_download: bool = False,
    image_size: int | None = None,
    resize_policy: ResizePolicy | None = None,
    reporter: Reporter | None = None,
) -> Backbone:
    """Build a network, load its weights and show it by one face.

    Args:
        spec: From ``read_zoo``, or one name or checkpoint path.
        seed: Of random weights; pretrained ones do not depend on it.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``mps``.
        weights_dir: Where weights are looked up first.
        allow_download: May timm's own weights be downloaded? Nothing else ever uses the network.
        image_size: Input height and width in pixels instead of the size the weights were trained with.
        resize_policy: Instead of the model's own.
        reporter: Told about a download.

    Raises:
        MissingWeightsError: The weights are not on this machine; the message says which file to put where.
        WeightsMismatchError: The weights do not fit; all keys are listed.
        UsageError: The spec, the device or the network is not usable; the message says why.
    """
    folder = Path(weights_dir) if weights_dir is not None else None
    if isinstance(spec, str):
        (spec,) = read_zoo([spec], weights_dir=folder)
    spec = resolve_spec(spec, weights_dir=folder)
    device = resolve_device(device)
    weights = None
    if spec.weights == PRETRAINED:
        weights = require_pretrained(spec.source, folder, allow_download=allow_download, reporter=reporter)
    module, said = _load_factory(spec, seed) if spec.is_factory else _load_timm(spec, seed, weights)
    preprocessing = resolve_preprocessing(
        said, spec.preprocessing, model=spec.name, image_size=image_size, resize_policy=resize_policy
    )
    if not spec.is_factory:
        accept_input_size(module, preprocessing, name=spec.source)
    return Backbone(
        module,
        name=spec.name,
        architecture=spec.architecture,
        source="factory" if spec.is_factory else "checkpoint" if spec.has_checkpoint else "timm",
        preprocessing=preprocessing,
        family=spec.family or family_of(spec.source),
        licence=spec.licence or _text(said.get("license")),
        architecture_key=spec.architecture_key,
        device=device,
    )


def _load_timm(spec: ModelSpec, seed: int, pretrained_file: Path | None) -> tuple[nn.Module, Mapping[str, object]]:
    said = _with_stated_input(pretrained_config(spec.source), spec.kwargs)
    if spec.weights == RANDOM:
        said.pop("license", None)  # nobody's weights
        return build_random(lambda: build_architecture(spec.source, spec.kwargs), seed, source=spec.source), said
    if pretrained_file is not None:
        return build_seeded(lambda: build_pretrained(spec.source, spec.kwargs, pretrained_file), seed), said
    said.pop("license", None)  # of timm's weights, not of this file's
    path = Path(str(spec.weights))
    state = read_state_dict(path)
    kwargs = dict(spec.kwargs)
    if "num_classes" not in kwargs:
        kwargs["num_classes"] = infer_num_classes(state, said.get("classifier"))
    module = build_seeded(lambda: build_architecture(spec.source, kwargs), seed)
    load_weights(module, state, file=path.name, model=f"{spec.name} ({spec.architecture})")
    return module, said


def _with_stated_input(said: dict[str, object], kwargs: Mapping[str, object]) -> dict[str, object]:
    """The arguments ``img_size`` and ``in_chans`` of an architecture change the input that timm states."""
    channels, height, width = cast("Sequence[int]", said.get("input_size", (3, 224, 224)))
    size = kwargs.get("img_size", (height, width))
    height, width = (size, size) if isinstance(size, int) else cast("Sequence[int]", size)
    return {**said, "input_size": (kwargs.get("in_chans", channels), height, width)}


def _load_factory(spec: ModelSpec, seed: int) -> tuple[nn.Module, Mapping[str, object]]:
    folders = [folder for folder in (spec.folder, Path.cwd()) if folder is not None]
    factory = find_factory(spec.source, folders)
    is_random = spec.weights == RANDOM

    def build() -> nn.Module:
        return build_from_factory(factory, spec.source, spec.kwargs, random=is_random)

    module = (
        build_random(build, seed, source=spec.source)
        if is_random
        else build_seeded(build, seed, "factory", spec.source)
    )
    if spec.has_checkpoint:
        path = Path(str(spec.weights))
        load_weights(module, read_state_dict(path), file=path.name, model=f"{spec.name} ({spec.architecture})")
    return module, factory_config(module)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
