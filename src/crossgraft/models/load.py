"""From a spec to a backbone that is ready to look at images, and to the text tower that belongs to it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from torch import nn

from crossgraft.compute import resolve_device
from crossgraft.errors import MissingWeightsError, UsageError
from crossgraft.models.backbone import Backbone
from crossgraft.models.preprocessing import resolve_preprocessing
from crossgraft.models.random_weights import build_random, build_seeded, open_branches
from crossgraft.models.recipe import network_recipe
from crossgraft.models.resolve import explain_missing, resolve_spec
from crossgraft.models.sources.factory import build_from_factory, factory_config, find_factory
from crossgraft.models.sources.libraries import library_of
from crossgraft.models.sources.library import ModelLibrary, Places
from crossgraft.models.sources.local_checkpoint import load_weights, read_state_dict
from crossgraft.models.sources.text_tower import TextTower
from crossgraft.models.sources.transformers_texts import TEXT_FAMILIES
from crossgraft.models.spec import PRETRAINED, RANDOM, ModelSpec, family_of
from crossgraft.models.zoo import FindingOptions, read_zoo
from crossgraft.progress import Reporter
from crossgraft.running.unattended import Kept, is_unattended
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
    for_training: bool = False,
    reporter: Reporter | None = None,
) -> Backbone:
    """Build a network, load its weights and show it by one face.

    Args:
        spec: Spec from ``read_zoo``, or one name or checkpoint path.
        seed: Random seed of random weights; pretrained ones do not depend on it.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``mps``.
        weights_dir: Folder in which weights are looked up first; by default that of the spec.
        allow_download: Whether weights of timm or torchvision may be downloaded. Nothing else ever uses the network.
        image_size: Input height and width in pixels instead of the size the weights were trained with.
        resize_policy: Instead of the model's own.
        for_training: Leave random weights as the architecture begins a training with, often with residual branches times 0. By
            default they are a control, and such branches are drawn, too.
        reporter: Reporter of downloads.

    Raises:
        MissingWeightsError: The weights are not on this machine; the message says which file to put where.
        WeightsMismatchError: The weights do not fit; all keys are listed.
        UsageError: The spec, the device or the network is not usable; the message says why.
    """
    folder = Path(weights_dir) if weights_dir is not None else None
    if isinstance(spec, str):
        (spec,) = read_zoo([spec], weights_dir=folder, allow_download=allow_download, reporter=reporter)
    spec = resolve_spec(spec, weights_dir=folder, allow_download=allow_download, reporter=reporter)
    folder = folder or spec.weights_dir
    device = resolve_device(device)
    library = None if spec.is_factory else library_of(spec.source)
    weights = require_own_weights(spec, folder, allow_download=allow_download, reporter=reporter)
    key = None
    if library is not None and device == "cpu" and is_unattended():
        files = [path for path in (weights, spec.weights if spec.has_checkpoint else None) if path is not None]
        asked = (seed, image_size, resize_policy, for_training, Path.cwd(), *((path, file_stamp(Path(path))) for path in files))
        key = f"{spec!r} {asked!r}"
        if (kept := KEPT.get(key)) is not None:
            return copy.deepcopy(kept)
    if library is None:
        kwargs = spec.kwargs
        module, description = _load_factory(spec, seed)
    else:
        kwargs, module, description = _load_from_library(library, spec, seed, weights)
    if spec.weights == RANDOM and not for_training:
        open_branches(module, seed, source=spec.source)
    preprocessing = resolve_preprocessing(
        description, spec.preprocessing, model=spec.name, image_size=image_size, resize_policy=resize_policy
    )
    if library is not None:
        library.accept_input_size(module, preprocessing, source=spec.source, kwargs=spec.kwargs)
    backbone = Backbone(
        module,
        name=spec.name,
        architecture=spec.architecture,
        source="factory" if library is None else "checkpoint" if spec.has_checkpoint else library.name,
        preprocessing=preprocessing,
        family=spec.family or family_of(spec.source),
        licence=spec.licence or _text(description.get("license")),
        architecture_key=spec.architecture_key,
        device=device,
        network=network_recipe(*(spec.source, kwargs) if library is None else library.recipe(spec.source, kwargs)),
    )
    if key is not None:
        KEPT.keep(key, copy.deepcopy(backbone), backbone.num_parameters)
    return backbone


def load_text_tower(
    spec: ModelSpec | str,
    *,
    device: str = "cpu",
    weights_dir: str | Path | None = None,
    allow_download: bool = False,
    reporter: Reporter | None = None,
) -> TextTower:
    """The text tower of a CLIP or SigLIP, from the file of weights that the image tower comes from, and its tokenizer.

    Nothing of a folder or repository is run: descriptions and settings are data, weights are read as tensors only.

    Args:
        spec: Spec from ``read_zoo``, or a name: ``open_clip:FOLDER``, ``transformers:ORG/NAME`` …
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``mps``.
        weights_dir: Folder in which folders ``ORG--NAME`` are looked up first; by default that of the spec.
        allow_download: Whether files may be downloaded. Nothing else ever uses the network.
        reporter: Reporter of downloads.

    Raises:
        UsageError: The model has no text tower.
        MissingWeightsError: Weights, tokenizer or a description are not on this machine.
        MissingExtraError: A package is not installed (``crossgraft[text]``).
        WeightsMismatchError: The weights do not fit.
        DataError: A file is damaged, or tokenizer and network do not belong together.
    """
    folder = Path(weights_dir) if weights_dir is not None else None
    if isinstance(spec, str):
        (spec,) = read_zoo([spec], weights_dir=folder, allow_download=allow_download, reporter=reporter)
    if spec.text_source is None:
        raise UsageError(
            f"{spec.name} has no text tower, which prompts need. Take a network that was trained with texts: "
            f"open_clip:ORG/NAME or open_clip:FOLDER, or transformers: of {', '.join(TEXT_FAMILIES)}."
        )
    if spec.weights == RANDOM:
        raise UsageError(f"{spec.name} has random weights, to which no text belongs. Leave out weights: random, or the prompts.")
    folder = folder or spec.weights_dir
    folders = [Path(each) for each in (folder, spec.folder, Path.cwd()) if each is not None]
    places = Places(folder, folders, allow_download, reporter or Reporter(quiet=True))
    return library_of(spec.text_source).text_tower(spec, places, device=resolve_device(device))


def require_own_weights(
    spec: ModelSpec, weights_dir: Path | None, *, allow_download: bool, reporter: Reporter | None
) -> Path | None:
    """The library's own weights of a resolved spec, downloaded with consent; None for one that takes others.

    Raises:
        MissingWeightsError: They are not on this machine.
    """
    if spec.is_factory or spec.weights != PRETRAINED:
        return None
    folder = weights_dir or spec.weights_dir
    try:
        library = library_of(spec.source)
        return library.require_weights(spec.source, folder, allow_download=allow_download, reporter=reporter)
    except MissingWeightsError as error:
        raise MissingWeightsError(explain_missing(str(error), spec.source, folder)) from error


KEPT: Kept[Backbone] = Kept(2**28)
"""Networks by all that was asked for and by size and time of the files; 1 GiB."""


def file_stamp(path: Path) -> tuple[int, int]:
    """Bytes, and when it was written: another file has others."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _load_from_library(
    library: ModelLibrary, spec: ModelSpec, seed: int, pretrained_file: Path | None
) -> tuple[Mapping[str, object], nn.Module, Mapping[str, object]]:
    """Arguments of the architecture, the network, and what the library says about it."""
    description = library.describe(spec.source, spec.kwargs)
    if spec.weights == RANDOM:
        description.pop("license", None)  # nobody's weights
        module = build_random(lambda: library.build(spec.source, spec.kwargs), seed, source=spec.source)
        return spec.kwargs, module, description
    if pretrained_file is not None:
        module = build_seeded(lambda: library.build_pretrained(spec.source, spec.kwargs, pretrained_file), seed)
        return spec.kwargs, module, description
    description.pop("license", None)  # of the library's weights, not of this file's
    kwargs, module = library.build_from_checkpoint(spec, seed)
    return kwargs, module, description


