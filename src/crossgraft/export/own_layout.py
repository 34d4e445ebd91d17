"""Weights of a network that no library builds by its name; whoever has its code can load them."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn

from crossgraft.export.source_model import SourceModel
from crossgraft.export.weights_layout import FILE, Layout, probabilities_line
from crossgraft.export.whole_network import own_network
from crossgraft.export.written import python_block


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
