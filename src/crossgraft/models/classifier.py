"""A pretrained network with a new linear head: what fine-tuning trains."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, NamedTuple, cast

import torch
from jaxtyping import Float
from pydantic import Field, TypeAdapter, ValidationError
from torch import Tensor, nn

from crossgraft.errors import DataError, UsageError
from crossgraft.models.adapters import AdapterRecipe, adapters_of
from crossgraft.models.adapters.insertion import rebuild_adapters
from crossgraft.models.backbone import Backbone, Known
from crossgraft.models.layers import building_blocks, parameter_depths
from crossgraft.models.penultimate import Cut, features_along, forget_caches, linear_heads, put_layer, repeat_cut, take_head_out
from crossgraft.models.recipe import NetworkRecipe, build_network
from crossgraft.models.trusted_code import NOTHING, TrustedCode
from crossgraft.seeding import torch_generator
from crossgraft.types import Preprocessing, shown_value

_HEAD_STD = 0.02
_SAME_OUTPUT = 1e-5
_Width = Annotated[int, Field(ge=1, le=1_000_000)]  # of a layer that is read from a file; far above what networks have


class ClassifierOutput(NamedTuple):
    """What a classifier says about a batch, part of the graph.

    Attributes:
        features: Penultimate features.
        logits: One column per class or label, before softmax or sigmoid.
    """

    features: Float[Tensor, "batch num_features"]
    logits: Float[Tensor, "batch num_classes"]


@dataclass(frozen=True)
class ClassifierRecipe:
    """Everything about a classifier but its weights: plain values, no absolute path.

    Attributes:
        name: Name of the pretrained model.
        architecture: Name of the architecture for people.
        family: Family of the architecture.
        licence: Licence of the pretrained weights, if known.
        weights_fingerprint: SHA-256 of the pretrained weights.
        source: ``timm``, ``torchvision``, ``checkpoint`` or ``factory``.
        preprocessing: Preprocessing of images.
        network: Recipe that builds the network without weights; None for a module that was made in Python.
        cut: Changes that were made to the network.
        num_features: Length d of the features.
        num_outputs: Number C of classes or labels.
        adapters: Small parts that were put beside layers of the network.
    """

    name: str
    architecture: str
    family: str
    licence: str | None
    weights_fingerprint: str
    source: str
    preprocessing: Preprocessing
    network: NetworkRecipe | None
    cut: Cut
    num_features: _Width
    num_outputs: _Width
    adapters: tuple[AdapterRecipe, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Values that ``json`` can write and ``read_recipe`` reads."""
        return _adapter_of_recipes().dump_python(self, mode="json")


_adapter_of_recipes = cache(lambda: TypeAdapter(ClassifierRecipe))
"""Made at the first use, which takes longer than all others; without a signature, since checkers of types do not know its own."""