def _load_factory(spec: ModelSpec, seed: int) -> tuple[nn.Module, Mapping[str, object]]:
    # The folder of a zoo file is searched only if --code names it; who makes a spec in Python names its folder.
    own = spec.folder if spec.trusted is None else None
    folders = [folder for folder in (own, Path.cwd()) if folder is not None]
    factory = find_factory(spec.source, trusted=spec.code, folders=folders)
    is_random = spec.weights == RANDOM

    def build() -> nn.Module:
        return build_from_factory(factory, spec.source, spec.kwargs, random=is_random)

    module = build_random(build, seed, source=spec.source) if is_random else build_seeded(build, seed, "factory", spec.source)
    if spec.has_checkpoint:
        path = Path(str(spec.weights))
        load_weights(
            module,
            read_state_dict(path, key=spec.weights_key, prefix=spec.weights_prefix),
            file=path.name,
            model=f"{spec.name} ({spec.architecture})",
        )
    return module, factory_config(module)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


@runtime_checkable
class LoadingOptions(FindingOptions, Protocol):
    """What the options of every verb with a model say about loading it."""

    @property
    def seed(self) -> int:
        """Random seed of random weights."""
        ...

    @property
    def image_size(self) -> int | None:
        """Side of the input in pixels; None: that of the model."""
        ...

    @property
    def resize_policy(self) -> ResizePolicy | None:
        """Instead of the model's own."""
        ...


def load_as_asked(
    spec: ModelSpec, options: LoadingOptions, *, device: str, for_training: bool = False, reporter: Reporter | None = None
) -> Backbone:
    """The backbone of ``spec``, as ``load_backbone`` gives it with ``options``."""
    return load_backbone(
        spec,
        seed=options.seed,
        device=device,
        weights_dir=options.weights_dir,
        allow_download=options.allow_download,
        image_size=options.image_size,
        resize_policy=options.resize_policy,
        for_training=for_training,
        reporter=reporter,
    )
