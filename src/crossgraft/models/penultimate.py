"""Where a network's penultimate features are, for any network that shows its head.

Three ways to speak, tried in this order:

1. One linear head (timm's ``get_classifier``, or an attribute ``fc``, ``classifier``, ``head``, ``heads`` or
   ``linear``): the features are what goes into it, so head(features) is the model's output by construction.
   This is checked once.
2. timm's words ``forward_features`` and ``forward_head(…, pre_logits=True)``: heads that are not one linear
   map.
3. ``forward_features`` alone: a network without a head; feature maps and tokens are averaged over positions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.errors import UsageError

_HEAD_NAMES = ("fc", "classifier", "head", "heads", "linear")
# Two orders above float32 rounding of one dot product; a head with a scale or a second branch is far outside.
_SAME_OUTPUT = 1e-5


class BackboneOutput(NamedTuple):
    """What a backbone says about a batch.

    Attributes:
        features: Penultimate features, float32.
        source_logits: Of the pretrained head, before softmax, float32; None without a head.
    """

    features: Float[Tensor, "num_samples num_features"]
    source_logits: Float[Tensor, "num_samples num_source_classes"] | None


ReadOut = Callable[[nn.Module, Tensor], BackboneOutput]


def find_read_out(
    module: nn.Module, probe: Float[Tensor, "num_samples channels height width"], *, name: str
) -> ReadOut:
    """Decide how to get features and logits out of ``module``, by running it on ``probe`` once or twice.

    Raises:
        UsageError: The network shows neither a head nor timm's words; the message says what to implement.
    """
    head = _linear_head(module)
    if head is not None and _is_the_last_step(module, head, probe):
        return _through_linear_head(head)
    if callable(getattr(module, "forward_features", None)):
        return _through_timm_words if _takes_pre_logits(module) else _without_head
    raise UsageError(
        f"crossgraft can not see the penultimate features of the model {name} ({type(module).__name__}). Name its last "
        "linear layer fc, classifier, head or linear (and call it on a vector an image), or give it the method "
        "forward_features(images) that returns (n, d), tokens (n, t, d) or feature maps (n, d, h, w)."
    )


def _linear_head(module: nn.Module) -> nn.Linear | None:
    get_classifier = getattr(module, "get_classifier", None)
    if callable(get_classifier):
        return _last_linear(get_classifier())
    config = getattr(module, "pretrained_cfg", None) or getattr(module, "default_cfg", None)
    stated = config.get("classifier") if isinstance(config, Mapping) else None
    names = (stated, *_HEAD_NAMES) if isinstance(stated, str) else _HEAD_NAMES
    modules = dict(module.named_modules())
    return next((head for name in names if (head := _last_linear(modules.get(name))) is not None), None)


def _last_linear(head: object) -> nn.Linear | None:
    if isinstance(head, nn.Sequential) and len(head) > 0:
        return _last_linear(head[-1])
    return head if isinstance(head, nn.Linear) else None


def _is_the_last_step(module: nn.Module, head: nn.Linear, probe: Tensor) -> bool:
    """Does applying ``head`` to what goes into it give the output of the whole network?"""
    inputs, output = _run_with_head_inputs(module, head, probe)
    if len(inputs) != 1 or inputs[0].ndim != 2 or not isinstance(output, Tensor):
        return False
    expected = head(inputs[0])
    return expected.shape == output.shape and torch.allclose(
        expected, output, rtol=_SAME_OUTPUT, atol=_SAME_OUTPUT, equal_nan=True
    )


def _run_with_head_inputs(module: nn.Module, head: nn.Linear, images: Tensor) -> tuple[list[Tensor], object]:
    inputs: list[Tensor] = []
    handle = head.register_forward_pre_hook(lambda _module, arguments: inputs.append(arguments[0]))
    try:
        return inputs, module(images)
    finally:
        handle.remove()


def _through_linear_head(head: nn.Linear) -> ReadOut:
    def read_out(module: nn.Module, images: Tensor) -> BackboneOutput:
        inputs, output = _run_with_head_inputs(module, head, images)
        return BackboneOutput(inputs[0].float(), cast(Tensor, output).float())

    return read_out


def _takes_pre_logits(module: nn.Module) -> bool:
    forward_head = getattr(module, "forward_head", None)
    return callable(forward_head) and "pre_logits" in inspect.signature(forward_head).parameters


def _through_timm_words(module: nn.Module, images: Tensor) -> BackboneOutput:
    feature_map = cast(Tensor, module.forward_features(images))  # type: ignore[operator]
    features = pool_positions(cast(Tensor, module.forward_head(feature_map, pre_logits=True)))  # type: ignore[operator]
    if not getattr(module, "num_classes", 0):
        return BackboneOutput(features, None)
    logits = cast(Tensor, module.forward_head(feature_map))  # type: ignore[operator]
    return BackboneOutput(features, logits.float() if logits.ndim == 2 else None)


def _without_head(module: nn.Module, images: Tensor) -> BackboneOutput:
    return BackboneOutput(pool_positions(cast(Tensor, module.forward_features(images))), None)  # type: ignore[operator]


def pool_positions(output: Tensor) -> Float[Tensor, "num_samples num_features"]:
    """Average tokens (n, t, d) or feature maps (n, d, h, w) over positions; vectors (n, d) stay as they are.

    Raises:
        UsageError: The output has another number of dimensions.
    """
    if output.ndim == 4:
        return output.float().mean(dim=(2, 3))
    if output.ndim == 3:
        return output.float().mean(dim=1)
    if output.ndim == 2:
        return output.float()
    raise UsageError(
        f"Penultimate features must be (n, d), (n, t, d) or (n, d, h, w); the network returned {tuple(output.shape)}."
    )