def read_recipe(values: Mapping[str, object]) -> ClassifierRecipe:
    """The inverse of ``ClassifierRecipe.to_json``.

    Raises:
        DataError: A value is missing, has the wrong type or is out of its range.
    """
    try:
        return _adapter_of_recipes().validate_python(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        reason = first["msg"].rstrip(".")
        # what one value must be says nothing of the value; a check of several values names it itself
        instead = "" if isinstance(first["input"], Mapping) else f"; found {shown_value(first['input'])}"
        raise DataError(
            f"The description of the fine-tuned network is damaged: {'.'.join(map(str, first['loc']))}: {reason}{instead}. "
            "Fine-tune again, or restore the file."
        ) from error


class Classifier(nn.Module):
    """A network without its own head, and a new linear head.

    Parameters are called ``body.<name in the original network>`` and ``head.weight``, ``head.bias``; those of an adapter
    ``body.<name of the layer it stands beside>.<its kind>.…``. It keeps no hooks but those of adapters, and can be copied,
    pickled and loaded strictly.

    Args:
        body: The network, its head taken out by ``take_head_out``.
        recipe: Says how its features are read.

    Attributes:
        body: The pretrained network.
        head: Head from d features to C logits.
        recipe: Everything but the weights.
        blocks: Names of the building blocks, first to last (``body.blocks.0``, …).
    """

    body: nn.Module
    head: nn.Linear

    def __init__(self, body: nn.Module, recipe: ClassifierRecipe) -> None:
        super().__init__()
        self.body = body
        # drawn by draw_head: the constructor would draw from the global random state
        self.head = cast(nn.Linear, nn.utils.skip_init(nn.Linear, recipe.num_features, recipe.num_outputs))
        self.recipe = recipe
        self.blocks = [f"body.{name}" for name in building_blocks(body)]

    @property
    def num_features(self) -> int:
        """Length d of the features."""
        return self.recipe.num_features

    @property
    def num_outputs(self) -> int:
        """Number C of classes or labels."""
        return self.recipe.num_outputs

    @property
    def preprocessing(self) -> Preprocessing:
        """How images become inputs."""
        return self.recipe.preprocessing

    @property
    def adapter_parameters(self) -> set[str]:
        """Names of the parameters of adapters."""
        return {f"{name}.{key}" for name, (_, part) in adapters_of(self).items() for key, _ in part.named_parameters()}

    @property
    def untrainable(self) -> dict[str, str]:
        """Name of each parameter that no method trains → why."""
        return {f"body.{name}": why for name, why in self.recipe.cut.untrainable.items()}

    def __getstate__(self) -> dict[str, Any]:
        """For ``copy`` and ``pickle``: what layers keep of a forward pass may be part of a graph, which is neither."""
        forget_caches(self)
        return self.__dict__.copy()

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """As torch does it; then layers forget what they computed from the weights before."""
        keys = super().load_state_dict(state_dict, strict, assign)
        forget_caches(self)
        return keys

    def depths(self) -> dict[str, int]:
        """How deep each parameter lies: 0 in front of the first block, the number of blocks + 1 behind and in the head."""
        body = (f"body.{name}" for name, _ in self.body.named_parameters())
        head = {f"head.{name}": len(self.blocks) + 1 for name, _ in self.head.named_parameters()}
        return {**parameter_depths(body, self.blocks), **head}

    def features(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch num_features"]:
        """Penultimate features of prepared images, part of the graph, in the type that the network computes in.

        In eval mode equal to those of the backbone, while its weights are the pretrained ones.
        """
        return features_along(self.recipe.cut.route, self.body, images)

    def features_and_logits(self, images: Float[Tensor, "batch channels height width"]) -> ClassifierOutput:
        """Both from one forward pass."""
        features = self.features(images)
        return ClassifierOutput(features, self.head(features))

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch num_classes"]:
        """Logits of prepared images."""
        return self.features_and_logits(images).logits


_CUTS: Known[Cut] = Known()


def make_classifier(backbone: Backbone, num_outputs: int, *, seed: int) -> Classifier:
    """A copy of ``backbone`` with a new head; the backbone stays as it is.

    The head's weights are drawn from a normal distribution of standard deviation 0.02, cut at ±2, its bias is zero.

    Args:
        backbone: The pretrained network.
        num_outputs: Classes, or labels of a multi-label problem.
        seed: Random seed of the head.

    Raises:
        UsageError: ``num_outputs`` is not positive.

    Cost: a copy of the weights, a few forward passes and one backward pass of one image.
    """
    if num_outputs < 1:
        raise UsageError(f"A classifier needs at least one output, asked for {num_outputs}.")
    body = copy.deepcopy(backbone.module).eval()
    forget_caches(body)
    key = backbone.identity
    cut = _CUTS.get(key)
    if cut is None:
        cut = _CUTS.keep(key, take_head_out(body, backbone.probe_image(), name=backbone.name))
    else:
        repeat_cut(body, cut)
    recipe = ClassifierRecipe(
        name=backbone.name,
        architecture=backbone.architecture,
        family=backbone.family,
        licence=backbone.licence,
        weights_fingerprint=backbone.weights_fingerprint,
        source=backbone.source,
        preprocessing=backbone.preprocessing,
        network=backbone.network,
        cut=cut,
        num_features=backbone.num_features,
        num_outputs=num_outputs,
    )
    classifier = Classifier(body, recipe).eval()
    example = next(body.parameters(), torch.empty(0))
    dtype = example.dtype if example.is_floating_point() else torch.float32
    draw_head(classifier, seed)
    classifier.head.to(device=backbone.device, dtype=dtype)
    return classifier


def draw_head(classifier: Classifier, seed: int) -> None:
    """Draw the head anew from the stream "head" of ``seed``."""
    weight = torch.empty(classifier.head.weight.shape)
    nn.init.trunc_normal_(weight, std=_HEAD_STD, generator=torch_generator(seed, "head"))
    with torch.no_grad():
        classifier.head.weight.copy_(weight)
        classifier.head.bias.zero_()


def rebuild_classifier(
    recipe: ClassifierRecipe | Mapping[str, object], *, trusted: TrustedCode = NOTHING, network: nn.Module | None = None
) -> Classifier:
    """The classifier of a recipe with random weights, in eval mode on the CPU: load a state dict into it.

    Args:
        recipe: ``Classifier.recipe`` or its ``to_json``.
        trusted: The code that the user named; a recipe that names another function is refused.
        network: The whole network, head included, for a recipe that cannot build it; it is changed.

    Raises:
        UntrustedCodeError: The recipe names a function that nobody allowed.
        UsageError: Nobody can build the network here; the message says what is missing.
        DataError: The recipe is damaged.
    """
    recipe = recipe if isinstance(recipe, ClassifierRecipe) else read_recipe(recipe)
    if network is None:
        if recipe.network is None:
            raise UsageError(
                f"{recipe.name} was made in Python, so it cannot be built from its name. Build the same network and pass it as "
                "network=, or fine-tune a model that is named package.module:factory."
            )
        network = build_network(recipe.network, recipe.preprocessing, trusted=trusted)
    try:
        repeat_cut(network, recipe.cut)
        classifier = Classifier(network, recipe).eval()
        rebuild_adapters(classifier, recipe.adapters)
    except AttributeError as error:
        raise UsageError(
            f"The network that is built for {recipe.name} today is another one than was fine-tuned: {error}. Install the "
            "versions that run.json names."
        ) from error
    draw_head(classifier, 0)
    return classifier


def head_places(classifier: Classifier, network: nn.Module) -> Sequence[str]:
    """Names of the linear layers that the new head belongs to, where the network is handed on; several where it averages heads.

    Args:
        classifier: Its recipe says where a head was taken out.
        network: The same architecture, with a head for as many classes.
    """
    cut = classifier.recipe.cut
    if cut.route.kind == "linear_head":
        return [cut.route.head]
    if cut.removed:
        return cut.removed
    shape, heads = classifier.head.weight.shape, linear_heads(network) if cut.route.kind == "forward_features" else ()
    return [name for name in heads if cast(nn.Linear, network.get_submodule(name)).weight.shape == shape]


@torch.no_grad()
def with_head_in_place(classifier: Classifier) -> tuple[nn.Module, Sequence[str]]:
    """A copy of the whole network, adapters included, its own head the new one; and the names of that head.

    Raises:
        UsageError: What the network has behind its features is more than a linear layer.

    Cost: a copy of the weights and two forward passes of two images.
    """
    twin = copy.deepcopy(classifier).eval()
    p = classifier.preprocessing
    images = torch.randn(2, p.channels, p.height_pixels, p.width_pixels, generator=torch_generator(0, "head in place"))
    images = images.to(classifier.head.weight)
    here = twin(images)
    network, places = twin.body, head_places(classifier, twin.body)
    for place in places:
        put_layer(network, place, copy.deepcopy(twin.head))
    there = network(images)
    tolerance = _SAME_OUTPUT * max(1.0, float(here.abs().max()))
    if not places or here.shape != there.shape or not torch.allclose(here, there, rtol=0, atol=tolerance):
        raise UsageError(
            f"The new head of {classifier.recipe.name} cannot be put in the place of its own: what the network has behind its "
            "features is more than one linear layer."
        )
    return network, places
