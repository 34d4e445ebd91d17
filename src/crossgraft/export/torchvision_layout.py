"""Weights for the builders of torchvision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torchvision
from safetensors.torch import load_file
from torch import nn
from torchvision.models import get_model
from torchvision.models.vision_transformer import VisionTransformer

from crossgraft.export.source_model import SourceModel
from crossgraft.export.weights_layout import FILE, Layout, probabilities_line
from crossgraft.export.whole_network import library_network
from crossgraft.export.written import python_block
from crossgraft.models.random_weights import build_seeded
from crossgraft.models.recipe import NetworkRecipe
from crossgraft.models.sources.torchvision_models import BUILD_ARGUMENTS, split_source


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
