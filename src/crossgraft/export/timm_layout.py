"""What ``timm.create_model("local-dir:FOLDER", pretrained=True)`` and ``hf-hub:OWNER/NAME`` read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import timm
from torch import nn

from crossgraft.errors import ExportError
from crossgraft.export.quietly import quietly
from crossgraft.export.source_model import SourceModel
from crossgraft.export.weights_layout import Layout, probabilities_line
from crossgraft.export.whole_network import library_network
from crossgraft.export.written import python_block
from crossgraft.models.head_place import head_places
from crossgraft.models.random_weights import build_seeded
from crossgraft.models.recipe import NetworkRecipe
from crossgraft.types import Preprocessing, ResizePolicy

_CROP_MODES: dict[ResizePolicy, str] = {"crop": "center", "squash": "squash", "pad": "border"}
_KEPT = ("first_conv", "pool_size")  # of what timm says about the network
_HOW_TO_LOAD = 'timm.create_model("local-dir:FOLDER", pretrained=True)'


def timm_layout(source: SourceModel, recipe: NetworkRecipe) -> Layout:
    """``config.json`` in timm's words.

    Raises:
        ExportError: timm does not build the architecture with this head.
    """
    network = library_network(source, recipe)
    use = f"""
import timm, torch

model = timm.create_model("local-dir:FOLDER_OF_THIS_CARD", pretrained=True).eval()  # on the hub: hf-hub:OWNER/NAME
transform = timm.data.create_transform(**timm.data.resolve_model_data_config(model), is_training=False)
logits = model(transform(image).unsqueeze(0))  # image: a PIL image, RGB
{probabilities_line(source)}
"""
    return Layout(
        network=network,
        load=_load,
        checked_with=f"timm {timm.__version__}",
        loads_with="timm",
        how_to_load=_HOW_TO_LOAD,
        how_to_use=python_block(use),
        more_files={"config.json": json.dumps(_config(source, recipe, network), indent=2, ensure_ascii=False) + "\n"},
    )


def _config(source: SourceModel, recipe: NetworkRecipe, network: nn.Module) -> dict[str, object]:
    classifier, licence = source.classifier, source.licence
    said = cast("Mapping[str, Any]", getattr(network, "pretrained_cfg", {}))
    fixed = bool(said.get("fixed_input_size", False))
    preprocessing = classifier.preprocessing
    arguments = _arguments(network, recipe, preprocessing if fixed else None)
    places = list(head_places(classifier, network))
    return {
        "architecture": recipe.source.partition(".")[0],
        "num_classes": classifier.num_outputs,
        "num_features": classifier.num_features,
        "label_names": source.facts.class_names,
        **({"model_args": arguments} if arguments else {}),
        "pretrained_cfg": {
            **{key: said[key] for key in _KEPT if said.get(key) is not None},
            **({} if licence is None else {"license": licence}),
            "custom_load": False,
            "fixed_input_size": fixed,
            "num_classes": classifier.num_outputs,
            "classifier": places[0] if len(places) == 1 else places,
            **_input(preprocessing),
        },
    }


def _arguments(network: nn.Module, recipe: NetworkRecipe, fixed: Preprocessing | None) -> dict[str, object]:
    """What builds the network, beside the number of classes; newer versions of timm also know what another size changed."""
    get_model_args = getattr(timm.models, "get_model_args", None)
    if get_model_args is not None:
        arguments = get_model_args(network)
    else:
        size = {} if fixed is None else {"img_size": [fixed.height_pixels, fixed.width_pixels]}
        arguments = {**recipe.kwargs, **size}
    return {key: value for key, value in arguments.items() if key != "num_classes"}


def _input(preprocessing: Preprocessing) -> dict[str, object]:
    return {
        "input_size": [preprocessing.channels, preprocessing.height_pixels, preprocessing.width_pixels],
        "interpolation": preprocessing.interpolation,
        "crop_pct": preprocessing.crop_fraction,
        "crop_mode": _CROP_MODES[preprocessing.resize_policy],
        "mean": preprocessing.mean,
        "std": preprocessing.std,
    }


def _load(folder: Path) -> nn.Module:
    try:
        with quietly():
            return build_seeded(lambda: timm.create_model(f"local-dir:{folder}", pretrained=True), 0)
    except Exception as error:  # timm says by many kinds of errors that a file does not fit
        reason = " ".join(str(error).split())
        raise ExportError(
            f"timm {timm.__version__} cannot load the exported model: {reason}. A newer timm may (local-dir: is new); or use "
            "--format torch or onnx."
        ) from error
