"""Where a network's penultimate features are, for any network that shows its head; and how that head is taken out.

Four ways to speak, tried in this order:

1. One linear head (timm's ``get_classifier``, or an attribute ``fc``, ``classifier``, ``head``, ``heads`` or
   ``linear``): the features are what goes into it, so head(features) is the model's output by construction.
   This is checked once.
2. timm's words ``forward_features`` and ``forward_head(…, pre_logits=True)``: heads that are not one linear
   map, such as two distilled heads, and networks without a head. What still has positions is averaged over
   them (see ``positions``).
3. ``forward_features`` alone: a network without a head; feature maps and tokens are averaged over positions.
4. A head whose last learned layer is a 1×1 convolution (SqueezeNet): what goes into it, averaged over
   positions.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.errors import UsageError
from crossgraft.models.positions import ChannelLayout, find_layout, mean_over_positions
from crossgraft.models.taps import Tap, Taps, modes_kept

_HEAD_NAMES = ("fc", "classifier", "head", "heads", "linear")
# Two orders above float32 rounding of one dot product; a head with a scale or a second branch is far outside.
_SAME_OUTPUT = 1e-5
_CHANNELS_FIRST = ChannelLayout(channel_axis=1)


class BackboneOutput(NamedTuple):
    """What a backbone says about a batch.

    Attributes:
        features: Penultimate features, float32.
        source_logits: Logits of the pretrained head, before softmax, float32; None without a head.
    """

    features: Float[Tensor, "num_samples num_features"]
    source_logits: Float[Tensor, "num_samples num_source_classes"] | None


@dataclass(frozen=True)
class Route:
    """How the features of one network are read; holds names only, so it fits every network of the same structure.

    Attributes:
        kind: ``linear_head`` and ``convolutional_head``: what goes into the layer ``head``; ``forward_features``: timm's
            words.
        head: Name of the layer in ``named_modules()``.
        takes_pre_logits: Whether ``forward_head(…, pre_logits=True)`` follows ``forward_features``.
        layout: Where the channels are of what is averaged over its positions.
    """

    kind: Literal["linear_head", "forward_features", "convolutional_head"]
    head: str = ""
    takes_pre_logits: bool = False
    layout: ChannelLayout = _CHANNELS_FIRST


def find_route(module: nn.Module, probe: Float[Tensor, "num_samples channels height width"], *, name: str) -> Route:
    """The first of the four ways of this file that ``module`` can go; it runs on ``probe`` once or twice.

    Raises:
        UsageError: There is none; the message says what to implement.
    """
    head = _linear_head(module)
    if head is not None and _is_the_last_step(module, head, probe):
        return Route("linear_head", head=head)
    if callable(getattr(module, "forward_features", None)):
        takes_pre_logits = _takes_pre_logits(module)
        shape = _before_pooling(module, probe, takes_pre_logits, name=name)[0].shape
        return Route("forward_features", takes_pre_logits=takes_pre_logits, layout=find_layout(module, tuple(shape)))
    convolution = _convolutional_head(module)
    output = None if convolution is None else module(probe)
    if convolution is not None and isinstance(output, Tensor) and output.ndim == 2 and len(output) == len(probe):
        return Route("convolutional_head", head=convolution)
    raise UsageError(
        f"crossgraft cannot see the penultimate features of the model {name} ({type(module).__name__}). Name its last "
        "linear layer fc, classifier, head or linear (and call it on a vector an image), or give it the method "
        "forward_features(images) that returns (n, d), tokens (n, t, d) or feature maps (n, d, h, w)."
    )


def _name_of(layer: nn.Module, module: nn.Module) -> str | None:
    return next((name for name, candidate in module.named_modules() if candidate is layer), None)


def _linear_head(module: nn.Module) -> str | None:
    get_classifier = getattr(module, "get_classifier", None)
    heads = [get_classifier()] if callable(get_classifier) else _named_heads(module)
    last = next((last for head in heads if isinstance(last := _last_of(head), nn.Linear)), None)
    return None if last is None else _name_of(last, module)


def linear_heads(module: nn.Module) -> list[str]:
    """Names of the linear layers in what timm's ``get_classifier`` gives; several in a distilled network."""
    get_classifier = getattr(module, "get_classifier", None)
    classifier = get_classifier() if callable(get_classifier) else ()
    heads = [head for head in (classifier if isinstance(classifier, Sequence) else (classifier,)) if isinstance(head, nn.Module)]
    layers = {id(layer) for head in heads for layer in head.modules() if isinstance(layer, nn.Linear)}
    return [name for name, layer in module.named_modules() if id(layer) in layers]


