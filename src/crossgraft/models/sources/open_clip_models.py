"""``open_clip:NAME/TAG``, ``open_clip:ORG/NAME`` and ``open_clip:FOLDER``: image towers of CLIP, as networks of timm.

timm has the image towers whose names the table holds. A folder or repository has ``open_clip_config.json``, which names an
architecture of timm, or the sizes of CLIP's own vision transformer, which timm has too. The package open_clip is not needed.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import ClassVar, cast

from timm.models import is_model, list_models

from crossgraft.errors import DataError, MissingExtraError, UnknownNameError, UsageError
from crossgraft.models.sources.architecture_arguments import refuse_large_numbers
from crossgraft.models.sources.described_places import DescribedPlace, find_place
from crossgraft.models.sources.hub_description import mapping_in, read_json
from crossgraft.models.sources.library import AvailableModel, PlaceLibrary, Places
from crossgraft.models.sources.open_clip_texts import open_clip, open_clip_text_tower
from crossgraft.models.sources.text_tower import TextTower
from crossgraft.models.spec import RANDOM, ModelSpec, family_of, name_in_library
from crossgraft.types import shown_value

CONFIG = "open_clip_config.json"
_WEIGHTS = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin", "model.safetensors", "pytorch_model.bin")
_NEEDS = f"{CONFIG} and {_WEIGHTS[0]} (or {_WEIGHTS[1]})"
_TRUNK = "visual.trunk."
_MEAN, _STD = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
_POLICIES = {"shortest": "crop", "squash": "squash", "longest": "pad"}
_CLIP, _QUICK = "vit_base_patch32_clip_224", "vit_base_patch32_clip_quickgelu_224"
"""CLIP's vision transformer in timm, whose sizes are arguments, with both of its activations."""
_SIZES = {"width": "embed_dim", "layers": "depth", "patch_size": "patch_size", "mlp_ratio": "mlp_ratio"}
_HEAD_WIDTH = 64
_OTHER_TOWER = (
    *("attentional_pool", "attn_pooler_queries", "global_average_pool"),
    *("no_ln_pre", "final_ln_after_pool", "ls_init_value"),
)
"""Settings of open_clip's vision transformer that change what it computes."""
_POOLS = ("", "avg", "token", "map")


class OpenClipLibrary(PlaceLibrary):
    """Image towers; what a network says is its features before the projection to texts."""

    name: ClassVar[str] = "open_clip"
    title: ClassVar[str] = "image towers of open_clip"
    form: ClassVar[str] = "open_clip:NAME/TAG, open_clip:ORG/NAME, open_clip:ORG/NAME@REVISION or open_clip:FOLDER"

    def knows(self, source: str) -> bool:
        """Any name may be a folder or a repository."""
        return bool(name_in_library(source))

    def names(self) -> list[str]:
        """Those of the table."""
        return [f"{self.name}:{known}" for known in published_towers()]

    def locate(self, spec: ModelSpec, places: Places) -> ModelSpec:
        """The network of timm."""
        name = name_in_library(spec.source)
        if (row := published_towers().get(name)) is not None:
            policy = {"resize_policy": _POLICIES[row["resize"]], "crop_pct": 1.0}
            return replace(spec, source=row["timm"], preprocessing={**policy, **spec.preprocessing}, text_source=spec.source)
        if name.partition("/")[0] in {known.partition("/")[0] for known in published_towers()}:  # with a tag that is not there
            raise UnknownNameError("network of open_clip", name, published_towers(), hint=f"Write {self.form}.")
        place, where, said = self._description(spec.source, places)
        model, prepare = mapping_in(said, "model_cfg", where), mapping_in(said, "preprocess_cfg", where)
        found = replace(_described(spec, model, prepare, of=place.name), text_source=spec.source)
        if spec.weights == RANDOM or spec.has_checkpoint:
            return found
        return replace(found, weights=str(place.weights(_WEIGHTS)))

    def _description(self, source: str, places: Places) -> tuple[DescribedPlace, str, Mapping[str, object]]:
        """The place, the name of its description for messages, and what it says."""
        place = find_place(source, places, description=CONFIG, form=self.form, needs=_NEEDS)
        return place, f"{CONFIG} of {place.name}", read_json(place.file((CONFIG,)), of=place.name)

    def text_tower(self, spec: ModelSpec, places: Places, *, device: str) -> TextTower:
        """By the package open_clip, from a folder or repository; timm has the image towers of the table alone."""
        source = str(spec.text_source)
        if (row := published_towers().get(name_in_library(source))) is not None:
            raise UsageError(
                f"{source} is the image tower alone, as timm has it ({row['timm']}). For texts name the folder or repository "
                f"with both towers, which has {CONFIG}: {_both_towers(source)}."
            )
        place, where, said = self._description(source, places)
        model = mapping_in(said, "model_cfg", where)
        return open_clip_text_tower(model, place, Path(str(spec.weights)), where=where, name=spec.name, device=device)

    def available(self, weights_dir: Path | None, search: str | None) -> list[AvailableModel]:
        """What has the text in its name; where the weights are is said of the network of timm."""
        return [] if search is None else super().available(weights_dir, search)

    def row(self, source: str, weights_dir: Path | None) -> AvailableModel:
        """By its name in timm."""
        known = published_towers().get(name_in_library(source))
        where = f"as {known['timm']}" if known is not None else "on the hub (--allow-download)"
        return AvailableModel(source, family_of(source), None, False, where)


