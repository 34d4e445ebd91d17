"""torchvision as a ``ModelLibrary``: ``torchvision:resnet50``, ``torchvision:resnet50.IMAGENET1K_V1``.

Classification networks only. Auxiliary heads (GoogLeNet, Inception) serve training alone and are left out.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import torch
from timm.models import is_model
from torch import Tensor, nn
from torchvision import models
from torchvision.models import WeightsEnum
from torchvision.models.maxvit import MaxVit
from torchvision.models.vision_transformer import VisionTransformer, interpolate_embeddings

from crossgraft.errors import MissingWeightsError, UnknownNameError, UsageError
from crossgraft.models.sources.library import AvailableModel, ModelLibrary
from crossgraft.models.sources.local_checkpoint import known_prefixes_removed
from crossgraft.models.spec import CHECKPOINT_SUFFIXES, TORCHVISION_PREFIX
from crossgraft.progress import Reporter
from crossgraft.types import Preprocessing

# torchvision writes the first eight digits of a file's SHA-256 into its name.
_HASH_IN_NAME = re.compile(r"-([a-f0-9]{8,})\.")
_CHANNELS = 3
_AUXILIARY_HEADS = {"aux1", "aux2", "AuxLogits"}
# Both were trained on inputs that they normalise once more; torchvision sets this whenever it loads their weights.
BUILD_ARGUMENTS: dict[str, dict[str, object]] = {
    name: {"aux_logits": False, "init_weights": True, "transform_input": True} for name in ("googlenet", "inception_v3")
}
# Files from before 2018 have a dot inside a module's name: denselayer1.norm.1 is today's denselayer1.norm1.
_OLD_DENSENET_KEY = re.compile(r"(denselayer\d+\.(?:norm|conv))\.([12]\.)")
_STRIDE_OF_FIRST_GRID = 4  # of MaxViT: the stem and the first block halve the image
# Every classification network of torchvision calls its last layer so, in a classifier of several by its number.
_HEAD_WEIGHT = re.compile(r"(?:fc|head|heads\.head|classifier(?:\.(\d+))?)\.weight")


def published_name(weights: WeightsEnum) -> str:
    """File name at download.pytorch.org."""
    return weights.url.rpartition("/")[2]


def torch_cache() -> Path:
    """Where torch keeps what it has downloaded."""
    return Path(torch.hub.get_dir()) / "checkpoints"


def _download(source: str, weights: WeightsEnum, reporter: Reporter) -> Path:
    target = torch_cache() / published_name(weights)
    stated_hash = _HASH_IN_NAME.search(target.name)
    reporter.say(
        f"Downloading the weights {weights.name} of {source}: {weights.meta['_file_size']:.0f} MB from {weights.url} to "
        f"{target.parent}"
    )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(
            weights.url, str(target), hash_prefix=stated_hash.group(1) if stated_hash else None, progress=False
        )
    except (OSError, RuntimeError) as error:  # RuntimeError: the hash is not the one that the name states
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise MissingWeightsError(
            f"The weights of {source} could not be downloaded from {weights.url}: {first_line}. On a machine with network, "
            f"download that file and put it as {target.name} into --weights-dir."
        ) from error
    return target


def torchvision_names() -> list[str]:
    """All classification networks of the installed torchvision."""
    return models.list_models(module=models)


def weights_of(architecture: str) -> list[models.WeightsEnum]:
    """The published weights of an architecture, torchvision's default first."""
    published = cast("Any", models.get_model_weights(architecture))
    default = getattr(published, "DEFAULT", None)
    return sorted(published, key=lambda weights: weights is not default)


def split_source(source: str) -> tuple[str, str]:
    """Architecture and tag, which is empty for the default weights.

    >>> split_source("torchvision:resnet50.IMAGENET1K_V1")
    ('resnet50', 'IMAGENET1K_V1')
    """
    architecture, _, tag = source.removeprefix(TORCHVISION_PREFIX).partition(".")
    return architecture, tag