def _named_heads(module: nn.Module) -> list[object]:
    config = getattr(module, "pretrained_cfg", None) or getattr(module, "default_cfg", None)
    stated = config.get("classifier") if isinstance(config, Mapping) else None
    names = (stated, *_HEAD_NAMES) if isinstance(stated, str) else _HEAD_NAMES
    modules = dict(module.named_modules())
    return [modules[name] for name in names if name in modules]


def _last_of(head: object) -> object:
    while isinstance(head, nn.Sequential) and len(head) > 0:
        head = head[-1]
    return head


def _is_the_last_step(module: nn.Module, head: str, probe: Tensor) -> bool:
    """Whether applying ``head`` to its own input gives the output of the whole network."""
    tap = _input_of(head)
    with Taps(module, [tap]) as tapped:
        output = module(probe)
    if tapped.runs(tap) != 1 or tapped[tap].ndim != 2 or not isinstance(output, Tensor):
        return False
    expected = module.get_submodule(head)(tapped[tap])
    return expected.shape == output.shape and torch.allclose(
        expected, output, rtol=_SAME_OUTPUT, atol=_SAME_OUTPUT, equal_nan=True
    )


def _input_of(head: str) -> Tap:
    return Tap(head, of="input", with_graph=True, run="first")


def _before_pooling(module: nn.Module, images: Tensor, takes_pre_logits: bool, *, name: str) -> tuple[Tensor, object]:
    """What is averaged over its positions, and what ``forward_features`` said."""
    feature_map = module.forward_features(images)  # type: ignore[operator]
    output = module.forward_head(feature_map, pre_logits=True) if takes_pre_logits else feature_map  # type: ignore[operator]
    return _the_tensor(output, name=name), feature_map


def read_out(route: Route, module: nn.Module, images: Tensor) -> BackboneOutput:
    """Features and logits of prepared images, part of the graph."""
    positions, output = _before_mean(route, module, images)
    features = mean_over_positions(positions.float(), route.layout)
    if route.kind == "forward_features":
        has_head = route.takes_pre_logits and bool(getattr(module, "num_classes", 0))
        output = module.forward_head(output) if has_head else None  # type: ignore[operator]
    logits = output.float() if isinstance(output, Tensor) and output.ndim == 2 else None
    return BackboneOutput(features, logits)


def features_along(route: Route, module: nn.Module, images: Tensor) -> Tensor:
    """Penultimate features (n, d) as part of the graph, in the type that the network computes in.

    Args:
        route: From ``find_route``. Where ``module`` has lost its linear head (an identity stands there), what goes into
            the identity is what comes out.
        module: The network.
        images: Prepared (n, c, h, w).
    """
    return mean_over_positions(_before_mean(route, module, images)[0], route.layout)


def _before_mean(route: Route, module: nn.Module, images: Tensor) -> tuple[Tensor, object]:
    """What is averaged over its positions, and what the network (or its ``forward_features``) said."""
    if route.kind == "forward_features":
        return _before_pooling(module, images, route.takes_pre_logits, name=type(module).__name__)
    tap = _input_of(route.head)
    with Taps(module, [tap]) as tapped:
        output = module(images)
    return tapped[tap], output


def _takes_pre_logits(module: nn.Module) -> bool:
    forward_head = getattr(module, "forward_head", None)
    return callable(forward_head) and "pre_logits" in inspect.signature(forward_head).parameters


def _the_tensor(output: object, *, name: str) -> Tensor:
    """The one tensor of ``output``: itself, or alone in a list or tuple.

    Raises:
        UsageError: There are several, or names for them; which one is meant is not for us to guess.
    """
    if isinstance(output, Sequence) and len(output) == 1:
        output = output[0]
    if isinstance(output, Tensor):
        return output
    returned = type(output).__name__
    if isinstance(output, Mapping):
        returned += " with the keys " + ", ".join(map(str, output))
    elif isinstance(output, Sequence):
        returned += f" of {len(output)}"
    raise UsageError(
        f"The method forward_features of the model {name} returns a {returned}. Let it return one tensor: (n, d), tokens "
        "(n, t, d) or feature maps (n, d, h, w)."
    )


