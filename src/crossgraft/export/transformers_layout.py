"""Weights as transformers loads them: its network, with the head inside it or in a file of its own."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from crossgraft.errors import ExportError
from crossgraft.export.graph import own_network
from crossgraft.export.layout import Layout, probabilities_line
from crossgraft.export.source_model import SourceModel, quietly
from crossgraft.export.written import python_block
from crossgraft.models.recipe import NetworkRecipe
from crossgraft.models.sources.transformers_networks import (
    FAMILIES,
    TransformersClassifier,
    TransformersEncoder,
    TransformersNetwork,
    class_and_arguments,
    transformers,
)
from crossgraft.models.spec import name_in_library

_HEAD = "head.safetensors"
_POOLED, _FIRST, _MEAN = (
    "output.pooler_output.flatten(1)",
    "output.last_hidden_state[:, 0]",
    "output.last_hidden_state.mean(dim=1)",
)


def transformers_layout(source: SourceModel, recipe: NetworkRecipe) -> Layout | None:
    """``config.json`` and tensors under the names of transformers; None for a network that takes more than images.

    Raises:
        ExportError: The new head does not fit in the place of the network's own.

    Cost: a copy of the weights, and a forward pass of one image where the network has no head.
    """
    body = source.classifier.body
    if isinstance(body, TransformersClassifier):
        return _with_head(source, cast(TransformersClassifier, own_network(source)[0]))
    if type(body) is TransformersEncoder and not body.masks:
        return _without_head(source, body, recipe)
    return None


def _with_head(source: SourceModel, network: TransformersClassifier) -> Layout:
    model: Any = network.model
    names, kind, call = source.facts.class_names, type(model).__name__, _call(network)
    configuration: Any = copy.deepcopy(model.config)
    configuration.num_labels = source.classifier.num_outputs
    if len(names) == source.classifier.num_outputs:
        configuration.id2label, configuration.label2id = dict(enumerate(names)), {name: i for i, name in enumerate(names)}
    use = f"""
import torch, transformers

model = transformers.{kind}.from_pretrained("FOLDER_OF_THIS_CARD").eval()
logits = model({call}).logits  # images: resized and normalised as description.json says
{probabilities_line(source)}
"""
    return Layout(
        network=model,
        load=lambda folder: _AsOnTheCard(_load(kind, folder), call, None, None),
        checked_with=f"transformers {transformers().__version__}",
        loads_with="transformers",
        how_to_load=f'transformers.{kind}.from_pretrained("FOLDER")',
        how_to_use=python_block(use),
        more_files=_described(model, configuration),
    )


def _without_head(source: SourceModel, body: TransformersEncoder, recipe: NetworkRecipe) -> Layout:
    of_kind, arguments = class_and_arguments(FAMILIES[name_in_library(recipe.source)], recipe.kwargs)
    kind, call, features = of_kind.__name__, _call(body), _features(source, body)
    given = "".join(f", {name}={value!r}" for name, value in arguments.items())
    use = f"""
import torch, transformers
from safetensors.torch import load_file

model = transformers.{kind}.from_pretrained("FOLDER_OF_THIS_CARD"{given}).eval()
head = load_file("FOLDER_OF_THIS_CARD/{_HEAD}")
output = model({call})  # images: resized and normalised as description.json says
logits = torch.nn.functional.linear({features}, head["weight"], head["bias"])
{probabilities_line(source)}
"""
    return Layout(
        network=body.model,
        load=lambda folder: _AsOnTheCard(_load(kind, folder, **arguments), call, features, load_file(folder / _HEAD)),
        checked_with=f"transformers {transformers().__version__}",
        loads_with="transformers",
        how_to_load=f'transformers.{kind}.from_pretrained("FOLDER"{given}), and {_HEAD} behind it',
        how_to_use=python_block(use),
        more_files=_described(body.model, body.model.config),
        more_tensors={_HEAD: source.classifier.head.state_dict()},
        notes=(f"The new head is in {_HEAD}: the network has no place for one.",),
    )


def _call(network: TransformersNetwork) -> str:
    return "pixel_values=images, interpolate_pos_encoding=True" if network.interpolates else "pixel_values=images"


def _features(source: SourceModel, body: TransformersEncoder) -> str:
    """Python for what ``forward_features`` takes from the output."""
    look = source.classifier.preprocessing
    with torch.no_grad():
        output = body.run(torch.zeros(1, look.channels, look.height_pixels, look.width_pixels))
    if getattr(output, "pooler_output", None) is not None:
        return _POOLED
    return _FIRST if body.has_class_token else _MEAN


def _described(model: Any, configuration: Any) -> dict[str, str]:
    said = copy.deepcopy(configuration)
    said.architectures = [type(model).__name__]
    return {"config.json": said.to_json_string()}


def _load(kind: str, folder: Path, **arguments: object) -> Any:
    try:
        with quietly():
            return getattr(transformers(), kind).from_pretrained(folder, local_files_only=True, **arguments)
    except Exception as error:  # it says by many kinds of errors that a file does not fit
        reason = " ".join(str(error).split())
        raise ExportError(
            f"transformers {transformers().__version__} cannot load the exported model: {reason}. Use --format torch or onnx."
        ) from error


class _AsOnTheCard(nn.Module):
    """What the lines of the card compute."""

    def __init__(self, model: Any, call: str, features: str | None, head: Mapping[str, Tensor] | None) -> None:
        super().__init__()
        self.model = model
        self._arguments = {"interpolate_pos_encoding": True} if "interpolate" in call else {}
        self._features = features
        self._head = head

    def forward(self, images: Tensor) -> Tensor:
        output = self.model(pixel_values=images, **self._arguments)
        if self._head is None:
            return output.logits
        features = {
            _POOLED: lambda: output.pooler_output.flatten(1),
            _FIRST: lambda: output.last_hidden_state[:, 0],
            _MEAN: lambda: output.last_hidden_state.mean(dim=1),
        }[str(self._features)]()
        return nn.functional.linear(features, self._head["weight"], self._head["bias"])