@cache
def published_towers() -> Mapping[str, Mapping[str, str]]:
    """``NAME/TAG`` → the name in timm, and how images are resized."""
    text = resources.files("crossgraft.models").joinpath("open_clip_names.csv").read_text(encoding="utf-8")
    return {f"{row['name']}/{row['tag']}": row for row in csv.DictReader(text.splitlines())}


def _both_towers(source: str) -> str:
    """The repository of a network of the table as open_clip knows it, where the package is installed; else the form."""
    name, _, tag = name_in_library(source).partition("/")
    try:
        repository = str(open_clip().get_pretrained_cfg(name, tag).get("hf_hub", "")).strip("/")
    except MissingExtraError:
        repository = ""
    return f"open_clip:{repository or 'ORG/NAME'}"


def _described(spec: ModelSpec, model: Mapping[str, object], prepare: Mapping[str, object], *, of: str) -> ModelSpec:
    """``spec`` with the architecture of timm, its arguments and preprocessing; its own words win.

    Raises:
        UnknownNameError: timm has no such architecture, or the images are resized in another way.
        UsageError: The tower computes something that timm's does not.
        DataError: A value is not what its key promises.
    """
    tower = mapping_in(model, "vision_cfg", f"{CONFIG} of {of}")
    refuse_large_numbers(dict(tower), where=f"{CONFIG} of {of}")
    prefix = None
    if "timm_model_name" in tower:
        architecture, kwargs = _of_timm(model, tower, of=of)
        prefix = _TRUNK
    else:
        architecture, kwargs = _of_clip(model, tower, of=of)
    height, width = _size(tower, of)
    resize = str(prepare.get("resize_mode", "shortest"))
    if resize not in _POLICIES:
        raise UnknownNameError(f"resize_mode in {CONFIG} of {of}", resize, _POLICIES)
    preprocessing = {
        "input_size": [3, height, width],
        "mean": prepare.get("mean", _MEAN),
        "std": prepare.get("std", _STD),
        "interpolation": prepare.get("interpolation", "bicubic"),
        "resize_policy": _POLICIES[resize],
        "crop_pct": 1.0,
    }
    return replace(
        spec,
        source=architecture,
        kwargs={**kwargs, **spec.kwargs},
        weights_prefix=spec.weights_prefix or prefix,
        preprocessing={**preprocessing, **spec.preprocessing},
    )


def _of_timm(model: Mapping[str, object], tower: Mapping[str, object], *, of: str) -> tuple[str, dict[str, object]]:
    """A trunk of timm, whose features open_clip projects behind it, or whose head is the projection."""
    architecture, pool = str(tower["timm_model_name"]), tower.get("timm_pool", "avg")
    if not is_model(architecture):
        raise UnknownNameError(f"architecture in {CONFIG} of {of}", architecture, list_models())
    if pool not in _POOLS:
        raise UsageError(
            f"The image tower of {of} pools its tokens by {shown_value(pool)}, which timm's {architecture} does not. Write a "
            "function that builds it, and give it as source: package.module:factory."
        )
    num_outputs = _whole_number(model, "embed_dim", of) if tower.get("timm_proj", "linear") in (None, "") else 0
    return architecture, {"num_classes": num_outputs, **({"global_pool": pool} if pool else {})}


def _of_clip(model: Mapping[str, object], tower: Mapping[str, object], *, of: str) -> tuple[str, dict[str, object]]:
    """CLIP's own vision transformer; its projection is the head."""
    other = [name for name in _OTHER_TOWER if tower.get(name)]
    if other or not isinstance(tower.get("layers"), int) or tower.get("pool_type", "tok") != "tok":
        raise UsageError(
            f"The image tower of {of} is no vision transformer of CLIP's form ({', '.join(other) or 'layers, pool_type'}). Write "
            "a function that builds it, and give it as source: package.module:factory."
        )
    kwargs: dict[str, object] = {new: tower[old] for old, new in _SIZES.items() if old in tower}
    width, head_width = _whole_number(tower, "width", of), tower.get("head_width", _HEAD_WIDTH)
    if not isinstance(head_width, int) or head_width < 1:
        raise DataError(f"head_width in {CONFIG} of {of} must be a whole number, found {shown_value(head_width)}.")
    kwargs |= {"num_heads": width // head_width, "num_classes": _whole_number(model, "embed_dim", of)}
    height, width = _size(tower, of)
    kwargs["img_size"] = height if height == width else [height, width]
    return (_QUICK if model.get("quick_gelu") else _CLIP), kwargs


def _size(tower: Mapping[str, object], of: str) -> list[int]:
    """Height and width."""
    said = tower.get("image_size", 224)
    size = cast("list[object]", said) if isinstance(said, list) else [said, said]
    if len(size) != 2 or not all(isinstance(side, int) and not isinstance(side, bool) and side > 0 for side in size):
        raise DataError(f"image_size in {CONFIG} of {of} must be one or two whole numbers, found {shown_value(said)}.")
    return cast("list[int]", size)


def _whole_number(said: Mapping[str, object], key: str, of: str) -> int:
    value = said.get(key)
    if not isinstance(value, int) or value < 1:
        raise DataError(f"{key} in {CONFIG} of {of} must be a whole number above 0, found {shown_value(value)}.")
    return value