def _convolutional_head(module: nn.Module) -> str | None:
    """Name of the last learned layer of the head, where that is a 1×1 convolution."""
    for head in _named_heads(module):
        learned = [layer for layer in cast(nn.Module, head).modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
        if learned and isinstance(learned[-1], nn.Conv2d) and learned[-1].kernel_size == (1, 1):
            return _name_of(learned[-1], module)
    return None


# The head is taken out, so that what is left gives the penultimate features and can be trained.

SOURCE_HEAD = "source head, not used"
FIXED = "fixed by the architecture"


@dataclass(frozen=True)
class Cut:
    """What was done to a network; names only, so it can be done again to another one of the same structure.

    Attributes:
        route: How the features are read.
        removed: Names of the linear layers where an identity stands now.
        untrainable: Name of each parameter that cannot or must not be trained → why.
    """

    route: Route
    removed: tuple[str, ...]
    untrainable: Mapping[str, str]


def take_head_out(module: nn.Module, probe: Tensor, *, name: str) -> Cut:
    """Replace the source head of ``module`` by identities where the features stay the same bit for bit.

    A head that cannot be taken out (a convolution with layers behind it, a network that looks at its head's
    attributes) stays; its parameters, which the features do not depend on, are listed as untrainable.

    Args:
        module: In eval mode; changed.
        probe: One image that it takes.
        name: For messages.

    Raises:
        UsageError: The features cannot be found.
    """
    fixed = {key: FIXED for key, parameter in module.named_parameters() if not parameter.requires_grad}
    with torch.no_grad():
        route = find_route(module, probe, name=name)
        expected = features_along(route, module, probe)
        removed = tuple(head for head in _candidates(module, route) if _try_to_remove(module, head, route, probe, expected))
    kept = {key: why for key, why in fixed.items() if not key.startswith(tuple(f"{head}." for head in removed))}
    idle = _without_effect(module, route, probe)
    forget_caches(module)
    return Cut(route, removed, {**kept, **idle})


def forget_caches(module: nn.Module) -> None:
    """Drop what layers of ``module`` keep of their weights in eval mode (LeViT: the positions' biases); modes stay.

    Such layers drop it when they enter train mode, but not when other weights are loaded.
    """
    with modes_kept(module):
        module.train()


def repeat_cut(module: nn.Module, cut: Cut) -> None:
    """Do to another network of the same structure what was done to the first.

    Raises:
        AttributeError: It has no such layers.
    """
    for head in cut.removed:
        module.get_submodule(head)  # setattr would make a new one
        put_layer(module, head, nn.Identity())
    module.get_submodule(cut.route.head)


def _candidates(module: nn.Module, route: Route) -> list[str]:
    """Linear layers that may be the head: the one the route names, or those that timm's ``get_classifier`` gives."""
    if route.kind == "linear_head":
        return [route.head]
    return linear_heads(module) if route.kind == "forward_features" else []


def _try_to_remove(module: nn.Module, head: str, route: Route, probe: Tensor, expected: Tensor) -> bool:
    layer = module.get_submodule(head)
    put_layer(module, head, nn.Identity())
    try:
        if torch.equal(features_along(route, module, probe), expected):
            return True
    except (RuntimeError, AttributeError, TypeError, ValueError):
        pass  # the network needs its head to run
    put_layer(module, head, layer)
    return False


def put_layer(module: nn.Module, name: str, layer: nn.Module) -> None:
    """Put ``layer`` in the place of the layer called ``name``."""
    parent, _, attribute = name.rpartition(".")
    setattr(module.get_submodule(parent), attribute, layer)


def _without_effect(module: nn.Module, route: Route, probe: Tensor) -> dict[str, str]:
    """Parameters that the features do not depend on, found by one backward pass."""
    forget_caches(module)
    parameters = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    with torch.enable_grad():
        total = features_along(route, module, probe).sum()
        if not total.requires_grad:
            return dict.fromkeys(parameters, SOURCE_HEAD)
        gradients = cast(  # torch's stub does not know that None stands for unused ones
            "Sequence[Tensor | None]", torch.autograd.grad(total, list(parameters.values()), allow_unused=True)
        )
    return {name: SOURCE_HEAD for name, gradient in zip(parameters, gradients, strict=True) if gradient is None}