class TorchvisionLibrary(ModelLibrary):
    """The classification networks of torchvision."""

    name: ClassVar[str] = "torchvision"
    title: ClassVar[str] = "torchvision's classification networks"
    form: ClassVar[str] = "torchvision:NAME or torchvision:NAME.WEIGHTS"

    def names(self) -> list[str]:
        """All of them."""
        return [TORCHVISION_PREFIX + name for name in torchvision_names()]

    def knows(self, source: str) -> bool:
        """Whether the architecture exists, whatever its tag."""
        return split_source(source)[0] in torchvision_names()

    def check(self, source: str) -> None:
        """Refuse unknown architectures and tags with the nearest names."""
        architecture, tag = split_source(source)
        names = torchvision_names()
        if architecture not in names:
            raise UnknownNameError(
                "torchvision model",
                source,
                [TORCHVISION_PREFIX + name for name in names],
                hint="Classification networks only; a name without torchvision: means timm.",
                meant=architecture if is_model(architecture) else None,
            )
        tags = [weights.name for weights in weights_of(architecture)]
        if tag and tag not in tags:
            raise UnknownNameError(f"weights of {TORCHVISION_PREFIX}{architecture}", tag, tags)

    def available(self, weights_dir: Path | None, search: str | None) -> list[AvailableModel]:
        """All published weights; without a search those alone that are here, since none is offered."""
        published = [(name, weights) for name in torchvision_names() for weights in weights_of(name)]
        rows = [self.row(f"{TORCHVISION_PREFIX}{name}.{weights.name}", weights_dir) for name, weights in published]
        if search is None:
            return [row for row in rows if row.available]
        return [row for row in rows if search.lower() in row.name.lower()]

    def row(self, source: str, weights_dir: Path | None) -> AvailableModel:
        """With the parameters that torchvision states."""
        weights = find_weights_entry(source)
        stated = None if weights is None else weights.meta["num_params"]
        return replace(super().row(source, weights_dir), num_parameters=stated)

    def where_to_get(self, source: str) -> str:
        """On PyTorch's server."""
        weights = find_weights_entry(source)
        return "no weights are published" if weights is None else f"{weights.url} (--allow-download)"

    def describe(self, source: str, kwargs: Mapping[str, object]) -> dict[str, object]:
        """From the evaluation transforms of the weights; those of the default weights for other checkpoints."""
        weights = find_weights_entry(source)
        if weights is None:
            return {}
        transforms = weights.transforms()
        (crop,), (resize,) = transforms.crop_size, transforms.resize_size
        size = kwargs.get("image_size", kwargs.get("input_size", crop))
        height, width = (size, size) if isinstance(size, int) else cast("Sequence[int]", size)
        return {
            "input_size": (_CHANNELS, height, width),
            "mean": tuple(transforms.mean),
            "std": tuple(transforms.std),
            "interpolation": transforms.interpolation.value,
            "crop_pct": crop_fraction(crop, resize),
            "license": weights.meta.get("license"),
        }

    def build(self, source: str, kwargs: Mapping[str, object]) -> nn.Module:
        """The network with random weights."""
        if kwargs.get("num_classes") == 0:
            raise UsageError(f"{source} always has a head: leave num_classes: 0 out. Features are taken in front of the head.")
        return super().build(source, kwargs)

    def create(self, source: str, kwargs: Mapping[str, object]) -> nn.Module:
        """Without auxiliary heads."""
        architecture, _ = split_source(source)
        return models.get_model(architecture, weights=None, **{**BUILD_ARGUMENTS.get(architecture, {}), **kwargs})

    def find_weights(self, source: str, weights_dir: Path | None = None) -> Path | None:
        """In ``weights_dir`` or torch's cache, under its published name.

        In ``weights_dir`` also as ``<architecture>.<tag>.pth`` (or ``.safetensors``, ``.pt``, ``.bin``); the name of the
        architecture alone would be the name of timm's weights.
        """
        weights = find_weights_entry(source)
        if weights is None:
            return None
        paths = [torch_cache() / published_name(weights)]
        if weights_dir is not None:
            names = [f"{split_source(source)[0]}.{weights.name}{suffix}" for suffix in CHECKPOINT_SUFFIXES]
            paths = [*(weights_dir / name for name in (published_name(weights), *names)), *paths]
        return next((path for path in paths if path.is_file()), None)

    def require_weights(
        self, source: str, weights_dir: Path | None = None, *, allow_download: bool, reporter: Reporter | None
    ) -> Path:
        """The published weights, or the message that says where to get them."""
        weights, name = find_weights_entry(source), TORCHVISION_PREFIX + split_source(source)[0]
        if weights is None:
            raise MissingWeightsError(
                f"torchvision publishes no weights for {name}. Give weights: a file, or weights: random, in a zoo file."
            )
        path = self.find_weights(source, weights_dir)
        if path is not None:
            return path
        if allow_download:
            return _download(name, weights, reporter or Reporter())
        folder = str(weights_dir) if weights_dir is not None else "a folder that you name with --weights-dir"
        raise MissingWeightsError(
            f"The weights {weights.name} of {name} are not on this machine. Download {weights.url} and put it as "
            f"{published_name(weights)} into {folder}; or pass --allow-download, which stores it in {torch_cache()}."
        )

    def adapt_state(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Today's names of old DenseNets, without auxiliary heads."""
        return {
            _OLD_DENSENET_KEY.sub(r"\1\2", name): tensor
            for name, tensor in state.items()
            if _AUXILIARY_HEADS.isdisjoint(name.split("."))
        }

    def infer_num_classes(self, source: str, state: Mapping[str, Tensor]) -> int | None:
        """Read off the shape of the head's weights."""
        for variant in known_prefixes_removed(self.adapt_state(state)):
            heads = [name for name in variant if _HEAD_WEIGHT.fullmatch(name) and variant[name].ndim > 1]
            if heads:
                return int(variant[max(heads, key=_place_in_classifier)].shape[0])
        return None

    def accept_input_size(
        self, module: nn.Module, preprocessing: Preprocessing, *, source: str, kwargs: Mapping[str, object]
    ) -> None:
        """Fit position embeddings to the size, or refuse it."""
        size = (preprocessing.height_pixels, preprocessing.width_pixels)
        if isinstance(module, VisionTransformer):
            _resize_positions(module, size, source)
        elif isinstance(module, MaxVit):
            _check_partitions(module, size, source)
        else:
            _check_smallest(size, source)


def _place_in_classifier(name: str) -> int:
    match = _HEAD_WEIGHT.fullmatch(name)
    return int(match.group(1) or 0) if match else 0


def find_weights_entry(source: str) -> models.WeightsEnum | None:
    """The published weights that ``source`` means; None for an architecture without any."""
    architecture, tag = split_source(source)
    return next((weights for weights in weights_of(architecture) if tag in ("", weights.name)), None)


def crop_fraction(crop_pixels: int, resize_pixels: int) -> float:
    """The largest share for which ``floor(crop / share)`` is the size that the weights were evaluated with."""
    fraction = min(1.0, crop_pixels / resize_pixels)
    while math.floor(crop_pixels / fraction) < resize_pixels:
        fraction = math.nextafter(fraction, 0.0)
    return fraction


def _check_smallest(size: tuple[int, int], source: str) -> None:
    weights = find_weights_entry(source)
    smallest = cast("Sequence[int]", weights.meta["min_size"]) if weights is not None else (1, 1)
    if weights is not None and smallest[0] == weights.transforms().crop_size[0]:
        return  # of Swin torchvision states the size it was trained with; smaller images are padded to windows
    if size[0] < smallest[0] or size[1] < smallest[1]:
        raise UsageError(f"{source} needs images of at least {smallest[0]}×{smallest[1]} pixels, asked for {size[0]}×{size[1]}.")


def _resize_positions(module: VisionTransformer, size: tuple[int, int], source: str) -> None:
    """Interpolate the position embedding, as torchvision does it for fine-tuning at another resolution."""
    height, width = size
    if size == (module.image_size, module.image_size):
        return
    if height != width or height % module.patch_size:
        raise UsageError(
            f"{source} takes square images whose side is a multiple of {module.patch_size} pixels, asked for {height}×{width}."
        )
    state = interpolate_embeddings(height, module.patch_size, OrderedDict(module.state_dict()))
    positions = state["encoder.pos_embedding"]
    module.encoder.pos_embedding = nn.Parameter(positions.detach().clone())
    module.seq_length = positions.shape[1]
    module.image_size = height


def _check_partitions(module: MaxVit, size: tuple[int, int], source: str) -> None:
    """The relative positions of MaxViT are built for one grid of windows in every block."""
    first_grid = cast("tuple[int, int]", module.blocks[0].grid_size)
    if tuple(-(-pixels // _STRIDE_OF_FIRST_GRID) for pixels in size) != first_grid:
        height, width = (_STRIDE_OF_FIRST_GRID * cells for cells in first_grid)
        raise UsageError(
            f"{source} takes images of {height}×{width} pixels only. Leave --image-size out, or choose a convolutional network."
        )
