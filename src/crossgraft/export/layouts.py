"""Weights as timm, torchvision, transformers or a script of your own load them."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import safetensors.torch
import timm
import torch
import torchvision
from safetensors.torch import load_file
from torch import nn
from torchvision.models import get_model
from torchvision.models.vision_transformer import VisionTransformer

from crossgraft.errors import ExportError
from crossgraft.export.graph import library_network, own_network, refuse_adapters
from crossgraft.export.layout import FILE, Layout, probabilities_line
from crossgraft.export.source_model import SourceModel, logits_of_network, quietly
from crossgraft.export.transformers_layout import transformers_layout
from crossgraft.export.written import Format, Written, python_block
from crossgraft.models.classifier import head_places
from crossgraft.models.random_weights import build_seeded
from crossgraft.models.recipe import NetworkRecipe
from crossgraft.models.sources.torchvision_models import BUILD_ARGUMENTS, split_source
from crossgraft.models.spec import is_factory_source, library_name
from crossgraft.storage.atomic import write_atomically
from crossgraft.types import Preprocessing, ResizePolicy


def own_layout(source: SourceModel) -> Layout:
    """The state dict as the network names it, the new head under the name of its own.

    Raises:
        ExportError: The network has no single linear layer that is its head.
    """
    network, place = own_network(source)
    recipe = source.classifier.recipe
    builder = recipe.network.source.replace(":", ".") if recipe.network is not None else "your_function"

    def load(folder: Path) -> nn.Module:
        empty = copy.deepcopy(network)
        with torch.no_grad():
            for tensor in empty.state_dict().values():
                tensor.fill_(float("nan") if tensor.is_floating_point() else 0)
        empty.load_state_dict(load_file(folder / FILE), strict=True)
        return empty

    use = f"""
import torch
from safetensors.torch import load_file

model = {builder}()  # your own code
model.set_submodule("{place}", torch.nn.Linear({recipe.num_features}, {recipe.num_outputs}))
model.load_state_dict(load_file("{FILE}"))
logits = model.eval()(images)  # resized and normalised as description.json says
{probabilities_line(source)}
"""
    return Layout(
        network=network,
        load=load,
        checked_with=f"the same network, refilled by PyTorch {torch.__version__}",
        loads_with="your own code",
        how_to_load=f'model.load_state_dict(load_file("{FILE}"))',
        how_to_use=python_block(use) + "\n\nWith crossgraft, hand on the folder `model` of the run instead.",
        notes=("timm and torchvision cannot load it: the network is built by code of your own.",),
    )


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
    config = cast("Mapping[str, Any]", getattr(network, "pretrained_cfg", {}))
    fixed = bool(config.get("fixed_input_size", False))
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
            **{key: config[key] for key in _KEPT if config.get(key) is not None},
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


def torchvision_layout(source: SourceModel, recipe: NetworkRecipe) -> Layout:
    """The state dict as torchvision names it, and the call that builds the network around it.

    Raises:
        ExportError: torchvision does not build the architecture with this head.
    """
    network = library_network(source, recipe)
    architecture, _ = split_source(recipe.source)
    arguments: dict[str, Any] = {
        **BUILD_ARGUMENTS.get(architecture, {}),
        **recipe.kwargs,
        "num_classes": source.classifier.num_outputs,
    }
    if isinstance(network, VisionTransformer):
        arguments["image_size"] = network.image_size

    def load(folder: Path) -> nn.Module:
        fresh = build_seeded(lambda: get_model(architecture, weights=None, **arguments), 0)
        fresh.load_state_dict(load_file(folder / FILE), strict=True)
        return fresh

    call = ", ".join([repr(architecture), *(f"{name}={value!r}" for name, value in arguments.items())])
    use = f"""
import torch
from safetensors.torch import load_file
from torchvision.models import get_model

model = get_model({call}).eval()
model.load_state_dict(load_file("{FILE}"))
logits = model(images)  # resized and normalised as description.json says
{probabilities_line(source)}
"""
    return Layout(
        network=network,
        load=load,
        checked_with=f"torchvision {torchvision.__version__}",
        loads_with="torchvision",
        how_to_load=f'get_model({call}).load_state_dict(load_file("{FILE}"))',
        how_to_use=python_block(use),
        notes=("timm cannot load it: it is a network of torchvision.",),
    )


_OF_LIBRARY: Mapping[str, Callable[[SourceModel, NetworkRecipe], Layout | None]] = {
    "timm": timm_layout,
    "torchvision": torchvision_layout,
    "transformers": transformers_layout,
}
_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9.-]*")
_LIBRARIES = ("timm", "transformers")  # names that the hub knows


class SafetensorsLayout(Format):
    """For timm, torchvision, transformers, or whoever has the code of the network."""

    name = "safetensors"

    def write(self, source: SourceModel, folder: Path) -> Written:
        """Weights under their original names, what the library needs beside them, and a network loaded from both."""
        layout = _layout(source)
        for name, tensors in {FILE: layout.network.state_dict(), **layout.more_tensors}.items():
            state = {key: tensor.contiguous().clone() for key, tensor in tensors.items()}
            write_atomically(folder / name, safetensors.torch.save(state, metadata={"format": "pt"}))
        for name, text in layout.more_files.items():
            write_atomically(folder / name, text)
        return Written(
            answer=logits_of_network(layout.load(folder).eval(), source.classifier.preprocessing),
            checked_with=layout.checked_with,
            loads_with=layout.loads_with,
            how_to_load=layout.how_to_load,
            how_to_use=layout.how_to_use,
            card_name="README.md",
            card_header=hub_header(source, library=layout.loads_with),
            notes=layout.notes,
        )


def _layout(source: SourceModel) -> Layout:
    refuse_adapters(source)
    recipe = source.classifier.recipe.network
    if recipe is None or is_factory_source(recipe.source):
        return own_layout(source)
    of_library = _OF_LIBRARY.get(library_name(recipe.source))
    layout = None if of_library is None else of_library(source, recipe)
    return own_layout(source) if layout is None else layout


def hub_header(source: SourceModel, *, library: str) -> str:
    """YAML between dashes; a licence only where that of the pretrained weights is known and is one word, as the hub has them."""
    licence = source.licence
    lines = [
        "---",
        *([f"library_name: {library}"] if library in _LIBRARIES else []),
        "pipeline_tag: image-classification",
        *([f"license: {licence}"] if licence is not None and _IDENTIFIER.fullmatch(licence) else []),
        "tags:",
        "- image-classification",
        *([f"- {library}"] if library in (*_LIBRARIES, "torchvision") else []),
        "- crossgraft",
        "---",
    ]
    return "\n".join(lines) + "\n\n"
